"""source_rewrite: each read of a masked relation becomes a subquery that gives masked values (decision 10). Pure.

The agent's text stays as it was but for the places replaced, which are found among the scanner's tokens. The new text is parsed
again, and its tree must be the old one with exactly the expected subqueries in it; else nothing runs.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final

import msgspec
from pglast.parser import ParseError, parse_sql_json

from gatewayd.masking.rules.mentions import nodes, words
from gatewayd.sql.facts.statement import Statement
from gatewayd.sql.text import bulk
from gatewayd.sql.text.parse import Node, Tree, tokens_of
from gatewayd.sql.text.tokens import quoted

_OPEN: Final = "ASCII_40"
_CLOSE: Final = "ASCII_41"
_COMMA: Final = "ASCII_44"
_OPENING: Final = (_OPEN, "ASCII_91")
_CLOSING: Final = (_CLOSE, "ASCII_93")
_HOLE: Final = "gatewayd_hole"
_STAR: Final = "ASCII_42"
_MARK: Final = "gatewayd"
MAX_REWRITTEN_BYTES: Final = 1024 * 1024
MAX_ADDED_BYTES: Final = 256 * 1024
MAX_REWRITTEN_JSON_BYTES: Final = 7 * 256 * 1024
_KEPT_CHARACTERS: Final = 8192  # a tree takes about ten times its text
_MARKED: Final = re.compile(r'"Range\w+":\{"gatewayd":(\d+)\}')
_MOVING: Final = ("ColumnRef", "SubLink", "RangeVar")


class NotRewritten(Exception):
    """The text cannot be rewritten: `shape` when it is of a kind that this module does not handle, else the result did not
    verify."""

    def __init__(self, reason: str, *, shape: bool = False) -> None:
        super().__init__(reason)
        self.shape = shape


class TooLarge(NotRewritten):
    """The new text or its tree is beyond its bound. The words are fit for an agent."""

    def __init__(self) -> None:
        super().__init__(
            f"what the policy hides adds more than {MAX_ADDED_BYTES} bytes to this statement, or it has too many parts; send it "
            "in several smaller ones, or name fewer masked columns, tables and functions of the catalog",
            shape=True,
        )


class Source(msgspec.Struct, frozen=True):
    """What stands for one masked relation. `query` gives the SELECT over it: its arguments say whether ONLY was written, and the
    TABLESAMPLE clause (or "")."""

    schema: str
    name: str
    query: Callable[[bool, str], str]


class Wrapped(msgspec.Struct, frozen=True):
    """An argument of a call that becomes another expression: `before`, what the agent wrote, `after`. `call` is the body of the
    call's node, `place` counts from 0."""

    call: Node
    place: int
    before: str
    after: str


class Edit(msgspec.Struct, frozen=True):
    """Bytes `start` to `end` of the agent's text become `text`."""

    start: int
    end: int
    text: str


def rewrite(
    statement: Statement,
    tree: Tree,
    found: Sequence[tuple[str, Node]],
    sources: Mapping[int, Source],
    arguments: Sequence[Wrapped] = (),
) -> tuple[Statement, tuple[tuple[int, int, int], ...]]:
    """The statement with `sources` in place of the relations at those positions, and where it differs: start and end in the
    agent's text, length in the new one, in characters. `found` are the nodes of `tree`, which is taken to pieces. Raises
    NotRewritten."""
    cuts = _Cuts(tree, found, sources)
    for argument in arguments:
        cuts.wrap(argument)
    edits = sorted(cuts.edits, key=lambda edit: (edit.start, edit.end))
    if any(before.end > after.start for before, after in pairwise(edits)):
        raise NotRewritten("two places to replace overlap", shape=True)
    added = sum(len(edit.text.encode()) for edit in edits)
    if added > MAX_ADDED_BYTES or len(tree.data) + added > MAX_REWRITTEN_BYTES:
        raise TooLarge
    text = spliced(tree.data, edits)
    _verify(text, tree, cuts)
    moved = _Moved(edits)
    replaced = msgspec.structs.replace(
        statement,
        sql=text,
        text_start=statement.text_start,
        text_end=moved(statement.text_end),
        splice=statement.splice and (moved(statement.splice[0]), moved(statement.splice[1])),
    )
    return replaced, in_characters(tree.data, edits)


class _Cuts:
    """The places to replace, and what the parser must find there."""

    def __init__(self, tree: Tree, found: Sequence[tuple[str, Node]], sources: Mapping[int, Source]) -> None:
        self.edits: list[Edit] = []
        self._added = 0
        self.queries: dict[int, str] = {}  # by position of the relation
        self.replaced: list[tuple[str, Node, Node]] = []  # kind and body of what goes, and the relation in it
        self.shortened: dict[int, int] = {}  # by position of a column reference: how many of its parts go
        self.references: list[Node] = []  # bodies of these
        self.wrapped: list[Wrapped] = []
        self._data = tree.data
        self._tokens = tokens_of(tree)
        self._at = {token.start: index for index, token in enumerate(self._tokens)}
        bare: set[tuple[str, str]] = set()
        sampled: set[int] = set()
        for kind, body in found:
            if kind == "RangeTableSample":
                [(inner, relation)] = body["relation"].items()
                position = relation.get("location", 0)
                if inner == "RangeVar" and position in sources:
                    self.replaced.append((kind, body, relation))
                if inner == "RangeVar" and position in sources and position not in self.queries:
                    if any(part in _MOVING for part, _ in nodes(body.get("args"), body.get("repeatable"))):
                        raise NotRewritten("TABLESAMPLE of a masked relation with an argument that is not a constant", shape=True)
                    self._replace(relation, sources[position], sample=True)
                sampled.add(position)
        for kind, body in found:
            position = body.get("location", 0)
            if kind == "RangeVar" and position in sources:
                source = sources[position]
                if position not in sampled:
                    self.replaced.append((kind, body, body))
                if "alias" not in body:
                    bare.add((source.schema, source.name))
                if position not in sampled and position not in self.queries:
                    self._replace(body, source, sample=False)
        if len(self.queries) != len(sources):
            raise NotRewritten("a masked relation stands where only a plain relation may", shape=True)
        for kind, body in found:
            if kind == "ColumnRef" and len(body["fields"]) > 2:
                parts = words(body)
                if (parts[-3], parts[-2]) in bare:
                    self._shorten(body["location"], len(parts) - 2)
                    self.references.append(body)

    def _edit(self, edit: Edit) -> None:
        """Counted as they come: six hundred joins of a wide table would be 200 MiB of text."""
        self._added += len(edit.text)
        if self._added > MAX_ADDED_BYTES:
            raise TooLarge
        self.edits.append(edit)

    def _replace(self, body: Node, source: Source, *, sample: bool) -> None:
        tokens = self._tokens
        position = body.get("location", 0)
        first = self._token(position)
        last = first + 2 * sum(part in body for part in ("catalogname", "schemaname"))
        only = not body.get("inh", False)
        if only and tokens[first - 1].name == _OPEN and tokens[last + 1].name == _CLOSE:
            first, last = first - 2, last + 1
        elif only:
            first -= 1
        elif last + 1 < len(tokens) and tokens[last + 1].name == _STAR:
            last += 1
        if only and tokens[first].name != "ONLY":
            raise NotRewritten("ONLY was not found where it should stand")
        name = quoted(body.get("relname", ""))
        alias = "" if "alias" in body else f" AS {name}"
        if sample:
            begins, ends = self._sample(last)
            clause = self._data[tokens[begins].start : tokens[ends].end].decode()
            if "alias" in body:
                alias = " " + self._data[tokens[last + 1].start : tokens[begins - 1].end].decode()
            query = source.query(only, clause)
            last = ends
        else:
            query = source.query(only, "")
        text = f"({query}){alias}"
        if tokens[first - 1].name == "TABLE" and first > 0:
            first -= 1
            text = f"SELECT * FROM {text}"
        self.queries[position] = query
        self._edit(Edit(tokens[first].start, tokens[last].end, f" {text} "))

    def wrap(self, argument: Wrapped) -> None:
        names = argument.call["funcname"]
        opening = self._token(argument.call.get("location", 0)) + 2 * len(names) - 1
        if opening >= len(self._tokens) or self._tokens[opening].name != _OPEN:
            raise NotRewritten("a call is not written as a call", shape=True)
        closing = self._closing(opening)
        first, depth, place = opening + 1, 0, 0
        for index in range(opening + 1, closing + 1):
            name = self._tokens[index].name
            ends = depth == 0 and (name == _COMMA or index == closing)
            if ends and place == argument.place:
                if index == first:
                    break
                start, end = self._tokens[first].start, self._tokens[index - 1].end
                self._edit(Edit(start, start, argument.before))
                self._edit(Edit(end, end, argument.after))
                self.wrapped.append(argument)
                return
            if ends:
                first, place = index + 1, place + 1
            depth += (name in _OPENING) - (name in _CLOSING)
        raise NotRewritten("a call has too few arguments", shape=True)

    def _sample(self, last: int) -> tuple[int, int]:
        """The first and the last token of the TABLESAMPLE clause behind a relation."""
        tokens = self._tokens
        begins = next(index for index in range(last + 1, len(tokens)) if tokens[index].name == "TABLESAMPLE")
        ends = self._closing(next(index for index in range(begins, len(tokens)) if tokens[index].name == _OPEN))
        if ends + 1 < len(tokens) and tokens[ends + 1].name == "REPEATABLE":
            ends = self._closing(ends + 2)
        return begins, ends

    def _closing(self, opening: int) -> int:
        depth = 0
        for index in range(opening, len(self._tokens)):
            depth += (self._tokens[index].name == _OPEN) - (self._tokens[index].name == _CLOSE)
            if depth == 0:
                return index
        raise NotRewritten("a bracket is not closed")

    def _shorten(self, position: int, parts: int) -> None:
        """`public.users.email` becomes `users.email`: a subquery has no schema."""
        if position not in self.shortened:
            first = self._token(position)
            self.edits.append(Edit(position, self._tokens[first + 2 * parts].start, ""))
            self.shortened[position] = parts

    def _token(self, position: int) -> int:
        index = self._at.get(position)
        if index is None:
            raise NotRewritten("the scanner finds no token where the parser has seen one")
        return index


def spliced(data: bytes, edits: list[Edit]) -> str:
    """The text with the edits applied; their offsets are in bytes."""
    pieces: list[bytes] = []
    at = 0
    for edit in edits:
        pieces += (data[at : edit.start], edit.text.encode())
        at = edit.end
    pieces.append(data[at:])
    return b"".join(pieces).decode()


def _verify(text: str, tree: Tree, cuts: _Cuts) -> None:
    """Checks that the trees of the two texts differ in the expected subqueries and in nothing else."""
    subqueries: list[str] = []
    for number, (_, body, relation) in enumerate(cuts.replaced):
        alias = relation.get("alias", {"aliasname": relation.get("relname", "")})
        query = _plain_query(cuts.queries[relation.get("location", 0)])
        body.clear()
        body[_MARK] = number  # no node has such a field, and a constant cannot look like one
        subqueries.append(f'"RangeSubselect":{{"subquery":{query},"alias":{plain(alias)}}}')
    for body in cuts.references:
        body["fields"] = body["fields"][cuts.shortened[body["location"]] :]
    for argument in cuts.wrapped:
        arguments = argument.call["args"]
        arguments[argument.place] = _filled(f"{argument.before}{_HOLE}{argument.after}", arguments[argument.place])
    expected = _MARKED.sub(lambda mark: subqueries[int(mark[1])], plain(tree.node))
    if expected != plain(parsed(text)):
        raise NotRewritten("the rewritten text does not say what it should")


def _filled(template: str, argument: Node) -> Node:
    """The tree of an expression, with `argument` in place of the name that stands for it."""
    filled: Node = parsed(f"SELECT {template}")["SelectStmt"]["targetList"][0]["ResTarget"]["val"]
    for _, body in nodes(filled):
        for key, value in body.items():
            if isinstance(value, dict) and words(value.get("ColumnRef", {"fields": ()})) == [_HOLE]:
                body[key] = argument
                return filled
    raise NotRewritten("the place of the argument is not to be found")


def parsed(sql: str) -> Node:
    """The tree of the one statement of a text that may hold parameters."""
    try:
        json = parse_sql_json(sql)
    except ParseError:
        raise NotRewritten("the rewritten text does not parse") from None
    if len(json) > MAX_REWRITTEN_JSON_BYTES:
        raise TooLarge
    statements = msgspec.json.decode(json)["stmts"]
    if len(statements) != 1:
        raise NotRewritten("the rewritten text is not one statement")
    node: Node = statements[0]["stmt"]
    return node


def plain(node: Node) -> str:
    """A tree as text, without its positions."""
    return bulk.without_positions(msgspec.json.encode(node).decode())


def _plain_query(query: str) -> str:
    """The tree of the query for a relation, which is the same for statement after statement."""
    return _kept_plain(query) if len(query) <= _KEPT_CHARACTERS else plain(parsed(query))


@lru_cache(maxsize=64)
def _kept_plain(query: str) -> str:
    return plain(parsed(query))


class _Moved:
    """Where a byte offset of the agent's text, outside of every edit, is in the new one."""

    def __init__(self, edits: list[Edit]) -> None:
        self._edits = edits

    def __call__(self, offset: int) -> int:
        return offset + sum(len(edit.text.encode()) - (edit.end - edit.start) for edit in self._edits if edit.end <= offset)


def in_characters(data: bytes, edits: list[Edit]) -> tuple[tuple[int, int, int], ...]:
    """The edits as (start, end, new length), in characters instead of bytes."""
    if data.isascii():
        return tuple((edit.start, edit.end, len(edit.text)) for edit in edits)
    characters = [0, *accumulate((byte & 0xC0) != 0x80 for byte in data)]
    return tuple((characters[edit.start], characters[edit.end], len(edit.text)) for edit in edits)
