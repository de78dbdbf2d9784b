"""Which column names a tree can refer to, by name alone (decision 10). Pure.

No resolution: a name counts whatever it turns out to be, so the answer may be larger than the truth, never smaller.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from gatewayd.sql.text.parse import Node


class Mentions(msgspec.Struct, frozen=True):
    """The column names that a statement mentions, and whether it may mean any column."""

    names: Counter[str]  # last parts of column references, field selections, USING
    everything: bool  # `*`, `x.*` or NATURAL: any column may be meant
    rows: bool  # an item may be used as a whole, or have its columns renamed by their places

    def any_of(self, names: Iterable[str]) -> bool:
        """Whether one of these columns may be mentioned."""
        return self.everything or any(name in self.names for name in names)

    def needs(self, name: str) -> bool:
        """Whether the statement would miss a column of this name, were it not there."""
        return self.everything or self.rows or name in self.names


def mentions(*trees: Any) -> Mentions:
    """What these parse trees mention."""
    return mentions_among(nodes(*trees))


def mentions_among(found: Iterable[tuple[str, Node]]) -> Mentions:
    """`found` are all nodes of some trees."""
    names: Counter[str] = Counter()
    items: set[str] = set()
    everything = renamed = False
    for kind, body in found:
        alias = body.get("alias")
        if isinstance(alias, dict):
            items.add(alias.get("aliasname", ""))
            renamed = renamed or "colnames" in alias
        elif kind == "RangeVar":
            items.add(body.get("relname", ""))
        if kind == "ColumnRef":
            last = words(body)[-1]
            if last is None:
                everything = True
            else:
                names[last] += 1
        elif kind == "A_Indirection":
            for part in body.get("indirection", ()):
                if "String" in part:
                    names[part["String"].get("sval", "")] += 1
                everything = everything or "A_Star" in part
        elif kind == "JoinExpr":
            names.update(part["String"].get("sval", "") for part in body.get("usingClause", ()))
            everything = everything or bool(body.get("isNatural"))
    return Mentions(names, everything, renamed or not items.isdisjoint(names))


def nodes(*trees: Any) -> Iterator[tuple[str, Node]]:
    """Every (kind, body) below some trees, and of each tree that is itself `{kind: body}`. With a stack of its own."""
    pending = list(trees)
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            for key, value in part.items():
                if isinstance(value, dict):
                    if key[:1].isupper():
                        yield key, value
                    pending.append(value)
                elif isinstance(value, list):
                    pending.append(value)
        elif isinstance(part, list):
            pending.extend(part)


def words(body: Node) -> list[str | None]:
    """The parts of a ColumnRef; None for a star."""
    return [field["String"].get("sval", "") if "String" in field else None for field in body["fields"]]
