"""Name resolution for lineage: which column a reference means, as PostgreSQL's parse_relation.c finds it (decision 10).

Where the text and the catalog leave a doubt, the marked column is meant.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gatewayd.catalog import PLACE, SYSTEM_COLUMNS
from gatewayd.sql.lineage.origins import Entangled, Influenced, Plain, TracedColumn
from gatewayd.sql.text.parse import Node

UNLIMITED: Final = 1 << 60


class Item:
    """One range item: its columns in order. `is_open`: it may have more, all free, under names that only the server knows."""

    __slots__ = ("_by_name", "columns", "is_open", "marked", "name", "schema", "stored")

    def __init__(
        self, name: str | None, columns: Sequence[TracedColumn], *, schema: str | None = None, stored: bool = False
    ) -> None:
        self.name = name
        self.schema = schema  # of a relation without an alias
        self.stored = stored  # a relation that has system columns
        self.columns = tuple(columns)
        self.is_open = any(column.many for column in columns)
        self.marked = next((column for column in self.columns if column.source is not None), None)
        self._by_name: dict[str, list[TracedColumn]] | None = None

    @property
    def by_name(self) -> Mapping[str, list[TracedColumn]]:
        if self._by_name is None:
            self._by_name = {}
            for column in self.columns:
                if not column.many:
                    self._by_name.setdefault(column.name, []).append(column)
        return self._by_name

    def find(self, name: str) -> Sequence[TracedColumn]:
        return self.by_name.get(name, ())

    def has_system(self, name: str) -> bool:
        """Whether the name is a system column of this very item: a join, a subquery or a view has none."""
        return self.stored and name in SYSTEM_COLUMNS and not self.find(name)

    def renamed(self, aliases: Sequence[str]) -> "Item":
        """Under a column alias list."""
        if not aliases:
            return self
        count = len(aliases)
        if any(column.many for column in self.columns[:count]):
            if self.marked is not None:
                raise Entangled("a column alias list stands over columns that cannot be told; name the columns you need")
            return Item(self.name, [*map(TracedColumn, aliases), TracedColumn("", many=True)], schema=self.schema)
        renamed = [
            TracedColumn(alias, column.source, type=column.type) for alias, column in zip(aliases, self.columns, strict=False)
        ]
        return Item(self.name, [*renamed, *self.columns[count:]], schema=self.schema, stored=self.stored)


class _Found:
    """Items in the order they were added, looked up by name: however many there are, a look-up costs the same."""

    __slots__ = ("_by_name", "_indexed", "first_marked", "first_open", "items")

    def __init__(self, items: Iterable[Item]) -> None:
        self.items: list[Item] = []
        self.first_marked: int | None = None
        self.first_open: int | None = None
        self._by_name: dict[str | None, list[tuple[int, Item]]] = {}
        self._indexed = 0
        self.extend(items)

    def extend(self, items: Iterable[Item]) -> None:
        for item in items:
            if self.first_marked is None and item.marked is not None:
                self.first_marked = len(self.items)
            if self.first_open is None and item.is_open:
                self.first_open = len(self.items)
            self.items.append(item)

    def called(self, name: str, limit: int) -> list[Item]:
        """The items of this name among the first `limit`."""
        for index in range(self._indexed, len(self.items)):
            self._by_name.setdefault(self.items[index].name, []).append((index, self.items[index]))
        self._indexed = len(self.items)
        return [item for index, item in self._by_name.get(name, ()) if index < limit]


class _Columns(_Found):
    """The same, with the columns of all items by name; system columns stand under theirs."""

    __slots__ = ("_columns", "_listed")

    def __init__(self, items: Iterable[Item]) -> None:
        self._columns: dict[str, list[tuple[int, Item, TracedColumn | None]]] = {}
        self._listed = 0
        super().__init__(items)

    def holding(self, name: str, limit: int) -> list[tuple[Item, TracedColumn | None]]:
        """The columns of this name among the first `limit` items; None stands for a system column."""
        for index in range(self._listed, len(self.items)):
            item = self.items[index]
            for each, columns in item.by_name.items():
                self._columns.setdefault(each, []).extend((index, item, column) for column in columns)
            for each in SYSTEM_COLUMNS if item.stored else ():
                if item.has_system(each):
                    self._columns.setdefault(each, []).append((index, item, None))
        self._listed = len(self.items)
        return [(item, column) for index, item, column in self._columns.get(name, ()) if index < limit]


class NameLevel:
    """What one query level puts into scope. Bare names are looked up in `parts` (joins as a whole), qualified ones in `named`."""

    __slots__ = ("_limit", "_named", "_parts", "outer")

    def __init__(self, outer: "NameLevel | None", parts: Iterable[Item] = (), named: Iterable[Item] = ()) -> None:
        self.outer = outer
        self._parts = _Columns(parts)
        self._named = _Found(named)
        self._limit = (UNLIMITED, UNLIMITED)

    def add(self, part: Item, named: Iterable[Item]) -> None:
        self._parts.extend((part,))
        self._named.extend(named)

    def so_far(self) -> "NameLevel":
        """What a LATERAL item that is added next sees: the same items, without those that are added later."""
        seen = NameLevel.__new__(NameLevel)
        seen.outer, seen._parts, seen._named = self.outer, self._parts, self._named
        seen._limit = (len(self._parts.items), len(self._named.items))
        return seen

    @property
    def parts(self) -> list[Item]:
        return self._parts.items[: self._limit[0]]

    @property
    def named(self) -> list[Item]:
        return self._named.items[: self._limit[1]]

    def holding(self, name: str) -> list[tuple[Item, TracedColumn | None]]:
        """The columns that a bare name means at this level, each with its item; None stands for a system column."""
        return self._parts.holding(name, self._limit[0])

    def called(self, name: str) -> list[Item]:
        return self._named.called(name, self._limit[1])

    @property
    def is_open(self) -> bool:
        return self._parts.first_open is not None and self._parts.first_open < self._limit[0]

    @property
    def marked(self) -> TracedColumn | None:
        for found, limit in zip((self._parts, self._named), self._limit, strict=True):
            if found.first_marked is not None and found.first_marked < limit:
                return found.items[found.first_marked].marked
        return None


def resolve(fields: list[Node], level: NameLevel | None, position: int) -> TracedColumn:
    """The column that a reference without a star means. Raises Entangled for a whole row of marked columns, and where a name is
    not known while marked columns are in sight."""
    words = [field["String"].get("sval", "") for field in fields]
    found = _bare(words[0], level, position) if len(words) == 1 else _qualified(words, level, position)
    if found is not None:
        return found
    marked = _marked_in_sight(level)
    if marked is None:
        return TracedColumn(words[-1])
    raise Entangled(
        f"`{'.'.join(words)}` is not known as a column here, and masked columns are in sight; check the spelling (describe_table "
        "lists the columns)",
        position,
    )


def starred(words: Sequence[str], level: NameLevel, position: int) -> tuple[TracedColumn, ...]:
    """The columns of `*` (no words) or of `x.*`."""
    if not words:
        return tuple(column for part in level.parts for column in part.columns)
    items = _items(words, level)
    if len(items) == 1:
        return items[0].columns
    if _marked_in_sight(level) is None:
        return (TracedColumn("", many=True),)
    raise Entangled(f"it cannot be told what `{'.'.join(words)}.*` stands for; name the columns", position)


def whole_row(item: Item, position: int) -> TracedColumn:
    """The row of an item as one value."""
    marked = item.marked
    if marked is None:
        return TracedColumn(item.name or "")
    raise Entangled(f"the whole row of {item.name} is used as a value, and it holds {described(marked)}", position)


def described(column: TracedColumn) -> str:
    match column.source:
        case Plain(columns):
            return f"masked column {columns[0]}"
        case Influenced(why):
            return f"column {column.name}, which {why}"
        case _:
            return f"column {column.name}"


def _bare(name: str, level: NameLevel | None, position: int) -> TracedColumn | None:
    """A column first, at the innermost level that has one, system columns among them; else the whole row of an item of that
    name."""
    doubt = False
    at = level
    while at is not None:
        hits = at.holding(name)
        if hits:
            item, hit = next(((item, hit) for item, hit in hits if (hit.source if hit else item.marked) is not None), hits[0])
            if hit is None:
                return _of_system(name, item.marked, position)
            if doubt and hit.source is not None:
                raise Entangled(f"it cannot be told whether `{name}` is {described(hit)}; qualify it", position)
            return hit
        doubt = doubt or at.is_open
        at = at.outer
    at = level
    while at is not None:
        items = at.called(name)
        if items:
            return whole_row(next((item for item in items if item.marked is not None), items[0]), position)
        at = at.outer
    if name in SYSTEM_COLUMNS:
        return _of_system(name, _marked_in_sight(level), position)
    return TracedColumn(name) if doubt else None


def _qualified(words: Sequence[str], level: NameLevel | None, position: int) -> TracedColumn | None:
    items = _items(words[:-1], level)
    if not items:
        return None
    name = words[-1]
    hits = [column for item in items for column in item.find(name)]
    if hits:
        return next((column for column in hits if column.source is not None), hits[0])
    marked = next((item for item in items if item.marked is not None), None)
    if marked is None:
        return TracedColumn(name)
    if marked.has_system(name):
        return _of_system(name, marked.marked, position)
    return whole_row(marked, position)  # x.name is name(x) where no column is called so


def _of_system(name: str, marked: TracedColumn | None, position: int) -> TracedColumn:
    """Where a row lies tells how much room those before it take, and so how long their values are."""
    if name == PLACE and marked is not None:
        raise Entangled(f"`{name}` tells how long the values of {described(marked)} are; name rows by their key", position)
    return TracedColumn(name)


def _items(words: Sequence[str], level: NameLevel | None) -> list[Item]:
    """The items that a qualifier means: those of the innermost level that has any. The decision has checked a database part."""
    name, schema = words[-1], words[-2] if len(words) > 1 else None
    at = level
    while at is not None:
        items = [item for item in at.called(name) if schema in (None, item.schema)]
        if items:
            return items
        at = at.outer
    return []


def _marked_in_sight(level: NameLevel | None) -> TracedColumn | None:
    at = level
    while at is not None:
        if at.marked is not None:
            return at.marked
        at = at.outer
    return None
