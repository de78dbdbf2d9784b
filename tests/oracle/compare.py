"""What the server bound against what gatewayd's facts named and its policy checked."""

from typing import Final, Literal

import msgspec

from gatewayd.catalog import FIRST_USER_OID, Catalog
from gatewayd.policy.decide.decision import Rules, decide
from gatewayd.policy.decide.function_rules import is_grammar
from gatewayd.policy.decide.outcomes import Allowed
from gatewayd.policy.file.model import Policy
from gatewayd.sql.builtins import filtered_functions
from gatewayd.sql.builtins import lookup as builtins
from gatewayd.sql.builtins.lookup import Clearance
from gatewayd.sql.facts.statement import Statement
from tests.oracle.server import Bound, Names

WRITTEN_OTHERWISE: Final = frozenset({"bernoulli", "grouping", "merge_action", "system", "xmlexists"})
"""Calls to the parser that are none in the bound tree."""

Kind = Literal["relation", "function", "operator", "cast"]


class Difference(msgspec.Struct, frozen=True):
    kind: Kind
    name: str
    unchecked: bool  # the server binds it and we did not check it; else we checked more than it binds


def differences(statement: Statement, bound: Bound, names: Names, catalog: Catalog, policy: Policy) -> list[Difference]:
    """Everything in which the facts of a statement are not what the server bound."""
    found: list[Difference] = []
    rules = catalog.worked_out(Rules, policy)
    named = {rules.relations.locate(use) for use in statement.relations}
    relations = {names.relations[oid] for oid in bound.relations}
    found += [Difference("relation", ".".join(each), True) for each in relations - named]
    found += [Difference("relation", ".".join(each), False) for each in named - relations]

    called = {(use.schema, use.name) for use in statement.functions if not is_grammar(use, catalog) and use.column is None}
    selected = {use.name for use in statement.fields} | {use.name for use in statement.functions if use.column is not None}
    calls = {names.functions[oid] for oid in bound.calls}
    for schema, name in calls:
        if not ({(schema, name), (None, name)} & called or name in selected):
            found.append(Difference("function", f"{schema}.{name}", True))
    bound_names = {name for _, name in calls} | {names.functions[oid][1] for oid in bound.functions}
    # A name that is called may be that of a type: then it is a cast.
    bound_names |= {names.types[oid][1] for oid in bound.types}
    unbound = {name for _, name in called} - bound_names - WRITTEN_OTHERWISE
    found += [Difference("function", name, False) for name in unbound]

    used = {(use.schema, use.name) for use in statement.operators}
    operators = {names.operators[oid][:2] for oid in bound.operators}
    for schema, name in operators:
        if not {(schema, name), (None, name)} & used:
            found.append(Difference("operator", f"{schema}.{name}", True))
    return found


def hidden_from_us(statement: Statement, bound: Bound, names: Names, catalog: Catalog, policy: Policy) -> list[str]:
    """Of an allowed statement: what the server would run or read that the policy does not permit. Must be empty."""
    decision = decide(statement, policy, catalog)
    if not isinstance(decision, Allowed):
        return []
    rules = catalog.worked_out(Rules, policy)
    run = {*bound.functions, *(names.operators[oid][2] for oid in bound.operators)}
    found: list[str] = []
    for oid in run:
        schema, name = names.functions[oid]
        if oid >= FIRST_USER_OID:
            function = catalog.functions.get(oid)
            if function is None or rules.functions.refuse_function(function) is not None:
                found.append(f"function {schema}.{name}")
        elif oid in bound.calls and schema == "pg_catalog":
            builtin = builtins.function(name)
            refused = builtin is None or builtin.clearance is Clearance.REFUSED
            replaced = decision.needs_shield and filtered_functions.applies(name, hides=policy.hides_something)
            if refused and not replaced and not _permitted_call(name, statement):
                found.append(f"function {schema}.{name}")
    located = {rules.relations.locate(use) for use in statement.relations}
    found += [".".join(names.relations[oid]) for oid in bound.relations if names.relations[oid] not in located]
    return found


def _permitted_call(name: str, statement: Statement) -> bool:
    """Overloads and constants that the rules let through by themselves."""
    return name == "current_setting" or any((name, use.arguments) in builtins.HARMLESS_WITH for use in statement.functions)
