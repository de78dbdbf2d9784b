"""The columns of tables and views for lineage: a view's are those of its query, looked at in the same way (decision 10)."""

from abc import abstractmethod
from collections.abc import Sequence

from gatewayd.catalog import Relation
from gatewayd.sql.facts.analyze import walked
from gatewayd.sql.facts.walk import Walk
from gatewayd.sql.lineage.origins import STATISTICS, ColumnSource, Entangled, MarkedColumns, Plain, TracedColumn
from gatewayd.sql.lineage.places import Places, TracedColumns
from gatewayd.sql.text.parse import NotParsed, parse


class Relations(Places):
    """Knows relations by the catalog, and remembers with the marks what was found out. `views`: oids of the views around; what
    is looked at is the innermost one's query."""

    def __init__(self, marks: MarkedColumns, views: frozenset[int]) -> None:
        super().__init__(marks)
        self.views = views

    @abstractmethod
    def inside(self, view: Relation, definition: Walk) -> Places:
        """The same for the query of a view that is read here."""

    def columns(self, relation: Relation) -> TracedColumns:
        """A relation's columns. Raises Entangled for a view whose query uses marked columns other than plainly."""
        known = self.marks.columns.get(relation.oid)
        if known is None:
            try:
                known = self._work_out(relation)
            except Entangled as entangled:
                known = entangled
            self.marks.columns[relation.oid] = known
        if isinstance(known, Entangled):
            raise known
        return known

    def _work_out(self, relation: Relation) -> TracedColumns:
        if not self.marks.reach(relation):
            return tuple(TracedColumn(column.name, type=column.type) for column in relation.columns)
        if relation.schema == "pg_catalog" and relation.name in STATISTICS:
            raise Entangled(f"pg_catalog.{relation.name} shows values of other tables' columns, masked ones among them")
        own = self.marks.of(relation)
        below: Sequence[ColumnSource] = [None] * len(relation.columns)
        if relation.kind in ("view", "materialized view"):
            below = self._definition(relation)
        found = []
        for column, source in zip(relation.columns, below, strict=True):
            mark = own.get(column.name)
            if mark is not None:
                names: tuple[str, ...] = (f"{relation.qualified}.{column.name}",)
                if isinstance(source, Plain):
                    mark, names = self.marks.both(source.mark, mark), (*source.columns, *names)
                source = Plain(names, column.type, mark)
            found.append(TracedColumn(column.name, source, type=column.type))
        return tuple(found)

    def _definition(self, relation: Relation) -> list[ColumnSource]:
        """What the query of a view gives. Its columns that are made of marked ones stay as such: others may be asked for."""
        if relation.oid in self.views:  # cannot be made; should the catalog show one, it is refused
            raise Entangled(f"{relation.kind} {relation.qualified} reads itself")
        try:
            tree = parse(relation.definition)
            walk = walked(tree)
        except NotParsed:
            raise Entangled(f"the query of view {relation.qualified} cannot be read, and it reaches masked columns") from None
        [body] = tree.node.values()
        try:
            columns = self.inside(relation, walk).query(body)
        except Entangled:  # what it says may be of tables that the agent must not know of
            raise Entangled(f"{relation.kind} {relation.qualified} uses masked columns in ways that cannot be masked") from None
        if len(columns) != len(relation.columns) or any(column.many for column in columns):
            raise Entangled(f"it cannot be told what the columns of view {relation.qualified} show")
        return [column.source for column in columns]
