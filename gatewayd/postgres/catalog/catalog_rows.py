"""Rows of the catalog queries -> Catalog, while calls go on.

Names and columns are shared where they are equal: databases repeat them, and 200 000 columns must stay small.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import asyncpg
import trio

from gatewayd.catalog import FIRST_USER_OID, Catalog, Column, Constraint, Function, Operator, Relation, Rule, Type, WriteEvent
from gatewayd.postgres.catalog.catalog_queries import Rows
from gatewayd.postgres.catalog.overload_rows import overloads
from gatewayd.postgres.catalog.type_reach import Reaches, TypeReach
from gatewayd.sql.builtins import lookup as builtins

_RELATION_KINDS: Final[dict[str, Any]] = {
    "r": "table",
    "p": "partitioned table",
    "v": "view",
    "m": "materialized view",
    "f": "foreign table",
    "S": "sequence",
    "i": "index",
    "I": "index",
    "c": "composite type",
}
_FUNCTION_KINDS: Final[dict[str, Any]] = {"f": "function", "a": "aggregate", "w": "window", "p": "procedure"}
_TYPE_KINDS: Final[dict[str, Any]] = {
    "b": "base",
    "c": "composite",
    "d": "domain",
    "e": "enum",
    "r": "range",
    "m": "multirange",
    "p": "pseudo",
}
_BATCH: Final = 50
_EVENTS: Final[dict[str, WriteEvent]] = {"2": "update", "3": "insert", "4": "delete"}
"""pg_rewrite.ev_type; "1" is a view's own rule."""
_VOLATILITIES: Final[dict[str, Any]] = {"i": "immutable", "s": "stable", "v": "volatile"}


async def build(rows: Rows, revision: int) -> Catalog:
    """Lets other tasks run about every millisecond. A thread would release the interpreter's lock every 5 ms at best."""
    work = _Work(rows)
    relations: dict[tuple[str, str], Relation] = {}
    for number, relation in enumerate(work.relations()):
        relations[relation.schema, relation.name] = relation
        if number % _BATCH == 0:
            await trio.lowlevel.checkpoint()
    functions: dict[int, Function] = {}
    for number, function in enumerate(work.functions()):
        functions[function.oid] = function
        if number % _BATCH == 0:
            await trio.lowlevel.checkpoint()
    return Catalog(
        revision=revision,
        database=rows.server["database"],
        server_version=rows.server["version"],
        encoding=rows.server["encoding"],
        relations=relations,
        functions=functions,
        operators=tuple(work.operators()),
        types=work.types(),
        everywhere_mark=rows.server["everywhere"],
        overloads=overloads(rows),
    )


class _Work:
    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.reaches = Reaches(rows)

    def relations(self) -> Iterator[Relation]:
        parents: dict[int, list[int]] = defaultdict(list)
        children: dict[int, list[int]] = defaultdict(list)
        for row in self.rows.inheritance:
            parents[row["child"]].append(row["parent"])
            children[row["parent"]].append(row["child"])
        generated: dict[int, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
        for row in self.rows.generated:
            generated[row["relation"]].append((row["name"], tuple(row["sources"])))
        constraints = self._constraints()
        reads: dict[int, set[int]] = defaultdict(set)
        targets: dict[int, dict[WriteEvent, set[int]]] = defaultdict(lambda: defaultdict(set))
        runs: dict[int, TypeReach] = defaultdict(TypeReach)
        for row in self.rows.rules:
            match row["class"]:
                case "none":
                    targets[row["relation"]].setdefault(_EVENTS[row["event"]], set())
                case "pg_class":
                    event = _EVENTS.get(row["event"])
                    (targets[row["relation"]][event] if event else reads[row["relation"]]).add(row["oid"])
                case "pg_operator":
                    self.reaches.run(runs[row["relation"]], self.reaches.operator_functions.get(row["oid"], 0))
                case "pg_type":
                    runs[row["relation"]].take(self.reaches.of_type(row["oid"]))
                case _:
                    self.reaches.run(runs[row["relation"]], row["oid"])
        names: dict[str, str] = {}
        # By type and nullability, then by name: 200 000 keys that are tuples would cost the garbage collector 100 ms each time.
        columns: dict[int, dict[str, Column]] = defaultdict(dict)
        printed = {row["oid"]: sys.intern(row["printed"]) for row in (*self.rows.types, *self.rows.row_types)}
        numbered = self._numbered()
        for row in self.rows.relations:
            oid = row["oid"]
            shaped = []
            for name, type_oid, required in zip(row["names"] or (), row["types"] or (), row["required"] or (), strict=True):
                alike = columns[2 * type_oid + required]
                column = alike.get(name)
                if column is None:
                    name = names.setdefault(name, name)
                    column = alike[name] = Column(name, printed[type_oid], not required)
                shaped.append(column)
            kind = _RELATION_KINDS[row["kind"]]
            reach = runs.get(oid)
            yield Relation(
                oid=oid,
                schema=sys.intern(row["schema"]),
                name=row["name"],
                kind=kind,
                columns=tuple(shaped),
                parents=tuple(parents.get(oid, ())),
                children=tuple(children.get(oid, ())),
                reads=tuple(sorted(reads.get(oid, ()))),
                functions=tuple(sorted(reach.functions)) if reach else (),
                rules=tuple(Rule(event, tuple(sorted(oids))) for event, oids in targets[oid].items()) if oid in targets else (),
                row_security=row["row_security"],
                is_barrier=row["is_barrier"],
                toast=tuple(row["toast"] or ()),
                belongs_to=row["belongs_to"] if kind in ("index", "sequence") else None,
                builtins=tuple(sorted(reach.builtins)) if reach else (),
                keys=_keys(row, numbered) if kind == "index" else (),
                definition=row["definition"] or "",
                generated=tuple(generated.get(oid, ())),
                constraints=tuple(constraints.get(oid, ())),
                shape_mark=row["shape"],
                keys_mark=row["keys"],
            )

    def _numbered(self) -> dict[int, dict[int, str]]:
        """Of every table with an index: number of a column -> its name."""
        indexed = {row["belongs_to"] for row in self.rows.relations if row["kind"] in ("i", "I")}
        return {
            row["oid"]: dict(zip(row["numbers"] or (), row["names"] or (), strict=True))
            for row in self.rows.relations
            if row["oid"] in indexed
        }

    def _constraints(self) -> dict[int, list[Constraint]]:
        """By relation; equal ones are shared: most keys are called alike."""
        found: dict[int, list[Constraint]] = defaultdict(list)
        shared: dict[Constraint, Constraint] = {}
        for row in self.rows.constraints:
            columns, others = tuple(row["columns"] or ()), tuple(row["other_columns"] or ())
            constraint = Constraint(row["kind"], columns, row["other"], others if row["other"] else ())
            found[row["relation"]].append(shared.setdefault(constraint, constraint))
            if row["kind"] == "foreign":
                found[row["other"]].append(Constraint("referenced", others, row["relation"], columns))
        return found

    def functions(self) -> Iterator[Function]:
        parts: dict[int, list[asyncpg.Record]] = defaultdict(list)
        for row in self.rows.aggregates:
            parts[row["aggregate"]].append(row)
        for row in self.rows.functions:
            reach = TypeReach()
            volatility, security_definer = row["volatility"], row["security_definer"]
            for part in parts.get(row["oid"], ()):
                volatility = max(volatility, part["volatility"])  # i < s < v
                security_definer = security_definer or part["security_definer"]
                # A support routine is refused to statements, but an aggregate is what it is for.
                if not _is_support(self.reaches.builtin_names.get(part["oid"], "")):
                    self.reaches.run(reach, part["oid"])
            yield Function(
                oid=row["oid"],
                schema=sys.intern(row["schema"]),
                name=row["name"],
                volatility=_VOLATILITIES[volatility],
                security_definer=security_definer,
                language=sys.intern(row["language"]),
                extension=row["extension"] and sys.intern(row["extension"]),
                arguments=row["arguments"],
                kind=_FUNCTION_KINDS[row["kind"]],
                calls=tuple(sorted(reach.functions)),
                builtins=tuple(sorted(reach.builtins)),
                row=row["row"],
            )

    def operators(self) -> Iterator[Operator]:
        for row in self.rows.operators:
            function = row["function"]
            own = function >= FIRST_USER_OID
            yield Operator(
                row["schema"],
                row["name"],
                function if own else 0,
                None if own else self.reaches.builtin_names.get(function),
                row["oid"],
            )

    def types(self) -> dict[tuple[str, str], Type]:
        found: dict[tuple[str, str], Type] = {}
        arrays: list[asyncpg.Record] = []
        for row in self.rows.types:
            reach = self.reaches.of_type(row["oid"])
            if row["oid"] < FIRST_USER_OID and not reach.is_something:
                continue
            if row["is_array"]:
                arrays.append(row)
                continue
            found[row["schema"], row["name"]] = Type(
                row["schema"],
                row["name"],
                _TYPE_KINDS[row["kind"]],
                tuple(sorted(reach.functions)),
                tuple(sorted(reach.builtins)),
                row["extension"],
                self._base(row),
                0 if row["row_of"] else row["oid"],
                row["row"],
            )
        for row in arrays:
            item = self.reaches.type_rows.get(row["element"])
            if item is not None and (type_ := found.get((item["schema"], item["name"]))) is not None:
                found.setdefault((row["schema"], row["name"]), type_)
        running = {
            row["oid"] for row in (*self.rows.types, *self.rows.row_types) if self.reaches.of_type(row["oid"]).is_something
        }
        for row in self.rows.relations:
            if row["kind"] != "c" and row["row_type"] and not running.isdisjoint(row["types"] or ()):
                reach = self.reaches.of_type(row["row_type"])
                found[row["schema"], row["name"]] = Type(
                    row["schema"],
                    row["name"],
                    "composite",
                    tuple(sorted(reach.functions)),
                    tuple(sorted(reach.builtins)),
                )
        return found

    def _base(self, row: asyncpg.Record) -> str:
        if not row["base"]:
            return ""
        while row["base"]:
            base = self.reaches.type_rows.get(row["base"])
            if base is None:
                return ""
            row = base
        printed: str = row["printed"]
        return sys.intern(printed)


def _keys(index: asyncpg.Record, numbered: dict[int, dict[int, str]]) -> tuple[str, ...]:
    columns = numbered.get(index["belongs_to"], {})
    if index["index_computes"]:
        return tuple(columns.values())
    return tuple(columns[number] for number in index["index_numbers"] or () if number in columns)


def _is_support(name: str) -> bool:
    builtin = builtins.function(name)
    return builtin is not None and builtin.reason == builtins.SUPPORT_ROUTINE
