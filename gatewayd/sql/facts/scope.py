"""Lexical scopes as PostgreSQL builds them: which name is a CTE, which range item a qualified column belongs to (decision 3.3).

A Scope is one link of the chain that a name is looked up in. The walk makes all of them, once; they are read when the whole
statement has been walked. What the columns of an item are, `outputs.py` says as far as the text tells it, the binder and lineage
with the catalog.
"""

from typing import TYPE_CHECKING, Any, Literal

from gatewayd.sql.text.parse import Node

if TYPE_CHECKING:
    from gatewayd.sql.facts.walk import Use

UNLIMITED = 1 << 60


class Cte:
    """One WITH query. `body` is its statement's body, the key to `Walk.queries`; `scope` what surrounds the query that has it."""

    __slots__ = ("aliases", "body", "extra", "scope", "written")

    def __init__(self, written: Node, body: Node, aliases: tuple[str, ...], extra: tuple[str, ...], scope: "Scope") -> None:
        self.written = written  # the CommonTableExpr
        self.body = body
        self.aliases = aliases
        self.extra = extra  # columns that SEARCH and CYCLE add
        self.scope = scope


class Ctes:
    """The WITH queries visible at one place: the first `limit` of one WITH, then those further out."""

    __slots__ = ("by_name", "limit", "outer")

    def __init__(self, by_name: dict[str, tuple[int, Cte]], limit: int, outer: "Ctes | None") -> None:
        self.by_name = by_name
        self.limit = limit
        self.outer = outer

    def find(self, name: str) -> Cte | None:
        """The CTE that a name means here; None if it is not a CTE's name."""
        ctes: Ctes | None = self
        while ctes is not None:
            found = ctes.by_name.get(name)
            if found is not None and found[0] < ctes.limit:
                return found[1]
            ctes = ctes.outer
        return None


class RangeItem:
    """One thing that FROM (or the target of a write) puts into scope."""

    __slots__ = (
        "aliases",
        "body",
        "cte",
        "is_aliased",
        "kind",
        "known",
        "left",
        "merged",
        "name",
        "natural",
        "qualified_only",
        "relation",
        "right",
        "schema",
        "scope",
        "written",
    )

    def __init__(self, kind: Literal["relation", "query", "known", "join", "unknown"], name: str | None) -> None:
        self.kind = kind
        self.name = name
        self.schema: str | None = None  # of an unaliased relation
        self.is_aliased = False
        self.aliases: tuple[str, ...] = ()  # column alias list
        self.relation: Use | None = None  # "relation"
        self.body: Node | None = None  # "query": key to Walk.queries
        self.cte: Cte | None = None  # "query": the WITH query that it is
        self.known: tuple[str, ...] = ()  # "known": all column names; "query": the ones added behind the query's own
        self.left: RangeItem | None = None  # "join"
        self.right: RangeItem | None = None
        self.merged: tuple[str, ...] = ()  # USING
        self.natural = False
        self.qualified_only = False  # excluded, old, new, the alias of USING: bare names do not mean its columns
        self.written: tuple[str, Node] | None = None  # of what has expressions of its own: the node in FROM, as it stands
        self.scope: Scope | None = None  # what they see


class RangeItems:
    """The range items of one query level in their order, found by name."""

    __slots__ = ("all", "by_name", "columns")

    def __init__(self) -> None:
        self.all: list[RangeItem] = []
        self.by_name: dict[str | None, list[tuple[int, RangeItem]]] = {}
        self.columns: Any = None  # lineage's index of what they hold

    def add(self, item: RangeItem) -> None:
        """Adds an item of FROM."""
        self.by_name.setdefault(item.name, []).append((len(self.all), item))
        self.all.append(item)


class Scope:
    """The range items of one query level that are visible at one place, and where the look-up goes on."""

    __slots__ = ("ctes", "items", "limit", "outer")

    def __init__(self, ctes: Ctes | None, outer: "Scope | None", items: RangeItems | None = None, limit: int = UNLIMITED) -> None:
        self.ctes = ctes
        self.outer = outer
        self.items = RangeItems() if items is None else items
        self.limit = limit

    def add(self, item: RangeItem) -> None:
        """Adds an item of FROM."""
        self.items.add(item)

    def with_ctes(self, ctes: Ctes | None) -> "Scope":
        """The same names under other WITH queries."""
        return self if ctes is self.ctes else Scope(ctes, self.outer, self.items, self.limit)

    def so_far(self) -> "Scope":
        """What a LATERAL item that is added next may see of this level."""
        return Scope(self.ctes, self.outer, self.items, len(self.items.all))

    def visible(self) -> list[RangeItem]:
        """The items of this level."""
        return self.items.all if self.limit == UNLIMITED else self.items.all[: self.limit]

    def called(self, name: str) -> list[RangeItem]:
        """The items of this level that are called so."""
        found = self.items.by_name.get(name)
        return [item for place, item in found if place < self.limit] if found is not None else []

    def find(self, name: str) -> RangeItem | None:
        """The item that PostgreSQL takes for this alias or relation name: the innermost level that has one decides. None also
        where that has several, which differ by their schemas at best."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.items.by_name.get(name)
            if found is not None and found[0][0] < scope.limit:
                return found[0][1] if len(found) == 1 or found[1][0] >= scope.limit else None
            scope = scope.outer
        return None

    def find_cte(self, name: str) -> Cte | None:
        """The CTE that a name means in this scope; None if it is not a CTE's name."""
        return None if self.ctes is None else self.ctes.find(name)


class QueryLevel:
    """One SELECT, or one INSERT, UPDATE, DELETE or MERGE: what its names mean, and what its columns are made of."""

    __slots__ = ("arms", "body", "columns", "kind", "parts", "proposed", "scope", "targets", "values", "withs")

    def __init__(self, kind: str, body: Node, scope: Scope) -> None:
        self.kind = kind
        self.body = body
        self.scope = scope
        self.withs: Ctes | None = None  # where it has a WITH of its own
        self.proposed: Scope | None = None  # what ON CONFLICT DO UPDATE sees
        self.targets: list[Node] = []  # select list or RETURNING list
        self.values: list[Node] | None = None  # the first row of VALUES
        self.arms: tuple[Node, ...] = ()  # bodies of a set operation's arms
        self.parts: list[RangeItem] = []  # what `*` stands for, in order
        self.columns: Any = None  # outputs.py's memory
