"""WITH queries for lineage: who sees which, and each one's columns worked out when first asked for (decisions 3.3, 10)."""

from gatewayd.sql.lineage.names import UNLIMITED, NameLevel
from gatewayd.sql.lineage.origins import Entangled, TracedColumn
from gatewayd.sql.text.parse import Node


class With:
    """One WITH query: its body, what that sees, and its columns once they are known."""

    __slots__ = ("body", "columns", "first_arm", "is_open", "kind", "level", "names", "sees", "wrapped")

    def __init__(self, wrapped: Node, level: NameLevel | None, names: tuple[str, ...]) -> None:
        self.wrapped = wrapped
        [(self.kind, self.body)] = wrapped["ctequery"].items()
        self.level = level
        self.names = names  # column alias list
        self.sees: Withs | None = None
        self.columns: tuple[TracedColumn, ...] | None = None
        self.first_arm: tuple[TracedColumn, ...] | None = None  # of a recursive query, while its second one is worked out
        self.is_open = False  # it is being worked out


class Withs:
    """The WITH queries visible at one place: the first `limit` of one WITH, then those further out."""

    __slots__ = ("by_name", "limit", "outer")

    def __init__(self, by_name: dict[str, tuple[int, With]], limit: int, outer: "Withs | None") -> None:
        self.by_name = by_name
        self.limit = limit
        self.outer = outer

    def find(self, name: str) -> With | None:
        at: Withs | None = self
        while at is not None:
            found = at.by_name.get(name)
            if found is not None and found[0] < at.limit:
                return found[1]
            at = at.outer
        return None


def opened(clause: Node, level: NameLevel | None, outside: Withs | None) -> Withs:
    """The WITH queries of one clause as the main query sees them. Plain WITH: each sees those before it; RECURSIVE: all."""
    by_name: dict[str, tuple[int, With]] = {}
    all_of_them = Withs(by_name, UNLIMITED, outside)
    for index, node in enumerate(clause["ctes"]):
        wrapped = node["CommonTableExpr"]
        name = wrapped["ctename"]
        if name in by_name:
            raise Entangled(f"two WITH queries are named {name}")
        each = With(wrapped, level, tuple(word["String"].get("sval", "") for word in wrapped.get("aliascolnames", ())))
        each.sees = all_of_them if clause.get("recursive") else Withs(by_name, index, outside)
        by_name[name] = (index, each)
    return all_of_them
