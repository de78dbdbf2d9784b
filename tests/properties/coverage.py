"""`python -m tests.properties.coverage`: the parser's node types, how each is treated, and which the generator reaches."""

import json
from random import Random
from typing import Any, Final

import trio
from pglast import ast
from pglast.parser import ParseError, parse_sql_json

from gatewayd.sql.facts import kinds
from gatewayd.sql.facts.grammar import EXPRESSIONS, HANDLED, NODES
from tests.properties.model import Model
from tests.properties.policies import HIDING
from tests.properties.statements import generate
from tests.properties.world import connected, servers

NOT_GENERATED: Final = frozenset({"Boolean", "Float", "BitString", "PartitionRangeDatum", "AlterPolicyStmt", "ATAlterConstraint"})
"""Values without a name of their own in the tree, and two that are drawn too rarely to count on."""


def reached(model: Model, statements: int) -> set[str]:
    """Node types in that many generated statements."""
    found: set[str] = set()
    for seed in range(statements):
        try:
            tree = json.loads(parse_sql_json(generate(Random(seed), Random(seed), model, 4)))
        except (ParseError, ValueError, RecursionError):
            continue
        _collect(tree, found)
    return found


def _collect(tree: Any, found: set[str]) -> None:
    ahead = [tree]
    while ahead:
        each = ahead.pop()
        if isinstance(each, dict):
            found.update(name for name in each if name[:1].isupper())
            found.update(_TYPED[name] for name in each if name in _TYPED)
            ahead.extend(each.values())
        elif isinstance(each, list):
            ahead.extend(each)


# Fields whose value is a node without its type's name: the grammar gives it.
_TYPED: Final = {field: kind for form in NODES.values() for field, kind in form.children if kind} | {
    "withClause": "WithClause",
    "relation": "RangeVar",
    "alias": "Alias",
    "onConflictClause": "OnConflictClause",
    "infer": "InferClause",
    "returningClause": "ReturningClause",
    "intoClause": "IntoClause",
    "into": "IntoClause",
    "search_clause": "CTESearchClause",
    "cycle_clause": "CTECycleClause",
    "partspec": "PartitionSpec",
    "partbound": "PartitionBoundSpec",
    "newowner": "RoleSpec",
}


def in_queries() -> set[str]:
    """The node types that the walk knows."""
    return set(NODES)


def grammar() -> set[str]:
    """Every node type of the parser."""
    types = ((name, each) for name, each in vars(ast).items() if isinstance(each, type))
    return {name for name, each in types if issubclass(each, ast.Node) and each is not ast.Node}


async def _print() -> None:
    with servers() as pair:
        async with connected(pair, HIDING.limits) as world:
            found = reached(world.model, 20_000)
    every, known = grammar(), set(NODES)
    denied = set(kinds.DENIED) & every
    print(f"{len(every)} node types in the parser")
    print(f"{len(set(HANDLED) & every):5} with a handler, {len(set(EXPRESSIONS) & every)} walked field by field")
    print(f"{len(denied):5} statement kinds that are denied by name")
    print(f"{len(every - known - denied):5} others, refused anywhere: made after parsing, or parts of denied statements")
    print(
        f"{len(found & known):5} of the {len(known)} known ones are in 20000 generated statements; not: {_listed(known - found)}"
    )
    print(f"{len(found & denied):5} of the denied kinds; not: {_listed(denied - found)}")


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


if __name__ == "__main__":
    trio.run(_print)
