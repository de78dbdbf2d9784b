"""What expressions stand on: names, scopes, columns and constants; and the promise of an expression of any type."""

from collections.abc import Sequence
from typing import Final

from tests.properties.draw import Draw
from tests.properties.literals import BASIC, COMMON, INTEGERS, NUMBERS, constant
from tests.properties.model import Model

_PLAIN_WORDS: Final = """
    id name email age m home tags doc score created key active twice total placed note items period raw n a b c d
"""
PLAIN_WORDS: Final = frozenset(_PLAIN_WORDS.split())


def identifier(name: str) -> str:
    return (
        name
        if name in PLAIN_WORDS or (name.isascii() and name.isidentifier() and name.islower() and "_" in name)
        else quote(name)
    )


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Item:
    """Something in FROM: its alias, its columns, and its row type where it has a name."""

    def __init__(self, alias: str, columns: Sequence[tuple[str, str]], row_type: str | None = None) -> None:
        self.alias = alias
        self.columns = [(name, type_) for name, type_ in columns if name]
        self.row_type = row_type


class Scope:
    """What a position sees: its own FROM items, those around it, and the WITH queries."""

    def __init__(self, outer: "Scope | None" = None) -> None:
        self.outer = outer
        self.items: list[Item] = []
        self.ctes: list[tuple[str, list[tuple[str, str]]]] = list(outer.ctes) if outer else []
        self.windows: list[str] = []
        self.hides_outer = False

    def visible(self) -> list[Item]:
        found = list(self.items)
        if self.outer is not None and not self.hides_outer:
            found += self.outer.visible()[:4]
        return found


class Leaves:
    """Names, columns and constants."""

    def __init__(self, draw: Draw, model: Model) -> None:
        self.draw = draw
        self.model = model
        self._names = 0

    def name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def type(self) -> str:
        return self.draw.pick(COMMON) if self.draw.chance(0.93) else self.draw.pick(BASIC)

    def leaf(self, type_: str, scope: Scope) -> str:
        column = self.column(type_, scope) if self.draw.chance(0.75) else None
        return column if column is not None else constant(self.draw, type_)

    def column(self, type_: str, scope: Scope) -> str | None:
        found = [
            (item, name)
            for item in scope.visible()
            for name, of in item.columns
            if of == type_ or (type_ in NUMBERS and of in INTEGERS)
        ]
        if not found:
            return None
        item, name = self.draw.pick(found)
        return self.reference(item, name)

    def any_column(self, scope: Scope) -> tuple[str, str] | None:
        items = [item for item in scope.items if item.columns]
        if not items:
            return None
        item = self.draw.pick(items)
        name, type_ = self.draw.pick(item.columns)
        return self.reference(item, name), type_

    def reference(self, item: Item, name: str) -> str:
        way = self.draw.shape.randrange(24)
        column = identifier(name)
        if way == 0:
            return f"({identifier(item.alias)}).{column}"
        if way == 1:
            return f"({identifier(item.alias)}.*).{column}"
        if way == 2:
            return column
        return f"{identifier(item.alias)}.{column}"

    def expression(self, type_: str, scope: Scope, depth: int, *, windows: bool = False) -> str:
        raise NotImplementedError

    def scalar_query(self, type_: str, scope: Scope, depth: int, *, one: bool = True) -> str:
        """A query of one column; of one row too, with `one`."""
        raise NotImplementedError

    def boolean_query(self, scope: Scope, depth: int) -> str:
        """Any query."""
        raise NotImplementedError
