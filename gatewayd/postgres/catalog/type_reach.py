"""What types make PostgreSQL run at any depth: the functions behind conversions, CHECKs and casts (decision 3.5).

Out of the rows of one reading of a catalog; `catalog_rows.py` asks for what it puts into the Catalog.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from gatewayd.catalog import FIRST_USER_OID
from gatewayd.postgres.catalog.catalog_queries import Rows
from gatewayd.sql.builtins import lookup as builtins


class TypeReach(msgspec.Struct):
    """What something runs: oids of user-defined functions, names of built-in ones that are not plainly allowed."""

    functions: set[int] = msgspec.field(default_factory=set)
    builtins: set[str] = msgspec.field(default_factory=set)

    @property
    def is_something(self) -> bool:
        return bool(self.functions or self.builtins)

    def take(self, other: "TypeReach") -> None:
        """Adds what `other` reaches."""
        self.functions |= other.functions
        self.builtins |= other.builtins


class Reaches:
    """What is reached in one reading of a catalog. What types reach is worked out once for each."""

    def __init__(self, rows: Rows) -> None:
        self.builtin_names = {row["oid"]: row["name"] for row in rows.builtins}
        self.operator_functions = {row["oid"]: row["function"] for row in rows.operators}
        self.type_rows = {row["oid"]: row for row in rows.types}
        self._rows = rows
        self._row_type_elements = {row["oid"]: row["element"] for row in rows.row_types}
        self._columns_of = {row["row_type"]: row["types"] or () for row in rows.relations if row["row_type"]}
        self._checked_types: dict[int, set[int]] = defaultdict(set)
        self._own = self._own_reach()
        self._casts = self._casts_reach()
        self._reached: dict[int, TypeReach] = {}

    def run(self, reach: TypeReach, function: int) -> None:
        """Adds a function, by its oid, to what `reach` runs."""
        if function >= FIRST_USER_OID:
            reach.functions.add(function)
        elif function and (name := self.builtin_names.get(function)) is not None:
            builtin = builtins.function(name)
            if builtin is None or builtin.clearance is not builtins.Clearance.ALLOWED:
                reach.builtins.add(sys.intern(name))

    def of_type(self, oid: int) -> TypeReach:
        """What a conversion to or from a type runs, through domains, arrays, ranges and composites at any depth.

        Casts count for the type itself and the types it is a domain over: parts of a value are converted by input and output.
        """
        found = self._reached.get(oid)
        if found is None:
            found = TypeReach()
            seen: set[int] = set()
            waiting = [oid]
            while waiting:  # a walk of its own for each type: types may contain each other in a circle
                at = waiting.pop()
                if at in seen:
                    continue
                seen.add(at)
                if at in self._own:
                    found.take(self._own[at])
                waiting += self._parts(at)
            at = oid
            while at:
                if at in self._casts:
                    found.take(self._casts[at])
                row = self.type_rows.get(at)
                at = row["base"] if row is not None else 0
            self._reached[oid] = found
        return found

    def _parts(self, oid: int) -> Iterable[int]:
        parts = {*self._columns_of.get(oid, ()), *self._checked_types.get(oid, ()), self._row_type_elements.get(oid, 0)}
        row = self.type_rows.get(oid)
        if row is not None:
            parts |= {row["element"], row["base"], row["subtype"]}
        parts.discard(0)
        return parts

    def _own_reach(self) -> dict[int, TypeReach]:
        """What the conversions of each type run by themselves: input and output, CHECKs."""
        own: dict[int, TypeReach] = defaultdict(TypeReach)
        for row in self._rows.types:
            for function in row["functions"]:
                if function >= FIRST_USER_OID:
                    own[row["oid"]].functions.add(function)
        for row in self._rows.checks:
            match row["class"]:
                case "pg_type":
                    self._checked_types[row["type"]].add(row["oid"])
                case "pg_operator":
                    self.run(own[row["type"]], self.operator_functions.get(row["oid"], 0))
                case _:
                    self.run(own[row["type"]], row["oid"])
        return own

    def _casts_reach(self) -> dict[int, TypeReach]:
        """What casts to each type run. For a user-defined source too where PostgreSQL casts by itself (IMPLICIT, AS ASSIGNMENT):
        no statement names the target then. Not for a built-in source, which nearly every statement touches: what it is cast to
        is user-defined, and speaks for itself."""
        casts: dict[int, TypeReach] = defaultdict(TypeReach)
        for row in self._rows.casts:
            self.run(casts[row["target"]], row["function"])
            if row["source"] is not None:
                self.run(casts[row["source"]], row["function"])
        return casts
