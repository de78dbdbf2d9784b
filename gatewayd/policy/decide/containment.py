"""Containment: which statements read a source of foreign text, and what a grant that has read one may still do (docs/policy.md).

A tainted grant is held to a policy of its own, made from the policy in force: `contained`. So levels, shields and masks follow
from it like from any other, and only what no level can say is added here.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from gatewayd.catalog import Catalog, Function, Relation
from gatewayd.policy.decide import access
from gatewayd.policy.decide.access import RANK, resolve
from gatewayd.policy.decide.function_rules import SEARCH_PATH, SQL_RUNNING_EXTENSIONS
from gatewayd.policy.decide.reasons import Refusal, dotted, written
from gatewayd.policy.decide.relation_reach import Reach, is_initial
from gatewayd.policy.decide.relation_rules import RelationRules
from gatewayd.policy.file.model import Approvals, Contain, Level, Policy, TableAccess, TableKey, Taint
from gatewayd.sql.builtins.lookup import Clearance
from gatewayd.sql.facts.statement import RelationUse, Statement

_WRITES: Final = "taint:writes→deny"
OWN_ROWS: Final = ("UPDATE", "DELETE")
"""Kinds of statements that may use a source's rows and show none of them: what they read stays where it was."""


def contained(policy: Policy) -> Policy:
    """What a tainted grant is held to: in every point `policy`, or less than it."""
    assert policy.taint is not None
    contain = policy.taint.contain
    tables = {key: _at_most(level, _limit_of(contain, *key), contain) for key, level in policy.table_access.tables.items()}
    for key in contain.tables:
        tables[key] = _at_most(resolve(policy.table_access, *key).level, _limit_of(contain, *key), contain)
    levels = TableAccess(_at_most(policy.table_access.default, None, contain), tables)
    every_write = Approvals(writes=True, hold_s=policy.approvals.hold_s, preview=policy.approvals.preview)
    approvals = every_write if contain.writes == "hold" else policy.approvals
    return msgspec.structs.replace(policy, table_access=levels, approvals=approvals)


def _at_most(level: Level, limit: Level | None, contain: Contain) -> Level:
    levels: list[Level] = [level, "read" if contain.writes == "deny" else level, limit or level]
    return min(levels, key=RANK.__getitem__)


def _limit_of(contain: Contain, schema: str, name: str) -> Level | None:
    """What `contain.tables` says of a table: its own key there comes before its schema's."""
    exact = contain.tables.get((schema, name)) if name != "*" else None
    return exact if exact is not None else contain.tables.get((schema, "*"))


class SourceRead(msgspec.Struct, frozen=True, gc=False):
    """`name` is schema.table, or schema.function() where the function may read anything its owner wrote into it: that taints, and
    is contained only where its result could be written."""

    name: str
    is_certain: bool

    @property
    def how(self) -> str:
        return "reads" if self.is_certain else "may read, by"


class Containment:
    """The section `taint` of one policy over one catalog snapshot."""

    def __init__(self, taint: Taint, policy: Policy, catalog: Catalog, relations: RelationRules) -> None:
        self._taint = taint
        self._catalog = catalog
        self._relations = relations
        self._reach = Reach(policy.table_access, catalog)
        self._sources: dict[int, SourceRead | None] = {}
        self._limits: dict[int, tuple[str, Level] | None] = {}

    # -- reading a source

    def source_read(self, statement: Statement) -> SourceRead | None:
        """The source that the statement reads, or a function that may read one; None: it reads none."""
        if not self._taint.sources:
            return None
        for use in statement.relations:
            found = self._read_by(use, statement) if use.reads else None
            if found is not None:
                return found
        for function in self._functions(statement):
            if _may_read(function):
                return SourceRead(f"{function.schema}.{function.name}()", is_certain=False)
        return None

    def _read_by(self, use: RelationUse, statement: Statement) -> SourceRead | None:
        schema, name = self._relations.locate(use)
        relation = self._catalog.relation(schema, name)
        if relation is None or is_initial(relation):
            return self._of_names(schema, name, use.columns)
        if use.writes and relation.kind in ("table", "partitioned table") and _keeps_rows(use, statement):
            return None
        if relation.oid not in self._sources:
            self._sources[relation.oid] = self._work_out(relation)
        return self._sources[relation.oid]

    def _of_names(self, schema: str, name: str, columns: frozenset[str] | None) -> SourceRead | None:
        """Statistics, and the queries of others, hold values of any table: their own key opens them, and vouches for no text."""
        shows_values = schema == "pg_catalog" and access.reviewed(name, columns).clearance is Clearance.REFUSED
        if shows_values or _is_among(self._taint.sources, schema, name):
            return SourceRead(f"{schema}.{name}", is_certain=True)
        return None

    def _work_out(self, relation: Relation) -> SourceRead | None:
        """The first source among all that reading it reaches: views, partitions, and what these are parts of."""
        reached = self._reach.read(relation, only=False)
        for each in reached:
            of_system = self._of_names(each.schema, each.name, None) if is_initial(each) else None
            if of_system is not None:
                return of_system
            for part in self._with_ancestors(each):
                if _is_among(self._taint.sources, part.schema, part.name):
                    return SourceRead(part.qualified, is_certain=True)
        for each in reached:
            functions = [self._catalog.functions.get(oid) for oid in each.functions]
            if not is_initial(each) and any(function is None or _may_read(function) for function in functions):
                return SourceRead(each.qualified, is_certain=False)
        return None

    def _with_ancestors(self, relation: Relation) -> Iterator[Relation]:
        return self._catalog.closure(relation, lambda each: each.parents)

    def _functions(self, statement: Statement) -> Iterable[Function]:
        """User-defined functions that the statement names, as calls, as fields or by operators."""
        named = [(use.schema, use.name) for use in statement.functions]
        named += [(None, use.name) for use in statement.fields]
        for schema, name in named:
            for function in self._catalog.functions_by_name.get(name, ()):
                if function.schema == (schema or SEARCH_PATH):
                    yield function
        for use in statement.operators:
            for operator in self._catalog.operators_by_name.get(use.name, ()):
                run = self._catalog.functions.get(operator.function)
                if operator.schema == (use.schema or SEARCH_PATH) and run is not None:
                    yield run

    # -- what a tainted grant is refused

    def refuse(self, statement: Statement, *, tainted: bool) -> Refusal | None:
        """What of the statement `taint.contain` forbids, in words that name it; None where it forbids nothing.

        `tainted`: the grant was so before, not only by this statement."""
        contain = self._taint.contain
        if contain.writes == "deny":
            for use in statement.relations:
                if use.writes:
                    return Refusal(f"writes to table {written(use)} are denied by taint.contain.writes", _WRITES)
        for use in statement.relations:
            found = self._limit_reached(use)
            if found is not None and (found[1] == "deny" or use.writes):
                key, level = found
                what = "reads of" if level == "deny" and not use.writes else "writes to"
                denied = f'{what} table {written(use)} are denied by taint.contain.tables."{key}": {level}'
                return Refusal(denied, f"taint:{key}→{level}")
        # A function that the policy lists runs as its owner wrote it: called by who is tainted, one that may change things counts
        # as a write. What it reads itself goes where its owner meant it to go.
        for function in self._functions(statement) if tainted else ():
            if function.volatility == "volatile" and contain.writes == "deny":
                named = dotted(function.schema, function.name)
                return Refusal(f"function {named} may change things, which taint.contain.writes denies", _WRITES)
        return None

    def _limit_reached(self, use: RelationUse) -> tuple[str, Level] | None:
        """The strictest key of `contain.tables` among all that the use reaches. A view's own key in table_access opens nothing
        here; its own key in contain.tables does."""
        if not self._taint.contain.tables:
            return None
        schema, name = self._relations.locate(use)
        relation = self._catalog.relation(schema, name)
        if relation is None:
            return self._limit_by_name(schema, name)
        if relation.oid not in self._limits:
            self._limits[relation.oid] = self._work_out_limit(relation)
        return self._limits[relation.oid]

    def _work_out_limit(self, relation: Relation) -> tuple[str, Level] | None:
        own = (relation.schema, relation.name)
        if relation.kind in ("view", "materialized view") and own in self._taint.contain.tables:
            return self._limit_by_name(*own)
        reached = {each.oid: each for each in self._reach.read(relation, only=False)}
        reached.update((each.oid, each) for each in self._reach.written(relation, only=False, events=None))
        found = [limit for each in reached.values() if (limit := self._limit_one(each)) is not None]
        return min(found, key=lambda limit: RANK[limit[1]], default=None)

    def _limit_one(self, relation: Relation) -> tuple[str, Level] | None:
        found = [limit for each in self._with_ancestors(relation) if (limit := self._limit_by_name(each.schema, each.name))]
        return min(found, key=lambda limit: RANK[limit[1]], default=None)

    def _limit_by_name(self, schema: str, name: str) -> tuple[str, Level] | None:
        tables = self._taint.contain.tables
        for key in ((schema, name), (schema, "*")):
            if key in tables:
                return ".".join(key), tables[key]
        return None


def _is_among(keys: frozenset[TableKey], schema: str, name: str) -> bool:
    return (schema, name) in keys or (schema, "*") in keys


def _keeps_rows(use: RelationUse, statement: Statement) -> bool:
    """Whether a write uses rows of its target and lets none of them out: rows that it makes itself, or a change in place without
    RETURNING. With another write beside it, its RETURNING could feed that one."""
    if statement.category != "row write" or statement.explains != "no":
        return False
    if use.events == ("insert",):
        return True
    alone = sum(each.writes for each in statement.relations) == 1
    return alone and statement.kind in OWN_ROWS and not statement.returns_rows


def _may_read(function: Function) -> bool:
    """Whether a user-defined function may look at tables: PostgreSQL's IMMUTABLE says that it does not, and extensions bring
    types and arithmetic, but for those that run SQL text."""
    if function.extension is not None:
        return function.extension in SQL_RUNNING_EXTENSIONS
    return function.volatility != "immutable"
