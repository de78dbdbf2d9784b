"""What one relation of a statement needs (decisions 2, 3.4): its level, and once the catalog is read that of all it reaches
by views, partitions, rules, foreign tables, sequences and indexes. Worked out once per relation, policy and snapshot.
"""

from typing import Final

from gatewayd.catalog import Catalog, Relation, WriteEvent
from gatewayd.policy.decide import access
from gatewayd.policy.decide.access import PERMITS, Resolved, resolve
from gatewayd.policy.decide.function_rules import FunctionRules
from gatewayd.policy.decide.reasons import Refusal, dotted, setting, written
from gatewayd.policy.decide.relation_reach import SYSTEM_SCHEMAS, Reach, is_initial
from gatewayd.policy.file.model import Level, Policy
from gatewayd.sql.builtins import filtered_relations
from gatewayd.sql.builtins import lookup as builtins
from gatewayd.sql.builtins.filtered_relations import Filtered
from gatewayd.sql.facts.statement import RelationUse, Statement

VIEWS: Final = ("view", "materialized view")
DEFINING_KINDS: Final = ("DROP", "ALTER", "COMMENT", "GRANT", "REVOKE", "CREATE VIEW", "CREATE RULE", "CREATE TRIGGER")
"""Statement kinds that write to a view itself, never through it to its base tables."""
_NAMES_KEPT: Final = 4096


class RelationRules:
    """The rules of one policy over one catalog snapshot."""

    def __init__(self, policy: Policy, catalog: Catalog, functions: FunctionRules) -> None:
        self._access = policy.table_access
        self._hides = policy.hides_something
        self._must_know = self._hides or policy.taint is not None
        levels = {self._access.default, *self._access.tables.values()}
        self._restricts = levels != {"read_write"}
        self._catalog = catalog
        self._functions = functions
        self._reach = Reach(policy.table_access, catalog)
        self._reads: dict[tuple[int, bool, bool], Refusal | None] = {}
        self._writes: dict[tuple[int, bool, bool, tuple[WriteEvent, ...] | None], Refusal | None] = {}
        self._vouches: dict[int, bool] = {}
        self._system: dict[str, bool] = {}  # by bare name

    def locate(self, use: RelationUse) -> tuple[str, str]:
        """The schema and name that PostgreSQL would find: pg_catalog first, then public; what is created bare goes to public."""
        if use.schema is not None:
            return use.schema, use.name
        if not use.creates and self._is_system(use.name):
            return "pg_catalog", use.name
        return "public", use.name

    def _is_system(self, name: str) -> bool:
        known = self._system.get(name)
        if known is None:
            if len(self._system) >= _NAMES_KEPT:
                self._system.clear()
            known = self._system[name] = self._names_system(name)
        return known

    def _names_system(self, name: str) -> bool:
        if self._catalog.relation("pg_catalog", name) is not None:
            return True
        # The reviewed list covers several server versions: a name of a newer one may be a user's table here.
        here = self._catalog.is_read and self._catalog.relation("public", name) is not None
        return not here and builtins.relation(name) is not None

    def label(self, use: RelationUse) -> str:
        """What gave the relation its level, as dry-run's matched_rule prints it."""
        schema, name = self.locate(use)
        relation = self._catalog.relation(schema, name)
        return (self._reach.level(relation) if relation is not None else resolve(self._access, schema, name, use.columns)).label

    def refuse(self, use: RelationUse, statement: Statement) -> Refusal | None:
        """Why this use of a relation is not permitted; None when it is."""
        refused = self._refuse(use, statement)
        if refused is None:
            return None
        return Refusal(f"table {written(use)} {refused.why}", refused.matched_rule, refused.remedy)

    def _refuse(self, use: RelationUse, statement: Statement) -> Refusal | None:
        if use.database is not None and (not self._catalog.is_read or use.database != self._catalog.database):
            return Refusal("names a database, and only the connected one can be reached", remedy="leave the database name out")
        schema, name = self.locate(use)
        relation = self._catalog.relation(schema, name)
        if use.writes:
            refused = self._refuse_write(schema, name, relation, use, statement)
            if refused is None and relation is not None and statement.returns_rows:  # RETURNING
                refused = self._written_as_json(relation)
            if refused is not None:
                return refused
        if use.reads or not use.writes:
            return self._refuse_read(schema, name, relation, use, statement)
        return None

    # --- reading

    def _refuse_read(
        self, schema: str, name: str, relation: Relation | None, use: RelationUse, statement: Statement
    ) -> Refusal | None:
        if schema == "pg_catalog":
            if self.form(use, statement) is not None and relation is not None:
                whole = self._access.tables.get((schema, "*"), self._access.default)
                return None if whole != "deny" else _level_refusal(schema, name, resolve(self._access, schema, name), "read")
            return self._refuse_system_read(name, use.columns)
        if relation is None:
            resolved = resolve(self._access, schema, name)
            if resolved.level == "deny":
                return _level_refusal(schema, name, resolved, "read")
            return _UNKNOWN if self._catalog.is_read and self._must_know and schema not in SYSTEM_SCHEMAS else None
        # EXPLAIN prints the plan and the row estimates of the tables behind a view, so there its own key covers nothing else.
        if self.form(use, statement) is not None:
            return None
        shield = statement.explains == "no"
        key = (relation.oid, use.only, shield)
        if key not in self._reads:
            self._reads[key] = self._work_out_read(relation, only=use.only, shield=shield)
        return self._reads[key]

    def vouches(self, relation: Relation) -> bool:
        """Whether a view's own key alone opens it: what it reaches is hidden."""
        known = self._vouches.get(relation.oid)
        if known is None:
            known = self._vouches[relation.oid] = (
                self._hides
                and relation.kind == "view"
                and self._reach.level(relation).is_exact
                and any(self._refuse_one_read(each) for each in self._reach.read(relation, only=False) if each is not relation)
            )
        return known

    def hides(self, relation: Relation) -> bool:
        """Whether the relation is hidden, or one of the children that are read with it. A view's own key shows it."""
        if relation.kind in VIEWS and self._reach.level(relation).is_exact:
            return self._refuse_one_read(relation) is not None
        return any(self._refuse_one_read(each) for each in self._reach.read(relation, only=False))

    def form(self, use: RelationUse, statement: Statement) -> Filtered | None:
        """How a relation of the system is shown in part, where it is, and where a query can stand for it."""
        schema, name = self.locate(use)
        form = filtered_relations.form(schema, name) if can_be_shielded(statement) and not use.writes else None
        if form is None or not (self._hides or form.always) or resolve(self._access, schema, name).is_exact:
            return None
        return form

    def _work_out_read(self, relation: Relation, *, only: bool, shield: bool) -> Refusal | None:
        opens = relation.kind in VIEWS and shield
        vouched = opens and self._reach.level(relation).is_exact
        reached = self._reach.read(relation, only=only)
        for each in [relation] if vouched else reached:
            refused = self._refuse_one_read(each)
            if refused is not None and each is not relation:
                refused = _reaches(each, refused)
                if opens:  # name the view itself, not all that it reaches
                    alone = (
                        f"an operator can open this {relation.kind} alone with {setting(relation.schema, relation.name, 'read')}"
                    )
                    refused = Refusal(refused.why, refused.matched_rule, alone)
            if refused is not None:
                return refused
        refused = self._written_as_json(relation)
        if refused is not None:
            return refused
        # A view's own key vouches for what it shows, not for what it does: what is volatile needs functions.allow all the same.
        for each in reached:
            blocked = None if is_initial(each) else self._functions.behind(each, vouched=vouched)
            if blocked is not None:
                return Refusal(f"cannot be used: {blocked.subject} is not permitted, as {blocked.why}")
        return None

    def _written_as_json(self, relation: Relation) -> Refusal | None:
        blocked = self._functions.written_as_json(relation)
        if blocked is None:
            return None
        return Refusal(f"has columns of user-defined types, and answers are written as JSON: {blocked.why}")

    def _refuse_one_read(self, relation: Relation) -> Refusal | None:
        if relation.schema == "pg_catalog":
            return self._refuse_system_read(relation.name)
        if self._hides and filtered_relations.form(relation.schema, relation.name) is not None:  # behind a view
            return Refusal("is shown in part, and only to a statement that reads it directly")
        resolved = self._reach.level(relation)
        if resolved.level == "deny":
            return _level_refusal(relation.schema, relation.name, resolved, "read")
        if self._hides and not resolved.is_exact:
            if relation.kind == "foreign table":
                return _needs_key(relation, "is a foreign table, and what it reaches cannot be checked", "read")
            if relation.kind == "sequence":
                return self._refuse_belonging(relation, "read")
        return None

    def _refuse_system_read(self, name: str, columns: frozenset[str] | None = None) -> Refusal | None:
        """A relation of pg_catalog: its review speaks for all that it reaches."""
        resolved = resolve(self._access, "pg_catalog", name, columns)
        if resolved.level == "deny" and resolved.source != "system":
            return _level_refusal("pg_catalog", name, resolved, "read")
        known = access.reviewed(name, columns)
        if resolved.is_exact or known.clearance is builtins.Clearance.ALLOWED:
            return None
        if known.clearance is builtins.Clearance.OPEN_ONLY and not self._hides:
            return None
        when = "by default" if known.clearance is builtins.Clearance.REFUSED else "under a policy that denies or masks tables"
        # A few columns alone may be the reason; then the others can be had by name.
        instead = f"name the columns you need, without {', '.join(sorted(known.columns))}, or " if known.columns else ""
        opens = f"{instead}an operator can open it with {setting('pg_catalog', name, 'read')}"
        return Refusal(f"cannot be read {when}: it {known.reason}", remedy=opens)

    # --- writing

    def _refuse_write(
        self, schema: str, name: str, relation: Relation | None, use: RelationUse, statement: Statement
    ) -> Refusal | None:
        if schema in SYSTEM_SCHEMAS:
            return _SYSTEM_WRITE
        through = not (statement.category == "relation write" and statement.kind.startswith(DEFINING_KINDS))
        if relation is None or use.creates:
            resolved = self._reach.level(relation) if relation is not None else resolve(self._access, schema, name)
            if resolved.level != "read_write":
                return _level_refusal(schema, name, resolved, "read_write")
            # A view that the catalog does not know yet could lead a write to a table that the policy closes to writes.
            unknown = relation is None and self._catalog.is_read and self._restricts and through and not use.creates
            return _UNKNOWN if unknown else None
        key = (relation.oid, use.only, through, use.events)
        if key not in self._writes:
            self._writes[key] = self._work_out_write(relation, only=use.only, through=through, events=use.events)
        refused = self._writes[key]
        if refused is not None and statement.locks and statement.category == "read":
            return Refusal(f"{refused.why} (FOR UPDATE and FOR SHARE count as writes)", refused.matched_rule, refused.remedy)
        return refused

    def _work_out_write(
        self, relation: Relation, *, only: bool, through: bool, events: tuple[WriteEvent, ...] | None
    ) -> Refusal | None:
        reach = self._reach
        written = reach.written(relation, only=only, events=events) if through else reach.descent(relation, only=only)
        for each in written:
            refused = self._refuse_one_write(each)
            if refused is not None:
                return refused if each is relation else _reaches(each, refused)
        if through and (relation.kind in VIEWS or relation.rule_targets(events)):
            return self._work_out_read(relation, only=only, shield=True)
        return None

    def _refuse_one_write(self, relation: Relation) -> Refusal | None:
        if relation.schema in SYSTEM_SCHEMAS:
            return _SYSTEM_WRITE
        resolved = self._reach.level(relation)
        if resolved.level != "read_write":
            return _level_refusal(relation.schema, relation.name, resolved, "read_write")
        if relation.kind in ("index", "sequence") and self._restricts:
            return self._refuse_belonging(relation, "read_write")
        if relation.kind == "foreign table" and self._hides and not resolved.is_exact:
            return _needs_key(relation, "is a foreign table, and what it reaches cannot be checked", "read_write")
        return None

    def _refuse_belonging(self, relation: Relation, want: Level) -> Refusal | None:
        """A sequence or an index has the level of its table, because it tells how much that holds or how it is searched. Where
        the catalog does not tell the table, its own key must speak."""
        if relation.belongs_to == 0:
            return None
        table = self._catalog.by_oid.get(relation.belongs_to) if relation.belongs_to is not None else None
        if table is None:
            known = self._reach.level(relation).is_exact
            return None if known else _needs_key(relation, f"is an object of kind {relation.kind} whose table is not known", want)
        resolved = self._reach.level(table)
        if access.RANK[resolved.level] >= access.RANK[want]:
            return None
        return _reaches(table, _level_refusal(table.schema, table.name, resolved, want))


def can_be_shielded(statement: Statement) -> bool:
    """Whether what it reads can be shown in part. EXPLAIN would show how that is done, and with it what is hidden; a definition
    would keep it for ever."""
    runs_once = statement.category in ("read", "row write") or statement.kind in ("CREATE TABLE AS", "SELECT INTO")
    return runs_once and statement.explains == "no"


_UNKNOWN: Final = Refusal(
    "is not among the relations that this database had when its catalog was last read",
    remedy="check the spelling (list_tables shows what exists), or retry in a few seconds if it was just created",
)
_SYSTEM_WRITE: Final = Refusal("is a system relation, and those can never be written, whatever the policy says")


def _level_refusal(schema: str, name: str, resolved: Resolved, want: Level) -> Refusal:
    if resolved.source == "system":
        return Refusal(f"cannot be reached: {resolved.why}")
    return Refusal(
        f"has level {resolved.level} ({resolved.label}), which {PERMITS[resolved.level]}",
        resolved.label,
        f"an operator can change it with {setting(schema, name, want)}",
    )


def _needs_key(relation: Relation, what: str, want: Level) -> Refusal:
    opens = f"an operator can open it with {setting(relation.schema, relation.name, want)}"
    return Refusal(f"{what}, so under this policy it needs a key of its own", remedy=opens)


def _reaches(relation: Relation, refused: Refusal) -> Refusal:
    return Refusal(f"reaches {dotted(relation.schema, relation.name)}, which {refused.why}", refused.matched_rule, refused.remedy)
