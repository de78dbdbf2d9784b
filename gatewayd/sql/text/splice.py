"""Where the shell may splice a row-writing statement: its RETURNING list, or the main query below a data-modifying WITH.

See decision 11. Spans are byte offsets. The main query has no position of its own in the tree, so its span is found among the
tokens and then proved by parsing it alone, MOST_TRIES times at most.
"""

from itertools import islice

import msgspec

from gatewayd.sql.text import bulk
from gatewayd.sql.text.parse import MAX_WHOLE_BYTES, Node, NotParsed, Tree, parse, tokens_of
from gatewayd.sql.text.tokens import Token

_STARTS = frozenset({"SELECT", "VALUES", "TABLE", "ASCII_40", "WITH"})
_OPEN, _CLOSE = "ASCII_40", "ASCII_41"
_COMMA = "ASCII_44"
MOST_TRIES = 8


def of_returning(tree: Tree, body: Node) -> tuple[int, int] | None:
    """The list after RETURNING, which ends the statement; None without one."""
    clause = body.get("returningClause")
    if clause is None:
        return None
    return clause["exprs"][0]["ResTarget"].get("location", 0), tree.end


def of_main_query(tree: Tree, body: Node) -> tuple[int, int] | None:
    """The SELECT without its WITH; None where it cannot be told apart for certain, or is too large to prove it."""
    if "withClause" not in body or len(tree.json) > MAX_WHOLE_BYTES:
        return None
    tokens = tokens_of(tree)
    first_body = body["withClause"].get("location", 0)
    depth = opened = tries = 0
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
            and tokens[index - 2].name != _COMMA  # the column list of the next WITH query
            and tries < MOST_TRIES
        ):
            tries += 1
            span = _verified(tree, token.start, _end(tokens, index, tree.end), main)
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
    try:
        found = parse(tree.data[start:end].decode())
    except NotParsed:
        return None
    return (start, end) if _plain(found.node) == _plain(main) else None


def _plain(node: Node) -> str:
    return bulk.without_positions(msgspec.json.encode(node).decode())


def _end(tokens: list[Token], first: int, end: int) -> int:
    """Where the query that starts at that token must end: before a bracket that closes around it."""
    depth = 0
    for token in islice(tokens, first, None):
        if token.name == _OPEN:
            depth += 1
        elif token.name == _CLOSE:
            depth -= 1
            if depth < 0:
                return token.start
    return end
