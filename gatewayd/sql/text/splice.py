"""Where the shell may splice a row-writing statement: its RETURNING list, or the main query below a data-modifying WITH.

See decision 11. Spans are byte offsets. The main query has no position of its own in the tree, so its span is found among the
tokens and then proved by parsing it alone.
"""

import re

import msgspec

from gatewayd.sql.text.parse import Node, NotParsed, Tree, parse
from gatewayd.sql.text.tokens import Token, scan

_STARTS = frozenset({"SELECT", "VALUES", "TABLE", "ASCII_40", "WITH"})
_OPEN, _CLOSE = "ASCII_40", "ASCII_41"
_POSITION = re.compile(r',?"(?:\w*location|stmt_len|\w*list_(?:start|end))":-?\d+')


def of_returning(tree: Tree, body: Node) -> tuple[int, int] | None:
    """The list after RETURNING, which ends the statement; None without one."""
    clause = body.get("returningClause")
    if clause is None:
        return None
    return clause["exprs"][0]["ResTarget"].get("location", 0), tree.end


def of_main_query(tree: Tree, body: Node) -> tuple[int, int] | None:
    """The SELECT without its WITH; None where it cannot be told apart for certain."""
    if "withClause" not in body:
        return None
    tokens = scan(tree.data[tree.start : tree.end])
    first_body = body["withClause"].get("location", 0) - tree.start
    depth = opened = 0
    bodies_end = None  # the closing bracket of the last WITH query so far
    main = {"SelectStmt": {key: value for key, value in body.items() if key != "withClause"}}
    for index, token in enumerate(tokens):
        if token.start < first_body:
            opened += token.name == _OPEN
            depth = opened
            continue
        if (
            depth == opened
            and bodies_end is not None
            and token.name in _STARTS
            and tokens[index - 1].name not in ("AS", "MATERIALIZED")
        ):
            span = _verified(tree, token.start, _end(tokens[index:], tree.end - tree.start), main)
            if span is not None:
                return span
        if token.name == _OPEN:
            depth += 1
        elif token.name == _CLOSE:
            depth -= 1
            bodies_end = token.end if depth == opened else bodies_end
    return None


def _verified(tree: Tree, start: int, end: int, main: Node) -> tuple[int, int] | None:
    """The span, moved to the whole text, when it holds the main query and nothing else."""
    start, end = start + tree.start, end + tree.start
    try:
        found = parse(tree.data[start:end].decode())
    except NotParsed:
        return None
    return (start, end) if _without_positions(found.node) == _without_positions(main) else None


def _without_positions(node: Node) -> str:
    return _POSITION.sub("", msgspec.json.encode(node).decode())


def _end(tokens: list[Token], end: int) -> int:
    """Where the query that starts at the first token must end: before a bracket that closes around it."""
    depth = 0
    for token in tokens:
        if token.name == _OPEN:
            depth += 1
        elif token.name == _CLOSE:
            depth -= 1
            if depth < 0:
                return token.start
    return end
