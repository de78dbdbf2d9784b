"""Name resolution for lineage: which column a reference means, as PostgreSQL's parse_relation.c finds it (decision 10).

The scopes are those that the walk has made; what their items hold, the catalog tells. Where the text and the catalog leave a
doubt, the marked column is meant.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gatewayd.catalog import PLACE, SYSTEM_COLUMNS
from gatewayd.sql.facts.scope import UNLIMITED, RangeItem, RangeItems, Scope
from gatewayd.sql.lineage.origins import Entangled, Influenced, Plain, TracedColumn
from gatewayd.sql.text.parse import Node

MAX_SAME_NAME: Final = 64
"""Items of one name in one FROM. PostgreSQL takes several only where they are tables of as many schemas."""


class Columns:
    """What one range item holds: its columns in order. `is_open`: it may have more, all free, under names that only the server
    knows."""

    __slots__ = ("_by_name", "all", "is_open", "marked", "schema", "stored")

    def __init__(self, columns: Sequence[TracedColumn], *, schema: str | None = None, stored: bool = False) -> None:
        self.schema = schema  # of a relation without an alias
        self.stored = stored  # a relation that has system columns
        self.all = tuple(columns)
        self.is_open = any(column.many for column in columns)
        self.marked = next((column for column in self.all if column.source is not None), None)
        self._by_name: dict[str, list[TracedColumn]] | None = None

    @property
    def by_name(self) -> Mapping[str, list[TracedColumn]]:
        if self._by_name is None:
            self._by_name = {}
            for column in self.all:
                if not column.many:
                    self._by_name.setdefault(column.name, []).append(column)
        return self._by_name

    def find(self, name: str) -> Sequence[TracedColumn]:
        return self.by_name.get(name, ())

    def has_system(self, name: str) -> bool:
        """Whether the name is a system column of this very item: a join, a subquery or a view has none."""
        return self.stored and name in SYSTEM_COLUMNS and not self.find(name)

    def renamed(self, aliases: Sequence[str]) -> "Columns":
        """Under a column alias list."""
        if not aliases:
            return self
        count = len(aliases)
        if any(column.many for column in self.all[:count]):
            if self.marked is not None:
                raise Entangled("a column alias list stands over columns that cannot be told; name the columns you need")
            return Columns([*map(TracedColumn, aliases), TracedColumn("", many=True)], schema=self.schema)
        renamed = [TracedColumn(alias, column.source, type=column.type) for alias, column in zip(aliases, self.all, strict=False)]
        return Columns([*renamed, *self.all[count:]], schema=self.schema, stored=self.stored)


class _Index:
    """The columns of one level's items by name; system columns stand under theirs. It grows with what is visible: an item that
    LATERAL lets look at those before it is worked out by them."""

    __slots__ = ("by_name", "first_marked", "first_open", "listed")

    def __init__(self) -> None:
        self.by_name: dict[str, list[tuple[int, RangeItem, TracedColumn | None]]] = {}
        self.listed = 0
        self.first_marked: tuple[int, TracedColumn] | None = None
        self.first_open = UNLIMITED

    def list(self, item: RangeItem, columns: Columns) -> None:
        place = self.listed
        if self.first_marked is None and columns.marked is not None:
            self.first_marked = place, columns.marked
        if columns.is_open:
            self.first_open = min(self.first_open, place)
        if not item.qualified_only:
            for name, found in columns.by_name.items():
                self.by_name.setdefault(name, []).extend((place, item, column) for column in found)
            for name in SYSTEM_COLUMNS if columns.stored else ():
                if columns.has_system(name):
                    self.by_name.setdefault(name, []).append((place, item, None))
        self.listed += 1


class Names:
    """Looks names up in the scopes of one statement. `columns`: what an item holds, worked out when it is first asked."""

    def __init__(self, columns: Callable[[RangeItem], Columns], spend: Callable[[int], None]) -> None:
        self._columns = columns
        self._spend = spend

    def resolve(self, fields: list[Node], scope: Scope, position: int) -> TracedColumn:
        """The column that a reference without a star means. Raises Entangled for a whole row of marked columns, and where a name
        is not known while marked columns are in sight."""
        words = [field["String"].get("sval", "") for field in fields]
        found = self._bare(words[0], scope, position) if len(words) == 1 else self._qualified(words, scope, position)
        if found is not None:
            return found
        if self._marked_in_sight(scope) is None:
            return TracedColumn(words[-1])
        raise Entangled(
            f"`{'.'.join(words)}` is not known as a column here, and masked columns are in sight; check the spelling "
            "(describe_table lists the columns)",
            position,
        )

    def starred(self, words: Sequence[str], scope: Scope, position: int) -> tuple[TracedColumn, ...]:
        """The columns of `x.*`."""
        items = self._items(words, scope)
        if len(items) == 1:
            return self._columns(items[0]).all
        if self._marked_in_sight(scope) is None:
            return (TracedColumn("", many=True),)
        raise Entangled(f"it cannot be told what `{'.'.join(words)}.*` stands for; name the columns", position)

    def holding(self, name: str, scope: Scope) -> list[tuple[RangeItem, TracedColumn | None]]:
        """The columns that a bare name means at this level, each with its item; None stands for a system column."""
        found = self._index(scope).by_name.get(name, ())
        return [(item, column) for place, item, column in found if place < scope.limit]

    def _index(self, scope: Scope) -> _Index:
        items: RangeItems = scope.items
        index: _Index = items.columns
        if index is None:
            index = items.columns = _Index()
        for item in items.all[index.listed : scope.limit]:
            columns = self._columns(item)
            self._spend(len(columns.all))
            index.list(item, columns)
        return index

    def _bare(self, name: str, scope: Scope, position: int) -> TracedColumn | None:
        """A column first, at the innermost level that has one, system columns among them; else the whole row of an item of that
        name."""
        doubt = False
        at: Scope | None = scope
        while at is not None:
            hits = self.holding(name, at)
            if hits:
                item, hit = next((each for each in hits if self._source(*each) is not None), hits[0])
                if hit is None:
                    return _of_system(name, self._columns(item).marked, position)
                if doubt and hit.source is not None:
                    raise Entangled(f"it cannot be told whether `{name}` is {described(hit)}; qualify it", position)
                return hit
            doubt = doubt or self._index(at).first_open < at.limit
            at = at.outer
        items = self._items((name,), scope)
        if items:
            return self._whole_row(next((item for item in items if self._columns(item).marked is not None), items[0]), position)
        if name in SYSTEM_COLUMNS:
            return _of_system(name, self._marked_in_sight(scope), position)
        return TracedColumn(name) if doubt else None

    def _source(self, item: RangeItem, column: TracedColumn | None) -> object:
        return column.source if column is not None else self._columns(item).marked

    def _qualified(self, words: Sequence[str], scope: Scope, position: int) -> TracedColumn | None:
        items = self._items(words[:-1], scope)
        if not items:
            return None
        name = words[-1]
        hits = [column for item in items for column in self._columns(item).find(name)]
        if hits:
            return next((column for column in hits if column.source is not None), hits[0])
        item = next((item for item in items if self._columns(item).marked is not None), None)
        if item is None:
            return TracedColumn(name)
        if self._columns(item).has_system(name):
            return _of_system(name, self._columns(item).marked, position)
        return self._whole_row(item, position)  # x.name is name(x) where no column is called so

    def _whole_row(self, item: RangeItem, position: int) -> TracedColumn:
        """The row of an item as one value."""
        marked = self._columns(item).marked
        if marked is None:
            return TracedColumn(item.name or "")
        raise Entangled(f"the whole row of {item.name} is used as a value, and it holds {described(marked)}", position)

    def _items(self, words: Sequence[str], scope: Scope) -> list[RangeItem]:
        """The items that a qualifier means: those of the innermost level that has any. The decision has checked a database
        part."""
        name, schema = words[-1], words[-2] if len(words) > 1 else None
        at: Scope | None = scope
        while at is not None:
            if len(at.items.by_name.get(name, ())) > MAX_SAME_NAME:
                raise Entangled(
                    f"more than {MAX_SAME_NAME} tables or subqueries are called {name}; give each an alias of its own"
                )
            items = [item for item in at.called(name) if schema is None or schema == self._columns(item).schema]
            if items:
                return items
            at = at.outer
        return []

    def _marked_in_sight(self, scope: Scope) -> TracedColumn | None:
        at: Scope | None = scope
        while at is not None:
            first = self._index(at).first_marked
            if first is not None and first[0] < at.limit:
                return first[1]
            at = at.outer
        return None


def described(column: TracedColumn) -> str:
    match column.source:
        case Plain(columns):
            return f"masked column {columns[0]}"
        case Influenced(why):
            return f"column {column.name}, which {why}"
        case _:
            return f"column {column.name}"


def _of_system(name: str, marked: TracedColumn | None, position: int) -> TracedColumn:
    """Where a row lies tells how much room those before it take, and so how long their values are."""
    if name == PLACE and marked is not None:
        raise Entangled(f"`{name}` tells how long the values of {described(marked)} are; name rows by their key", position)
    return TracedColumn(name)
