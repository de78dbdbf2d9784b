"""What a decision rests on: the objects of the catalog that were looked at, each with the mark that it had. Pure.

PostgreSQL looks every name up again when the statement runs. Where an owner has replaced a view, renamed a table or made an
overload meanwhile, another statement runs than was decided about; the guard (`guard.py`) asks whether all marks still hold.
Not everything is looked at: a function's body, and what only a column's type runs, would make every guard large.
"""

from collections.abc import Iterable, Iterator

import msgspec

from gatewayd.catalog import FIRST_USER_OID, Catalog, Function, Operator, Relation, Type
from gatewayd.masking.rules.mask_rules import MaskRules
from gatewayd.masking.rules.masked_views import covering
from gatewayd.policy.decide.decision import Rules
from gatewayd.policy.decide.relation_reach import Reach
from gatewayd.policy.file.model import Policy
from gatewayd.postgres.execute.output_names import is_surely_distinct
from gatewayd.sql.builtins import lookup as builtins
from gatewayd.sql.facts.statement import RelationUse, Star, Statement

RowMarks = tuple[tuple[int, int], ...]


class Evidence(msgspec.Struct, frozen=True):
    """Rows are `oid:xmin,…` in the order of oids, as `row_marks.py` lists them."""

    shapes: RowMarks = ()  # oid, shape_mark
    keys: RowMarks = ()  # oid, keys_mark
    functions: tuple[str, ...] = ()  # every user-defined function of these names …
    function_rows: str = ""  # … has its row here
    reached: tuple[int, ...] = ()  # functions that relations, operators and types run, by oid
    reached_rows: str = ""
    types: tuple[str, ...] = ()
    type_rows: str = ""
    everywhere: int | None = None  # None: not asked


def evidence(statement: Statement, policy: Policy, catalog: Catalog) -> Evidence | None:
    """None where nothing needs to be asked: a read under a policy that hides and contains nothing, whose columns the text alone
    names; or a catalog that nobody has read."""
    if not catalog.is_read or statement.setting is not None:
        return None
    watches = policy.hides_something or policy.taint is not None
    if watches or statement.category != "read" or any(use.writes for use in statement.relations):
        return catalog.worked_out(_Looked, policy).at(statement)
    stars = [output.relation for output in statement.outputs if isinstance(output, Star) and output.relation is not None]
    if not stars or is_surely_distinct(statement):
        return None
    looked = catalog.worked_out(_Looked, policy)
    named = (looked.located(statement.relations[star]) for star in stars)
    shapes = {each.oid: each.shape_mark for each in named if each is not None and each.oid >= FIRST_USER_OID}
    return Evidence(shapes=tuple(shapes.items())) if shapes else None


class _Looked:
    """What was looked at of each relation, for one policy and one snapshot."""

    def __init__(self, policy: Policy, catalog: Catalog) -> None:
        self._catalog = catalog
        self._rules = catalog.worked_out(Rules, policy)
        self._masks = catalog.worked_out(MaskRules, policy) if policy.column_masks else None
        self._reach = Reach(policy.table_access, catalog)
        self._around: dict[tuple[int, bool], tuple[Relation, ...]] = {}
        self._types: dict[str, list[Type]] = {}
        for type_ in {each.oid: each for each in catalog.types.values() if each.oid >= FIRST_USER_OID}.values():
            self._types.setdefault(type_.name, []).append(type_)

    def located(self, use: RelationUse) -> Relation | None:
        return self._catalog.relation(*self._rules.relations.locate(use))

    def at(self, statement: Statement) -> Evidence:
        found: dict[int, Relation] = {}
        keyed: dict[int, Relation] = {}
        for use in statement.relations:
            relation = self.located(use)
            if relation is None or relation.oid < FIRST_USER_OID:
                continue
            around = self._of(relation, writes=use.writes)
            found.update((each.oid, each) for each in around)
            if self._masks is not None and (use.writes or any(covering(self._masks, each) != {} for each in around)):
                keyed.update((each.oid, each) for each in around)
        types = {name for use in statement.types for name in self._type_names(use.schema, use.name)}
        of_types = [each for name in types for each in self._types[name]]
        for type_ in statement.types:  # a relation's name is the name of its row type
            row_of = self._catalog.relation(type_.schema or "public", type_.name.removeprefix("_"))
            if row_of is not None and row_of.oid >= FIRST_USER_OID:
                found[row_of.oid] = row_of
        names = {use.name for use in statement.functions if use.schema != "pg_catalog"} | {use.name for use in statement.fields}
        functions = tuple(sorted(filter(self._is_function, names)))
        own = (each for name in functions for each in self._catalog.functions_by_name.get(name, ()))
        operators = (each for use in statement.operators for each in self._catalog.operators_by_name.get(use.name, ()))
        reached = self._run_by((*found.values(), *of_types), operators)
        return Evidence(
            shapes=tuple((oid, found[oid].shape_mark) for oid in sorted(found)),
            keys=tuple((oid, keyed[oid].keys_mark) for oid in sorted(keyed)),
            functions=functions,
            function_rows=_rows(each for each in own if each.oid >= FIRST_USER_OID),
            reached=tuple(each.oid for each in reached),
            reached_rows=_rows(reached),
            types=tuple(sorted(types)),
            type_rows=_rows(of_types),
            everywhere=self._catalog.everywhere_mark,
        )

    def _of(self, relation: Relation, *, writes: bool) -> tuple[Relation, ...]:
        """What using the relation reaches, and what its level comes from."""
        around = self._around.get((relation.oid, writes))
        if around is None:
            reached = {each.oid: each for each in self._reach.read(relation, only=False)}
            if writes:
                reached.update((each.oid, each) for each in self._reach.written(relation, only=False, events=None))
            ahead = list(reached.values())
            while ahead:
                each = ahead.pop()
                for oid in (*each.parents, each.belongs_to or 0):
                    above = self._catalog.by_oid.get(oid)
                    if above is not None and oid not in reached:
                        reached[oid] = above
                        ahead.append(above)
            around = self._around[relation.oid, writes] = tuple(each for each in reached.values() if each.oid >= FIRST_USER_OID)
        return around

    def _is_function(self, name: str) -> bool:
        return name in self._catalog.functions_by_name or builtins.function(name) is not None

    def _type_names(self, schema: str | None, name: str) -> Iterator[str]:
        if schema != "pg_catalog" and not (schema is None and builtins.type_name(name) is not None):
            yield from (each for each in dict.fromkeys((name, name.removeprefix("_"))) if each in self._types)

    def _run_by(self, objects: Iterable[Relation | Type], operators: Iterable[Operator]) -> list[Function]:
        ahead = [oid for each in objects for oid in each.functions]
        ahead += [each.function for each in operators]
        found: dict[int, Function] = {}
        while ahead:
            oid = ahead.pop()
            function = self._catalog.functions.get(oid)
            if function is not None and oid >= FIRST_USER_OID and oid not in found:
                found[oid] = function
                ahead += function.calls
        return [found[oid] for oid in sorted(found)]


def _rows(objects: Iterable[Function | Type]) -> str:
    return ",".join(f"{each.oid}:{each.row}" for each in sorted(objects, key=lambda each: each.oid))
