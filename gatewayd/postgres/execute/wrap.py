"""The agent's text inside the text that is sent: COPY of one JSON text column, both limits on the server (decisions 6, 11). Pure.

The statement stands on lines of its own, so that a trailing comment cannot swallow a bracket. Every composed text is parsed again
and must contain the agent's own tree, unchanged, at the place made for it; what does not is not sent.
"""

from functools import lru_cache
from typing import Any, Final

import msgspec
from pglast.parser import ParseError, parse_sql_json

from gatewayd.policy.file.model import Limits
from gatewayd.sql.facts.statement import Statement
from gatewayd.sql.text import bulk
from gatewayd.sql.text.parse import MAX_WHOLE_BYTES, Tree, tokens_of
from gatewayd.sql.text.tokens import quoted

_HEAD: Final = "COPY ("
_TAIL: Final = " TO STDOUT (FORMAT binary)"
_LIST_POSITIONS: Final = frozenset({"list_start", "list_end", "rexpr_list_start", "rexpr_list_end"})  # of `IN (…)`, `ARRAY[…]`
_MAIN_KEYWORDS: Final = frozenset({"INSERT", "UPDATE", "DELETE_P", "MERGE"})


LARGEST_TEXT_BYTES: Final = 8 * 1024 * 1024
"""Of all values of one row under keyed masks, as text. Longer ones show in how the answer ends, and are no names, numbers or
addresses."""


class NotWrapped(Exception):
    """The composed text does not contain the statement unchanged: a bug here, and nothing runs."""


class TooLargeToWrap(NotWrapped):
    """Its tree is too large to prove that: nothing runs."""


class Shown(msgspec.Struct, frozen=True):
    """How the wrapper shows the statement's output columns, `q` in SQL."""

    names: tuple[str, ...] | None = None
    """New names for all of them, None where they keep theirs."""
    items: tuple[str, ...] = ()
    """A select list over them, which puts masks over some; () for all as they are."""
    values: tuple[str, ...] = ()
    """Texts that follow each row, in fields of their own. Their bytes do not count: what is masked only later must not show in
    what the limits leave. But a row with more of them than LARGEST_TEXT_BYTES ends the answer: it would have to be held whole."""
    is_planned_apart: bool = False
    """The statement is planned as if there was no limit on its rows."""


AS_THEY_ARE: Final = Shown()


class Sent(msgspec.Struct, frozen=True, gc=False):
    """A composed text. `pieces` tell where the agent's text stands in it: (start in `text`, start in the agent's, length), all
    in characters from 0."""

    text: str
    pieces: tuple[tuple[int, int, int], ...]

    def position(self, at: int) -> int | None:
        """A position in `text` (1-based, as PostgreSQL counts) as one in the agent's text; None outside of it."""
        for start, own, length in self.pieces:
            if start < at <= start + length + 1:  # one past the end: "syntax error at end of input"
                return at - start + own
        return None

    def bindable(self) -> "Sent":
        """Without the COPY around it, which takes no parameters: a SELECT of the same single text column."""
        start = len(_HEAD)
        return Sent(self.text[start : -len(f"){_TAIL}")], tuple((at - start, own, length) for at, own, length in self.pieces))

    def behind(self, prefix: str, suffix: str = "") -> "Sent":
        """The same text with `prefix` before it and `suffix` behind it."""
        return Sent(prefix + self.text + suffix, tuple((start + len(prefix), own, length) for start, own, length in self.pieces))


def own_text(statement: Statement) -> tuple[str, int]:
    """The statement itself, without its `;` and what stands around it, and where in the agent's text it begins, in characters."""
    sql, start, end = statement.sql, statement.text_start, statement.text_end
    if sql.isascii():
        return sql[start:end], start
    data = sql.encode()
    return data[start:end].decode(), len(data[:start].decode())


def wrap_query(statement: Statement, limits: Limits, shown: Shown) -> Sent:
    """For form `query`. Raises NotWrapped."""
    own, offset = own_text(statement)
    if shown.is_planned_apart:
        head = f"{_HEAD}WITH q{_column_list(shown)} AS MATERIALIZED (\n"
        rows = f"{_opened(shown)}q{_closed(shown)} LIMIT {limits.max_rows + 1}"
        json = _json(own)
        if not _bare(json).startswith('{"SelectStmt":'):
            raise NotWrapped
        return _as_with_query(own, offset, head, f"\n) {_limited(limits, shown, counts=False)}({rows}) AS r){_TAIL}", json)
    head = f"COPY ({_limited(limits, shown, counts=False)}({_opened(shown)}(\n"
    text = f"{head}{own}\n) AS q{_column_list(shown)}{_closed(shown)} LIMIT {limits.max_rows + 1}) AS r){_TAIL}"
    # Blanks in place of the head give both trees the same positions, so that equal trees are equal texts.
    tree = _json(" " * len(head.encode()) + own)  # positions are bytes, and a masked column may have any name
    start, end = tree.find('"stmt":') + len('"stmt":'), tree.rfind(',"stmt_location":')
    if not _json(text).startswith(head_json(head) + tree[start:end] + ',"alias":{"aliasname":"q"'):
        raise NotWrapped
    return Sent(text, ((len(head), offset, len(own)),))


def wrap_returning(statement: Statement, limits: Limits, shown: Shown) -> Sent:
    """For INSERT, UPDATE, DELETE and MERGE with RETURNING: the statement becomes the last WITH query, which PostgreSQL always
    runs to its end. Raises NotWrapped.

    Not the RETURNING list wrapped in place: `RETURNING *` cannot stand in a subquery, and the bytes could not be limited.
    """
    own, offset = own_text(statement)
    name = _unused_name(own)
    opening = f"{name}{_column_list(shown)} AS (\n"
    ending = f"\n) {_limited(limits, shown, counts=True)}({_opened(shown)}{name} AS q{_closed(shown)}) AS r){_TAIL}"
    json = _json(own)
    if '"withClause":' not in json:  # no WITH at any depth, and a constant cannot look like one
        return _as_with_query(own, offset, f"{_HEAD}WITH {opening}", ending, json)

    tree = _tree(own, json)
    [(kind, node)] = tree.node.items()
    has_with = "withClause" in node
    main = _main_keyword(tree) if has_with else 0
    opening = f"{', ' if has_with else 'WITH '}{opening}"
    text = f"{_HEAD}{own[:main]}{opening}{own[main:]}{ending}"
    known = node.pop("withClause", {"ctes": []})
    wrapped = _copied_query(text)["withClause"]
    *others, last = wrapped["ctes"]
    if not (
        _equal(others, known["ctes"])
        and wrapped.get("recursive", False) == known.get("recursive", False)
        and _equal(last["CommonTableExpr"]["ctequery"], {kind: node})
    ):
        raise NotWrapped
    before_main = len("COPY (")
    return Sent(text, ((before_main, offset, main), (before_main + main + len(opening), offset + main, len(own) - main)))


def _as_with_query(own: str, offset: int, head: str, ending: str, json: str) -> Sent:
    """`own`, whose tree is `json`, between the two. Raises NotWrapped."""
    before, behind = _around(head, ending)
    if bulk.without_positions(_json(f"{head}{own}{ending}")) != before + _bare(json) + behind:
        raise NotWrapped
    return Sent(f"{head}{own}{ending}", ((len(head), offset, len(own)),))


def wrap_below_with(statement: Statement, limits: Limits, shown: Shown) -> Sent:
    """For a SELECT under a data-modifying WITH, which must stay at the top: only the main query is wrapped. Raises NotWrapped."""
    own, offset = own_text(statement)
    if statement.splice is None:
        raise TooLargeToWrap
    data = own.encode()
    start, end = (len(data[: byte - statement.text_start].decode()) for byte in statement.splice)
    opening = f"{_limited(limits, shown, counts=False)}({_opened(shown)}(\n"
    ending = f"\n) AS q{_column_list(shown)}{_closed(shown)} LIMIT {limits.max_rows + 1}) AS r){_TAIL}"
    if own[end:].strip():
        raise NotWrapped
    text = f"COPY ({own[:start]}{opening}{own[start:end]}{ending}"

    node = _tree(own, _json(own)).node["SelectStmt"]
    before = node.pop("withClause")
    wrapped = _copied_query(text)
    inner = wrapped
    for _ in range(2):
        inner = inner["fromClause"][0]["RangeSubselect"]["subquery"]["SelectStmt"]
    if not (_equal(wrapped["withClause"], before) and _equal(inner, node)):
        raise NotWrapped
    before_main = len("COPY (")
    return Sent(text, ((before_main, offset, start), (before_main + start + len(opening), offset + start, end - start)))


def as_written(statement: Statement) -> Sent:
    """The statement without a wrapper, for one that cannot be wrapped."""
    own, offset = own_text(statement)
    return Sent(own, ((0, offset, len(own)),))


def _opened(shown: Shown) -> str:
    """The row as JSON, and the texts that follow it; what comes next is the statement as `q`. `q` alone would be a column of that
    name."""
    values = "".join(f", {value} AS v{number}" for number, value in enumerate(shown.values))
    return f"SELECT pg_catalog.row_to_json({'s' if shown.items else 'q'}.*)::pg_catalog.text AS j{values} FROM "


def _closed(shown: Shown) -> str:
    """A select list stands beside the statement: PostgreSQL makes the JSON of its values at once. In a query around the
    statement, with the LIMIT in it, it forms and reads one more row in between, 0.9 µs each."""
    return f", LATERAL (SELECT {', '.join(shown.items)}) AS s" if shown.items else ""


def _limited(limits: Limits, shown: Shown, *, counts: bool) -> str:
    """The outer half of the wrapper: rows past `max_bytes` become NULL; with `counts`, those past `max_rows` too."""
    running = "OVER (ROWS UNBOUNDED PRECEDING)"
    also = f" AND pg_catalog.count(*) {running} <= {limits.max_rows}" if counts else ""
    if shown.values:
        lengths = (f"coalesce(pg_catalog.octet_length(v{number}), 0)::pg_catalog.int8" for number in range(len(shown.values)))
        also += f" AND {' + '.join(lengths)} <= {LARGEST_TEXT_BYTES}"
    within = f"CASE WHEN pg_catalog.sum(pg_catalog.octet_length(j)) {running} <= {limits.max_bytes}{also} THEN"
    values = "".join(f", {within} v{number} END" for number in range(len(shown.values)))
    return f"SELECT {within} j END{values} FROM "


def _column_list(shown: Shown) -> str:
    return f"({', '.join(map(quoted, shown.names))})" if shown.names is not None else ""


def _json(sql: str) -> str:
    try:
        text: str = parse_sql_json(sql)
    except ParseError as error:
        raise NotWrapped from error
    return text


@lru_cache(maxsize=64)
def head_json(head: str) -> str:
    """What the parser prints for `head` up to the place of the statement."""
    probe = _json(f"{head}VALUES (1)\n) AS q) AS r){_TAIL}")
    return probe[: probe.index('{"SelectStmt":{"valuesLists"')]


@lru_cache(maxsize=64)
def _around(head: str, ending: str) -> tuple[str, str]:
    """What the tree of a wrapped statement holds before and behind its own tree, both as text without positions."""
    probe = "INSERT INTO t DEFAULT VALUES RETURNING 1"
    before, _, behind = bulk.without_positions(_json(f"{head}{probe}{ending}")).partition(_bare(_json(probe)))
    return before, behind


def _bare(json: str) -> str:
    """The tree of the one statement, as text without positions."""
    _, stmt, tree = json.partition('"stmt":')
    if not stmt:
        raise NotWrapped  # no statement at all
    return bulk.without_positions(tree[: tree.rindex("}]}")])


def _tree(sql: str, json: str) -> Tree:
    """The one statement of a text. Raises NotWrapped."""
    if len(json) > MAX_WHOLE_BYTES:
        raise TooLargeToWrap
    statements = msgspec.json.decode(json)["stmts"]
    if len(statements) != 1:
        raise NotWrapped
    data = sql.encode()
    return Tree(data, json, statements[0]["stmt"], 0, len(data))


def _copied_query(text: str) -> dict[str, Any]:
    query: dict[str, Any] = _tree(text, _json(text)).node["CopyStmt"]["query"]["SelectStmt"]
    return query


def _equal(one: Any, other: Any) -> bool:
    """Whether two trees differ in positions only. With a stack of its own: trees may be deeper than Python's."""
    pairs = [(one, other)]
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            keys = {key for key in (*a, *b) if not key.endswith("location") and key not in _LIST_POSITIONS}
            if any(key not in a or key not in b for key in keys):
                return False
            pairs += [(a[key], b[key]) for key in keys]
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            pairs += zip(a, b, strict=True)
        elif a != b:
            return False
    return True


def _main_keyword(tree: Tree) -> int:
    """Where, in characters, the statement below the WITH clause begins."""
    depth = 0
    for token in tokens_of(tree):
        if token.name == "ASCII_40":
            depth += 1
        elif token.name == "ASCII_41":
            depth -= 1
        elif depth == 0 and token.name in _MAIN_KEYWORDS:
            return len(tree.data[: token.start].decode())
    raise NotWrapped


def _unused_name(sql: str) -> str:
    folded = sql.lower()
    number = 1
    while f"gatewayd_{number}" in folded:
        number += 1
    return f"gatewayd_{number}"
