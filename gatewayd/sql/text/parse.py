"""Text of one statement -> the parser's tree, within bounds (decision 3.1). Nothing here looks at what the tree means.

The parser is PostgreSQL's own (pglast, the grammar of PostgreSQL 18), read as JSON: nodes are dicts `{"SelectStmt": {...}}`,
fields that hold their default (0, false, empty) are absent. Its positions are byte offsets into the UTF-8 text. Every bound is
checked before the step that it protects: the scanner is quadratic in runs of operator characters, and the JSON repeats the source
of a `SET (a, b) = …` for each column.
"""

import re
from typing import Any

import msgspec
from pglast.parser import ParseError, parse_sql_json

from gatewayd.sql.text import bulk
from gatewayd.sql.text.tokens import BLANK, Token, scan
from gatewayd.sql.text.weight import is_too_heavy

Node = dict[str, Any]
"""A node's body, or `{type: body}` where the grammar allows several types."""

MAX_BYTES = 1024 * 1024
MAX_JSON_BYTES = 32 * 1024 * 1024  # the parser's answer
MAX_TREE_BYTES = 9 * 256 * 1024  # of it, what is left without constants in bulk: some 27 000 nodes
MAX_WHOLE_BYTES = 1024 * 1024  # of it, where every node becomes an object, and the text is scanned
MAX_TAIL_COMMENTS = 10_000
TOO_MANY_PARTS = "the statement has too many parts; send it in several smaller ones"
TOO_DEEP = "the statement is nested too deeply; flatten it"
MAX_RESCANS = 4_000_000  # characters the scanner may read again: some tens of milliseconds
MAX_REPEATED_BYTES = 1_000_000  # text that multi-column assignments may repeat in the tree
MAX_MESSAGE = 200
SCANNED_BYTES = 8 * 1024

_OPERATORS = re.compile(rb"[~!@#^&|`?+\-*/%<>=]{64,}")
_SET = re.compile(rb"\bset\b", re.IGNORECASE)
# A bracket closed right before `=` (or before a comment, which may hide it), unless it holds one plain thing: `lower(x) =`.
_ASSIGNED_LIST = re.compile(rb"(\([^(),]*)?\)\s*(?:=|--|/\*)")
_PLACEHOLDER = re.compile(r'"ParamRef":\{(?:"number":-?\d+)?,?(?:"location":(\d+))?')
_NEAR = re.compile(r'at or near "(.*)"$', re.DOTALL)
_LOCATION = re.compile(r'"location":(\d+)')
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class NotParsed(Exception):
    """The text is not one statement within bounds; `str()` is the reason, fit for an agent."""

    def __init__(self, reason: str, *, multiple: bool = False) -> None:
        super().__init__(reason)
        self.multiple = multiple


class Tree(msgspec.Struct, frozen=True):
    """One statement as parsed. `start` and `end` are byte offsets of its text, without the `;` at either side."""

    data: bytes
    json: str  # the parser's answer as it came; `node` is without constants in bulk when it is large
    node: Node  # {"SelectStmt": {...}}
    start: int
    end: int


def parse(sql: str, *, whole: bool = False) -> Tree:
    """The one statement of `sql`. Raises NotParsed, and nothing else, for every other text. `whole`: `node` holds every constant,
    also those in bulk, which only a smaller text may have."""
    data = _checked_bytes(sql)
    try:
        json = parse_sql_json(sql)
    except ParseError as error:
        raise NotParsed(_syntax_error(sql, data, error)) from None
    if '"ParamRef":{' in json:
        found = _PLACEHOLDER.search(json)
        at = place(data, int(found[1] or 0)) if found else ""
        raise NotParsed(f"parameter placeholder at {at}: there is nothing to bind, write the value itself")
    statements = _statements(json, whole=whole)
    if not statements:
        raise NotParsed("no statements: the text is empty, or holds only comments and semicolons")
    if len(statements) > 1:
        second = place(data, statements[1].get("stmt_location", 0))
        raise NotParsed(f"{len(statements)} statements, the second at {second}; send them one at a time", multiple=True)
    [raw] = statements
    start = raw.get("stmt_location", 0)
    end = _text_end(data, start, raw.get("stmt_len", 0), json)
    return Tree(data, json, raw["stmt"], start, end)


def _statements(json: str, *, whole: bool) -> list[Node]:
    try:
        if whole and len(json) > MAX_WHOLE_BYTES:
            raise NotParsed("the statement is too large to be rewritten for masked columns; send it in several smaller ones")
        if whole or len(json) <= bulk.PIECE_BYTES:
            tree = _decode(json)
        elif len(json) <= MAX_JSON_BYTES and len(short := bulk.without_bulk(json)) <= MAX_TREE_BYTES:
            tree = bulk.decode(short)
        else:
            raise NotParsed(TOO_MANY_PARTS)
    except (RecursionError, bulk.TooDeep):
        raise NotParsed(TOO_DEEP) from None
    statements: list[Node] = tree.get("stmts", [])
    return statements


def tokens_of(tree: Tree, at_once: int = SCANNED_BYTES) -> list[Token]:
    """The statement's tokens, at their places in the whole text, scanned `at_once` bytes at a time: the scanner keeps the
    interpreter for a microsecond a token. A piece begins where the parser says that a token starts."""
    starts = {tree.start, tree.end}
    for piece in bulk.pieces(tree.json):
        starts.update(map(int, _LOCATION.findall(piece)))
    found: list[Token] = []
    begin = tree.start
    for start in sorted(starts):
        if begin < start <= tree.end and (start - begin >= at_once or start == tree.end):
            found += (Token(each.start + begin, each.end + begin, each.name) for each in scan(tree.data[begin:start]))
            begin = start
    return found


def place(data: bytes, position: int) -> str:
    """Where a byte offset is, in words: "line 2, column 7" (columns count characters from 1)."""
    lines = data[: max(position, 0)].decode(errors="replace").split("\n")
    return f"line {len(lines)}, column {len(lines[-1]) + 1}"


def _checked_bytes(sql: str) -> bytes:
    try:
        data = sql.encode()
    except UnicodeEncodeError as error:
        raise NotParsed(f"the text holds a lone surrogate at character {error.start + 1}: it is not Unicode text") from None
    if len(data) > MAX_BYTES:
        raise NotParsed(f"the statement has {len(data)} bytes of UTF-8; at most {MAX_BYTES} are accepted")
    if 0 in data:
        raise NotParsed(f"NUL byte at {place(data, data.index(0))}")
    rescans = 0
    for run in _OPERATORS.findall(data):
        rescans += len(run) * (run.count(b"+") + run.count(b"/*"))
    if rescans > MAX_RESCANS:
        raise NotParsed("the statement holds runs of operator characters too long to scan")
    if len(data) > 2048:
        _check_repeats(data)
    if is_too_heavy(data):
        raise NotParsed(TOO_MANY_PARTS)
    return data


def _check_repeats(data: bytes) -> None:
    found = _SET.search(data)
    if found is None:
        return
    tail = data[found.end() :]
    if tail.count(b",") * len(tail) > MAX_REPEATED_BYTES and any(match[1] is None for match in _ASSIGNED_LIST.finditer(tail)):
        raise NotParsed("the statement is too large for SET (column, column, …) = …; assign each column by itself")


def _syntax_error(sql: str, data: bytes, error: ParseError) -> str:
    message, index = error.args[0], error.args[1] if len(error.args) > 1 else None
    if message.startswith(("memory exhausted", "stack depth limit")):
        message = TOO_DEEP
    shown = message
    if index is None:
        return str(message)
    if len(message) > MAX_MESSAGE:
        shown = message[:MAX_MESSAGE] + "…"
    near = _NEAR.search(message)
    return f"{shown} ({place(data, len(sql[: _character(sql, index, near[1] if near else '')].encode()))})"


def _character(sql: str, index: int, near: str) -> int:
    """The character an error is at. pglast takes PostgreSQL's character position for a byte offset and converts it once more; a
    byte offset inside one character could be any of its bytes, so the word that the message quotes decides."""
    offset = len(sql[:index].encode())
    candidates = range(offset, offset + len(sql[index : index + 1].encode()))
    return next((place for place in candidates if sql.startswith(near, place)), offset)


def _text_end(data: bytes, start: int, length: int, json: str) -> int:
    """The end of the statement's last token. Only where a comment may stand behind it, the text is scanned from the last place
    where the parser says that a token starts."""
    end = start + length if length else len(data)
    text = data[start:end].rstrip(BLANK)
    if b"--" not in text and b"*/" not in text:
        return start + len(text)
    token_start = start
    for piece in bulk.pieces(json):
        token_start = max(token_start, max((int(position) for position in _LOCATION.findall(piece)), default=start))
    tail = data[token_start:end]
    if tail.count(b"--") + tail.count(b"/*") > MAX_TAIL_COMMENTS:
        raise NotParsed("the statement ends in too many comments")
    tokens = scan(tail)
    return token_start + tokens[-1].end if tokens else start + len(text)
