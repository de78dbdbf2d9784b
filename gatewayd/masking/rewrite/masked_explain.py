"""EXPLAIN over masked relations: the original statement's plan, without what tells of masked values (decision 10). Pure.

Row estimates and widths come from statistics of the values themselves (a common value is estimated exactly), so they are left out
by `COSTS OFF`. The shape of a plan follows the estimates, so a statement that uses a masked column for anything but showing it is
not explained at all.
"""

from typing import Final

import msgspec

from gatewayd.masking.rewrite.source_rewrite import Edit, NotRewritten, TooLarge, in_characters, parsed, plain, spliced
from gatewayd.masking.rules.mentions import mentions, nodes
from gatewayd.sql.facts.statement import Statement
from gatewayd.sql.text.parse import NotParsed, parse, tokens_of

_GROUPS: Final = ("distinctClause", "groupClause", "larg")
_WITHOUT_COSTS: Final = '{"DefElem":{"defname":"costs","arg":{"String":{"sval":"off"}},"defaction":"DEFELEM_UNSPEC"}}'


def refusal(statement: Statement, masked: frozenset[str]) -> str | None:
    """Why the plan of the statement is not shown. `masked`: names of the masked columns of the relations in it."""
    tree = parse(statement.sql).node
    named = mentions(tree)
    if any(name in named.names for name in masked):
        return "it names masked columns, and a plan follows the statistics of their values"
    groups = any(kind == "SelectStmt" and any(part in body for part in _GROUPS) for kind, body in nodes(tree))
    if named.everything and groups:
        return "it may group masked columns, and a plan follows the statistics of their values"
    return None


def without_costs(statement: Statement) -> tuple[Statement, tuple[tuple[int, int, int], ...]]:
    """The same EXPLAIN with COSTS OFF. Raises NotRewritten."""
    tree = parse(statement.sql)
    tokens = tokens_of(tree)
    options = tree.node["ExplainStmt"].get("options", [])
    first, second = tokens[0], tokens[1]
    if not options:
        edit = Edit(first.end, first.end, " (COSTS OFF) ")
    elif second.name == "ASCII_40":
        closing = next(token for token in tokens if token.name == "ASCII_41")  # options hold no brackets
        edit = Edit(closing.start, closing.start, ", COSTS OFF")
    else:  # EXPLAIN VERBOSE …
        edit = Edit(second.start, second.end, "(VERBOSE, COSTS OFF)")
    text = spliced(tree.data, [edit])
    try:
        node = parse(tree.data.decode(), whole=True).node
    except NotParsed:
        raise TooLarge from None
    node["ExplainStmt"]["options"] = [*options, msgspec.json.decode(_WITHOUT_COSTS)]
    if plain(node) != plain(parsed(text)):
        raise NotRewritten("the rewritten EXPLAIN does not say what it should")
    moved = len(text.encode()) - len(tree.data)
    explained = msgspec.structs.replace(statement, sql=text, text_end=statement.text_end + moved)
    return explained, in_characters(tree.data, [edit])
