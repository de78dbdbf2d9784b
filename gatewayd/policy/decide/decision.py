"""The decision: a statement's facts, one policy and one catalog snapshot in; Allowed, Denied or Held out (decision 3).

The order is parse_error, multi_statement, table_access, dangerous_statement, approvals; the first denial wins. Pure and total:
what it raises is a bug, which the pipeline turns into `internal_error`.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from gatewayd.catalog import FIRST_USER_OID, SYSTEM_COLUMNS, Catalog, Relation
from gatewayd.policy.decide import guardrails
from gatewayd.policy.decide.containment import Containment, contained
from gatewayd.policy.decide.function_rules import SEARCH_PATH, SERIALS, FunctionRules, is_grammar
from gatewayd.policy.decide.outcomes import Allowed, Decision, Denied, Held
from gatewayd.policy.decide.reasons import Refusal, at, bounded, shown
from gatewayd.policy.decide.relation_rules import RelationRules, can_be_shielded
from gatewayd.policy.decide.unknown_names import UNKNOWN_NAME, Unknown, assumed, is_parsed_alone
from gatewayd.policy.file.model import Policy
from gatewayd.sql.bind.bound import Bound
from gatewayd.sql.builtins import filtered_functions
from gatewayd.sql.builtins import lookup as builtins
from gatewayd.sql.facts.statement import FieldUse, OperatorUse, RelationUse, Statement, Unparsed
from gatewayd.sql.text.encodings import other_name

STORED: Final = ("table", "partitioned table", "materialized view", "foreign table")
TABLES: Final = 64

NO_TARGET: Final = "has no table target that a policy can grant, so it is denied whatever the policy says"
NEVER: Final = "is never permitted, whatever the policy says"
BY_OPERATOR: Final = "only an operator can do that, outside of the gateway"
_SEND_ITSELF: Final = "send the statement itself, with its values written into it"
_FOR_A_PART: Final = "send the query itself, with LIMIT and OFFSET for a part of its rows"
_NO_SESSION: Final = "settings are fixed here; say what you need in the query, as with qualified names or AT TIME ZONE"
SEVERAL: Final[Mapping[str, str]] = {
    "CREATE": "CREATE of an aggregate, operator, type, collation or text search object",
    "FETCH": "FETCH or MOVE",
    "GRANT ROLE": "GRANT or REVOKE of a role",
    "SET": "SET or RESET",
    "TRANSACTION": "transaction control (BEGIN, COMMIT, ROLLBACK and their kin)",
    "VACUUM": "VACUUM or ANALYZE",
}
"""Statement kinds that stand for several commands, in words that fit all of them."""
INSTEAD: Final[Mapping[str, str]] = {
    "CALL": "send the statements that it stands for, one at a time",
    "CLOSE": _FOR_A_PART,
    "COPY": "read with SELECT, write with INSERT",
    "DEALLOCATE": _SEND_ITSELF,
    "DECLARE CURSOR": _FOR_A_PART,
    "DISCARD": _NO_SESSION,
    "DO": "send the statements that it stands for, one at a time",
    "EXECUTE": _SEND_ITSELF,
    "EXPLAIN": "EXPLAIN takes a query, a row write, or a CREATE TABLE AS",
    "FETCH": _FOR_A_PART,
    "LISTEN": "ask again later with a query",
    "LOCK TABLE": "SELECT … FOR UPDATE locks rows where the policy permits writes",
    "PREPARE": _SEND_ITSELF,
    "SET": _NO_SESSION,
    "SET CONSTRAINTS": _NO_SESSION,
    "TRANSACTION": "every statement is a transaction of its own; send it without one",
    "UNLISTEN": "there is nothing to end: LISTEN is never permitted",
}


class Rules:
    """What one policy means for one snapshot of a database. Made once for the two, filled as statements ask."""

    def __init__(self, policy: Policy, catalog: Catalog) -> None:
        self.policy = policy
        self.hides = policy.hides_something
        self.functions = FunctionRules(policy, catalog)
        self.relations = RelationRules(policy, catalog, self.functions)
        self.containment = Containment(policy.taint, policy, catalog, self.relations) if policy.taint is not None else None
        self.contained = contained(policy) if policy.taint is not None else policy
        """What a tainted grant is held to."""


def rules_of(policy: Policy, catalog: Catalog) -> Rules:
    """The policy's rules for this catalog, computed once for each pair."""
    return catalog.worked_out(Rules, policy)


def decide(statement: Statement | Unparsed, policy: Policy, catalog: Catalog, *, tainted: bool = False) -> Decision:
    """What becomes of the statement. `tables` are schema-qualified, in order of appearance, at most 64.

    `tainted`: whether the grant has read a source of foreign text (docs/policy.md, Containment). A statement that reads one
    itself counts as tainted, and is told by `Allowed.reads_source`.
    """
    decision = _decided(statement, policy, catalog)
    containment = rules_of(policy, catalog).containment if policy.taint is not None else None
    if containment is None or isinstance(decision, Denied) or isinstance(statement, Unparsed):
        return decision
    source = containment.source_read(statement)
    by_itself = source is not None and (source.is_certain or any(use.writes for use in statement.relations))
    if tainted or by_itself:
        decision = _contained(statement, rules_of(policy, catalog), containment, catalog, tainted=tainted)
    if source is None:
        return decision
    match decision:
        case Denied():
            reason = f"{decision.reason}; this statement itself {source.how} {source.name}, a source of foreign text"
            return msgspec.structs.replace(decision, reason=bounded(reason))
        case Held():
            allowed = msgspec.structs.replace(decision.allowed, reads_source=source.name)
            return msgspec.structs.replace(decision, allowed=allowed)
        case Allowed():
            return msgspec.structs.replace(decision, reads_source=source.name)


def _contained(statement: Statement, rules: Rules, containment: Containment, catalog: Catalog, *, tainted: bool) -> Decision:
    refused = containment.refuse(statement, tainted=tainted)
    if refused is not None:
        tables = _tables(statement, rules.relations)
        return Denied("table_access", bounded(refused.reason), statement.kind, tables, refused.matched_rule)
    decision = _decided(statement, rules.contained, catalog)
    match decision:
        case Allowed():
            return msgspec.structs.replace(decision, is_contained=True)
        case Held():
            allowed = msgspec.structs.replace(decision.allowed, is_contained=True)
            return msgspec.structs.replace(decision, allowed=allowed)
        case Denied():
            return decision


def _decided(statement: Statement | Unparsed, policy: Policy, catalog: Catalog) -> Decision:
    if isinstance(statement, Unparsed):
        return Denied(statement.rule, bounded(statement.reason), matched_rule=statement.rule)
    rules = rules_of(policy, catalog)
    tables = _tables(statement, rules.relations)
    refused = _table_access(statement, rules, catalog)
    if refused is not None:
        return Denied("table_access", bounded(refused.reason), statement.kind, tables, refused.matched_rule)
    refused = guardrails.refuse(statement, policy.guardrails)
    if refused is not None:
        return Denied("dangerous_statement", bounded(refused.reason), statement.kind, tables, refused.matched_rule)
    allowed = Allowed(statement, tables, _matched_rule(statement, rules.relations), _needs_shield(statement, rules, catalog))
    held = guardrails.held_class(statement, policy.approvals)
    return allowed if held is None else Held(allowed, held)


def decide_unknown(statement: Statement, unknown: Unknown, policy: Policy, catalog: Catalog) -> Allowed | None:
    """What becomes of a denied statement that names what nobody knows, where that is its only trouble: it may be parsed, and must
    not run. None: the denial stands."""
    guess = assumed(unknown, policy, catalog) if is_parsed_alone(statement) else None
    if guess is None or isinstance(decide(statement, *guess), Denied):
        return None
    return Allowed(statement, _tables(statement, rules_of(policy, catalog).relations), UNKNOWN_NAME)


def unknown_names(statement: Statement, catalog: Catalog) -> Unknown | None:
    """What the statement names that neither the built-in lists nor this (read) catalog know, which is worth a refresh."""
    if not catalog.is_read:
        return None
    found = Unknown(
        tuple(use for use in statement.relations if _relation_unknown(use, catalog)),
        tuple(
            use
            for use in statement.functions
            if not is_grammar(use, catalog) and _function_unknown(use.schema, use.name, catalog)
        ),
        tuple(use for use in statement.operators if _operator_unknown(use, catalog)),
        tuple(use for use in statement.types if _type_unknown(use.schema, use.name, catalog)),
    )
    return found if any((found.relations, found.functions, found.operators, found.types)) else None


def _table_access(statement: Statement, rules: Rules, catalog: Catalog) -> Refusal | None:
    """Decisions 3.2 to 3.5: the kind of statement, then its relations, then all that it makes PostgreSQL run."""
    return (
        _kind(statement, rules)
        or _unread(statement, rules, catalog)
        or _read_otherwise(statement, catalog)
        or next(filter(None, (rules.relations.refuse(use, statement) for use in statement.relations)), None)
        or _runs(statement, rules, catalog)
    )


def _kind(statement: Statement, rules: Rules) -> Refusal | None:
    for site in statement.sites:
        if site.rule == "refused":
            place = at(statement.sql, site.position)
            if statement.category == "unsupported" or site.found.startswith(statement.kind):
                found = SEVERAL.get(site.found, site.found)
                return Refusal(f"{found}{place} {NO_TARGET}", remedy=INSTEAD.get(statement.kind, BY_OPERATOR))
            return Refusal(f"{site.found}{place} {NEVER}", remedy="leave it out of the statement")
    if statement.category == "unsupported":
        return Refusal(f"{statement.kind} {NO_TARGET}", remedy=INSTEAD.get(statement.kind, BY_OPERATOR))
    if statement.explains == "analyze" and (statement.category != "read" or any(use.writes for use in statement.relations)):
        return Refusal("EXPLAIN ANALYZE runs its statement and is permitted for reads only; leave ANALYZE out to see the plan")
    if statement.setting is not None:
        return _setting(statement.setting, rules)
    return None


def _setting(name: str, rules: Rules) -> Refusal | None:
    known = builtins.setting(name)
    if known is not None and (known.clearance is builtins.Clearance.ALLOWED):
        return None
    if known is not None and known.clearance is builtins.Clearance.OPEN_ONLY and not rules.hides:
        return None
    if known is not None and known.reason:
        return Refusal(f"SHOW {name[:63].upper()} {known.reason}")
    return Refusal(f"setting {shown(name)} is not among those that SHOW may print; no key of the policy opens it")


def _unread(statement: Statement, rules: Rules, catalog: Catalog) -> Refusal | None:
    """Until the catalog is read names alone decide. Where something is hidden that is not enough."""
    if catalog.is_read or not (rules.hides or rules.containment is not None):
        return None
    if not (statement.relations or statement.functions or statement.operators or statement.fields or statement.types):
        return None
    return Refusal(
        "the catalog of this database has not been read yet, and its policy denies, masks or contains tables that views and "
        "functions may reach; retry in a few seconds, and check that the database answers if this stays"
    )


def _read_otherwise(statement: Statement, catalog: Catalog) -> Refusal | None:
    """Where the server cuts or folds a name in another way than the parser, the decision was about another name."""
    found = other_name(statement.sql) if catalog.encoding != "UTF8" else None
    if found is None:
        return None
    return Refusal(
        f"the name{at(statement.sql, found.start)} may be another one to this database, whose encoding is {catalog.encoding}",
        remedy="write names beyond ASCII in double quotes, as they are stored, and within 63 bytes of UTF-8",
    )


def _runs(statement: Statement, rules: Rules, catalog: Catalog) -> Refusal | None:
    sql = statement.sql
    functions = rules.functions
    shielded = can_be_shielded(statement)

    def typed(index: int) -> Relation | None:
        """None where a mask or a shield is put in place of what is read: its columns may have other types than the catalog's."""
        relation = catalog.relation(*rules.relations.locate(statement.relations[index]))
        is_replaced = rules.policy.column_masks or (relation is not None and relation.oid < FIRST_USER_OID)
        return None if is_replaced else relation

    bound = Bound(sql, catalog, typed)
    for use in statement.functions:
        is_column = use.column is not None and _is_column(use.column, statement, rules.relations, catalog)
        if (refused := functions.refuse_call(use, sql, bound, is_column=is_column, shielded=shielded)) is not None:
            return refused
    for operator in statement.operators:
        if (refused := functions.refuse_operator(operator, sql, bound)) is not None:
            return refused
    for type_ in statement.types:
        if (refused := functions.refuse_type(type_, sql, bound)) is not None:
            return refused
    for read in statement.relations:
        relation = catalog.relation(*rules.relations.locate(read)) if read.reads else None
        if relation is None:
            continue
        if (refused := functions.refuse_columns(relation, statement.used_columns, sql, read.position)) is not None:
            return refused
    for field in statement.fields:
        if (refused := functions.refuse_field(field, _is_column(field, statement, rules.relations, catalog), sql)) is not None:
            return refused
    return None


def _is_column(field: FieldUse, statement: Statement, relations: RelationRules, catalog: Catalog) -> bool:
    """Whether text and catalog prove that this selection takes a column. A column shadows a function of its name."""

    def of_relation(index: int | None, *, system: bool) -> bool:
        relation = catalog.relation(*relations.locate(statement.relations[index])) if index is not None else None
        if relation is None:
            return False
        of_system = system and field.name in SYSTEM_COLUMNS and relation.kind in STORED
        return of_system or catalog.has_column(relation, field.name)

    if field.columns is not None:
        return field.name in field.columns
    for output in field.outputs or ():
        if isinstance(output, str):
            if output == field.name:
                return True
        elif field.name in (output.columns or ()) or (output.columns is None and of_relation(output.relation, system=False)):
            return True
    return of_relation(field.relation, system=True)


def _needs_shield(statement: Statement, rules: Rules, catalog: Catalog) -> bool:
    """Whether hidden things come near it: the catalog, which is shown in part, a view that only its own key opens, or a key
    between a table written and a hidden one."""
    if any(rules.relations.form(use, statement) is not None for use in statement.relations):
        return True
    if any(filtered_functions.applies(use.name, hides=rules.hides) for use in statement.functions) and can_be_shielded(statement):
        return True
    if not rules.hides:
        return False
    for use in statement.relations:
        relation = catalog.relation(*rules.relations.locate(use))
        if relation is None:
            continue
        if use.reads and rules.relations.vouches(relation):
            return True
        others = (catalog.by_oid.get(each.other) for each in relation.constraints if each.other) if use.writes else ()
        if any(other is not None and rules.relations.hides(other) for other in others):
            return True
    return False


def _tables(statement: Statement, relations: RelationRules) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for use in statement.relations:
        found[".".join(relations.locate(use))] = None
        if len(found) == TABLES:
            break
    return tuple(found)


def _matched_rule(statement: Statement, relations: RelationRules) -> str:
    """What allowed it: the key of the first relation written, else of the first one read."""
    uses = statement.relations
    deciding = next((use for use in uses if use.writes), uses[0] if uses else None)
    return relations.label(deciding) if deciding is not None else "table_access"


def _relation_unknown(use: RelationUse, catalog: Catalog) -> bool:
    if use.creates or use.schema in ("information_schema", "pg_catalog"):
        return False
    if use.schema is not None:
        return catalog.relation(use.schema, use.name) is None
    known = any(catalog.relation(schema, use.name) is not None for schema in ("pg_catalog", SEARCH_PATH))
    return not known and builtins.relation(use.name) is None


def _operator_unknown(use: OperatorUse, catalog: Catalog) -> bool:
    if use.schema in (None, "pg_catalog") and builtins.operator(use.name):
        return False
    return not any(each.schema == (use.schema or SEARCH_PATH) for each in catalog.operators_by_name.get(use.name, ()))


def _function_unknown(schema: str | None, name: str, catalog: Catalog) -> bool:
    if schema in (None, "pg_catalog", "information_schema") and builtins.function(name, schema or "pg_catalog") is not None:
        return False
    if schema in (None, "pg_catalog") and builtins.type_name(name) is not None:
        return False
    if (schema or SEARCH_PATH, name) in catalog.types:
        return False
    return not any(each.schema == (schema or SEARCH_PATH) for each in catalog.functions_by_name.get(name, ()))


def _type_unknown(schema: str | None, name: str, catalog: Catalog) -> bool:
    if schema in (None, "pg_catalog") and (builtins.type_name(name) is not None or name in SERIALS):
        return False
    spelled = ((schema or SEARCH_PATH, each) for each in (name, name.removeprefix("_")))
    return schema != "information_schema" and not any(each in catalog.types or each in catalog.relations for each in spelled)
