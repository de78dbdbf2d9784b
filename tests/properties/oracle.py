"""What PostgreSQL itself says that a statement touches: the rule of a view made from it, and its plan."""

import re
from typing import Any, Final

import msgspec

from gatewayd.catalog import Catalog
from gatewayd.policy.decide.decision import Rules
from gatewayd.policy.decide.outcomes import Allowed
from gatewayd.policy.file.model import Policy
from gatewayd.postgres.execute.failure import FAILURES
from gatewayd.postgres.execute.result import ExecutionFailed
from gatewayd.postgres.execute.wrap import own_text
from gatewayd.sql.bind.bound import Bound
from gatewayd.sql.builtins import filtered_functions
from gatewayd.sql.builtins import lookup as builtins
from gatewayd.sql.builtins.lookup import Clearance
from gatewayd.sql.facts.statement import Statement, TypeUse
from tests.properties.world import World

_VIEW: Final = "gatewayd_oracle"
_RULE: Final = f"""
    SELECT ev_action::text AS tree,
      (SELECT array_agg(refobjid::int8) FROM pg_depend d WHERE d.objid = r.oid AND refclassid = 'pg_class'::regclass) AS needs
    FROM pg_rewrite r WHERE ev_class = '{_VIEW}'::regclass"""
_RELATIONS: Final = re.compile(r":relid (\d+)")
_FUNCTIONS: Final = re.compile(r":(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)")

_RESULT_TYPES: Final = re.compile(r":resulttype (\d+)")


async def disagreements(world: World, allowed: Allowed, policy: Policy) -> list[str]:
    """What the server touches for this statement and the decision did not allow."""
    rules = Rules(policy, world.catalog)
    found = []
    if allowed.statement.form == "query":
        found += await _by_view(world, allowed, rules)
    if allowed.statement.form in ("query", "dml"):
        found += await _by_plan(world, allowed.statement, rules)
    return found


async def _by_view(world: World, allowed: Allowed, rules: Rules) -> list[str]:
    statement = allowed.statement
    text = own_text(statement)[0]
    async with world.one.oracle.connection() as connection:
        try:
            await connection.execute("BEGIN READ WRITE")
            await connection.execute(f"CREATE VIEW {_VIEW} AS SELECT 1 AS one FROM (\n{text}\n) AS q")
            [rule] = await connection.fetch(_RULE)
        except (*FAILURES, ExecutionFailed):
            return []
        finally:
            await connection.rollback()
    tree: str = rule["tree"]
    found = []
    named = {rules.relations.locate(use) for use in statement.relations}
    for oid in set(map(int, _RELATIONS.findall(tree))):
        relation = world.names.relations.get(oid)
        if relation is not None and relation not in named:
            found.append(f"the view reads {relation[0]}.{relation[1]}, which the statement was not checked for")
    functions = set(map(int, _FUNCTIONS.findall(tree)))
    nothing_bound = Bound("", world.catalog, lambda index: None)
    found += [why for oid in sorted(functions) if (why := _refused_function(world, oid, allowed, rules)) is not None]
    for oid in set(map(int, _RESULT_TYPES.findall(tree))):
        schema, name = world.names.types.get(oid, ("", ""))
        type_ = world.catalog.types.get((schema, name))
        if (
            type_ is not None
            and type_.kind == "domain"
            and (refused := rules.functions.refuse_type(TypeUse(schema, name, -1), "", nothing_bound))
        ):
            found.append(f"the view converts to a domain that is refused: {refused.reason}")
    return found


def _refused_function(world: World, oid: int, allowed: Allowed, rules: Rules) -> str | None:
    own = world.catalog.functions.get(oid)
    if own is not None:
        blocked = rules.functions.refuse_function(own)
        return f"the view runs {own.schema}.{own.name}: {blocked.why}" if blocked is not None else None
    schema, name = world.names.functions.get(oid, ("pg_catalog", f"oid {oid}"))
    verdict = builtins.function(name, schema)
    if allowed.needs_shield and schema == "pg_catalog" and filtered_functions.applies(name, hides=rules.hides):
        return None  # replaced when it runs: what it gives of hidden relations is NULL
    of_name = [(use.name, use.arguments) for use in allowed.statement.functions if use.name == name]
    if of_name and builtins.HARMLESS_WITH.issuperset(of_name):
        return None
    # Casts, operators and the grammar's own forms reach functions that may not be called by name.
    if (
        verdict is None
        or (verdict.clearance is Clearance.OPEN_ONLY and rules.hides)
        or (verdict.clearance is Clearance.REFUSED and not _is_form(verdict.reason))
    ):
        return f"the view runs {name}, which {verdict.reason if verdict else 'is on no list'}"
    return None


def _is_form(reason: str) -> bool:
    return reason in (builtins.SUPPORT_ROUTINE, builtins.CONVERSION_ROUTINE)


async def _by_plan(world: World, statement: Statement, rules: Rules) -> list[str]:
    text = own_text(statement)[0]
    if not rules.hides and any(use.name in world.catalog.functions_by_name for use in statement.functions):
        return []  # an SQL function may be written out in the plan; where nothing is hidden it may read what it likes
    async with world.one.oracle.connection() as connection:
        try:
            rows = await connection.fetch(f"EXPLAIN (VERBOSE, FORMAT JSON) {text}")
        except ExecutionFailed:
            return []
    reached = reach(world.catalog, {rules.relations.locate(use) for use in statement.relations})
    # Of the server's own views the catalog keeps no definitions: their review speaks for what they read.
    looks_at_system = any(schema in ("pg_catalog", "information_schema") for schema, _ in reached)
    found = []
    for schema, name in sorted(_relations(msgspec.json.decode(rows[0][0]))):
        if (schema, name) not in reached and not (schema == "pg_catalog" and looks_at_system):
            found.append(f"the plan touches {schema}.{name}, which is reached by nothing that was checked")
    return found


def _relations(plan: Any) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    ahead = [plan]
    while ahead:
        each = ahead.pop()
        if isinstance(each, dict):
            if "Relation Name" in each:
                found.add((each.get("Schema", ""), each["Relation Name"]))
            ahead.extend(each.values())
        elif isinstance(each, list):
            ahead.extend(each)
    return found


def reach(catalog: Catalog, names: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The relations and all below them by views, children and rules, as the catalog knows it."""
    found = set(names)
    ahead = [relation for name in names if (relation := catalog.relation(*name)) is not None]
    while ahead:
        relation = ahead.pop()
        for oid in (*relation.reads, *relation.children, *relation.rule_targets(None)):
            below = catalog.by_oid.get(oid)
            if below is not None and (below.schema, below.name) not in found:
                found.add((below.schema, below.name))
                ahead.append(below)
    return found
