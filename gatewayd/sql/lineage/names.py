"""Name resolution for lineage: which column a reference means, as PostgreSQL's parse_relation.c finds it (decision 10).

Where the text and the catalog leave a doubt, the marked column is meant.
"""

from collections.abc import Iterable, Sequence

from gatewayd.catalog import PLACE, SYSTEM_COLUMNS
from gatewayd.sql.lineage.origins import Column, Entangled, Influenced, Plain
from gatewayd.sql.text.parse import Node


class Item:
    """One range item: its columns in order. `is_open`: it may have more, all free, under names that only the server knows."""

    __slots__ = ("_by_name", "columns", "is_open", "name", "schema")

    def __init__(self, name: str | None, columns: Sequence[Column], *, schema: str | None = None) -> None:
        self.name = name
        self.schema = schema  # of a relation without an alias
        self.columns = tuple(columns)
        self.is_open = any(column.many for column in columns)
        self._by_name: dict[str, list[Column]] | None = None

    @property
    def marked(self) -> Column | None:
        return next((column for column in self.columns if column.source is not None), None)

    def find(self, name: str) -> list[Column]:
        if self._by_name is None:
            self._by_name = {}
            for column in self.columns:
                if not column.many:
                    self._by_name.setdefault(column.name, []).append(column)
        return self._by_name.get(name, [])

    def renamed(self, aliases: Sequence[str]) -> "Item":
        """Under a column alias list."""
        if not aliases:
            return self
        count = len(aliases)
        if any(column.many for column in self.columns[:count]):
            if self.marked is not None:
                raise Entangled("a column alias list stands over columns that cannot be told; name the columns you need")
            return Item(self.name, [*map(Column, aliases), Column("", many=True)], schema=self.schema)
        renamed = [Column(alias, column.source) for alias, column in zip(aliases, self.columns, strict=False)]
        return Item(self.name, [*renamed, *self.columns[count:]], schema=self.schema)


class Level:
    """What one query level puts into scope. Bare names are looked up in `parts` (joins as a whole), qualified ones in `named`."""

    __slots__ = ("named", "outer", "parts")

    def __init__(self, outer: "Level | None", parts: Iterable[Item] = (), named: Iterable[Item] = ()) -> None:
        self.outer = outer
        self.parts = list(parts)
        self.named = list(named)

    def add(self, part: Item, named: Iterable[Item]) -> None:
        self.parts.append(part)
        self.named.extend(named)

    def so_far(self) -> "Level":
        """What a LATERAL item that is added next sees."""
        return Level(self.outer, self.parts, self.named)


def resolve(fields: list[Node], level: Level | None, position: int) -> Column:
    """The column that a reference without a star means. Raises Entangled for a whole row of marked columns, and where a name is
    not known while marked columns are in sight."""
    words = [field["String"].get("sval", "") for field in fields]
    found = _bare(words[0], level, position) if len(words) == 1 else _qualified(words, level, position)
    if found is not None:
        return found
    marked = _marked_in_sight(level)
    if marked is None:
        return Column(words[-1])
    raise Entangled(
        f"`{'.'.join(words)}` is not known as a column here, and masked columns are in sight; check the spelling (describe_table "
        "lists the columns)",
        position,
    )


def starred(words: Sequence[str], level: Level, position: int) -> tuple[Column, ...]:
    """The columns of `*` (no words) or of `x.*`."""
    if not words:
        return tuple(column for part in level.parts for column in part.columns)
    items = _items(words, level)
    if len(items) == 1:
        return items[0].columns
    if _marked_in_sight(level) is None:
        return (Column("", many=True),)
    raise Entangled(f"it cannot be told what `{'.'.join(words)}.*` stands for; name the columns", position)


def whole_row(item: Item, position: int) -> Column:
    """The row of an item as one value."""
    marked = item.marked
    if marked is None:
        return Column(item.name or "")
    raise Entangled(f"the whole row of {item.name} is used as a value, and it holds {described(marked)}", position)


def described(column: Column) -> str:
    match column.source:
        case Plain(columns):
            return f"masked column {columns[0]}"
        case Influenced(why):
            return f"column {column.name}, which {why}"
        case _:
            return f"column {column.name}"


def _bare(name: str, level: Level | None, position: int) -> Column | None:
    """A column first, at the innermost level that has one; else the whole row of an item of that name."""
    doubt = False
    at = level
    while at is not None:
        hits = [column for part in at.parts for column in part.find(name)]
        if hits:
            hit = next((column for column in hits if column.source is not None), hits[0])
            if doubt and hit.source is not None:
                raise Entangled(f"it cannot be told whether `{name}` is {described(hit)}; qualify it", position)
            return hit
        doubt = doubt or any(part.is_open for part in at.parts)
        at = at.outer
    if name in SYSTEM_COLUMNS:
        return _of_system(name, _marked_in_sight(level), position)
    at = level
    while at is not None:
        items = [item for item in at.named if item.name == name]
        if items:
            return whole_row(next((item for item in items if item.marked is not None), items[0]), position)
        at = at.outer
    return Column(name) if doubt else None


def _qualified(words: Sequence[str], level: Level | None, position: int) -> Column | None:
    items = _items(words[:-1], level)
    if not items:
        return None
    name = words[-1]
    hits = [column for item in items for column in item.find(name)]
    if hits:
        return next((column for column in hits if column.source is not None), hits[0])
    marked = next((item for item in items if item.marked is not None), None)
    if marked is None:
        return Column(name)
    if name in SYSTEM_COLUMNS:
        return _of_system(name, marked.marked, position)
    return whole_row(marked, position)  # x.name is name(x) where no column is called so


def _of_system(name: str, marked: Column | None, position: int) -> Column:
    """Where a row lies tells how much room those before it take, and so how long their values are."""
    if name == PLACE and marked is not None:
        raise Entangled(f"`{name}` tells how long the values of {described(marked)} are; name rows by their key", position)
    return Column(name)


def _items(words: Sequence[str], level: Level | None) -> list[Item]:
    """The items that a qualifier means: those of the innermost level that has any. The decision has checked a database part."""
    name, schema = words[-1], words[-2] if len(words) > 1 else None
    at = level
    while at is not None:
        items = [item for item in at.named if item.name == name and schema in (None, item.schema)]
        if items:
            return items
        at = at.outer
    return []


def _marked_in_sight(level: Level | None) -> Column | None:
    at = level
    while at is not None:
        for item in (*at.parts, *at.named):
            if item.marked is not None:
                return item.marked
        at = at.outer
    return None
