"""What a database contains, as an immutable snapshot (decision 12). Pure data and look-ups.

Names are as PostgreSQL stores them (folded, unquoted). Built-in objects of `pg_catalog` are not here, except its relations:
`sql/builtins/lookup.py` speaks for built-in functions, operators and types. Temporary and TOAST relations are not here at all.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, Literal, TypeVar, cast

import msgspec

RelationKind = Literal[
    "table", "partitioned table", "view", "materialized view", "foreign table", "sequence", "index", "composite type"
]
Volatility = Literal["immutable", "stable", "volatile"]
WriteEvent = Literal["insert", "update", "delete"]
P = TypeVar("P")
M = TypeVar("M")

FIRST_USER_OID: Final = 16384  # FirstNormalObjectId: what initdb made lies below
POLICIES_KEPT: Final = 6
"""Of one snapshot: the one in force, its predecessor while calls in flight end, dry runs; each may have one under taint."""

SYSTEM_COLUMNS: Final = frozenset({"tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"})
"""Columns every table has besides `Relation.columns`."""
PLACE: Final = "ctid"
"""The one of them that says where a row lies."""


class Column(msgspec.Struct, frozen=True, gc=False):
    """A column of a relation."""

    name: str
    type: str  # as format_type() prints it, without typmod: "numeric", "character varying", "public.mood", "text[]"
    nullable: bool = True


class Constraint(msgspec.Struct, frozen=True, gc=False):
    """What a row of a table must fulfil, or, of kind "partition", what decides which partition holds it.

    `columns` are the table's own. Of a "foreign" key the `other` relation holds the values, in `other_columns`; "referenced" is
    the same key seen from there.
    """

    kind: Literal["unique", "check", "foreign", "referenced", "partition"]
    columns: tuple[str, ...]
    other: int = 0
    other_columns: tuple[str, ...] = ()


class Rule(msgspec.Struct, frozen=True, gc=False):
    """What the rules ON one event touch. A table written through a view sets off its own rules for that event."""

    event: WriteEvent
    targets: tuple[int, ...]  # oids


class Relation(msgspec.Struct, frozen=True, gc=False):
    """A table, view, index, sequence or other relation."""

    oid: int
    schema: str
    name: str
    kind: RelationKind
    columns: tuple[Column, ...] = ()  # in attnum order, dropped ones left out
    parents: tuple[int, ...] = ()  # oids it inherits from or is a partition of
    children: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()  # oids of the relations a view's or materialized view's query names directly, pg_catalog's too
    functions: tuple[int, ...] = ()  # oids of user-defined functions, also behind operators and types, that its query calls
    rules: tuple[Rule, ...] = ()
    row_security: bool = False
    is_barrier: bool = False  # a view WITH (security_barrier)
    toast: tuple[int, ...] = ()  # oids of its TOAST table and of that table's index
    belongs_to: int | None = None
    """Of an index its table, of a sequence the table whose column owns it, 0 where nobody; None: not told."""
    builtins: tuple[str, ...] = ()  # names of the built-in functions its query calls, but for the plainly allowed ones
    keys: tuple[str, ...] = ()  # of an index: the columns of its table that it holds; all of them where it holds an expression
    definition: str = ""  # a view's or materialized view's query as pg_get_viewdef() prints it: every name qualified, no stars
    generated: tuple[tuple[str, tuple[str, ...]], ...] = ()  # each generated column with the columns that it is made of
    constraints: tuple[Constraint, ...] = ()
    shape_mark: int = 0
    """Stands for the rows of the catalog that say what the relation is called, its columns, rules and children: with the first
    change of one of them the server gives another number (`postgres/catalog/row_marks.py`). 0 for what nobody changes."""
    keys_mark: int = 0
    """The same of its indexes, constraints and triggers."""

    def rule_targets(self, events: Collection[WriteEvent] | None) -> tuple[int, ...]:
        """What the rules on these events touch; None: on any."""
        return tuple(oid for rule in self.rules if events is None or rule.event in events for oid in rule.targets)

    @property
    def qualified(self) -> str:
        """The name as schema.name."""
        return f"{self.schema}.{self.name}"


class Function(msgspec.Struct, frozen=True, gc=False):
    """A user-defined function, aggregate, window function or procedure: everything outside pg_catalog."""

    oid: int
    schema: str
    name: str
    volatility: Volatility
    security_definer: bool
    language: str  # "sql", "plpgsql", "c", "internal", ...
    extension: str | None  # the extension that owns it
    arguments: int
    kind: Literal["function", "aggregate", "window", "procedure"] = "function"
    calls: tuple[int, ...] = ()
    """An aggregate's transition, final, … functions that are user-defined. PostgreSQL notes every aggregate as immutable; here
    `volatility` and `security_definer` are the worst of its functions, built-in ones too."""
    builtins: tuple[str, ...] = ()  # names of the built-in ones there, but for the plainly allowed ones and support routines
    row: int = 0  # the transaction that wrote its row of pg_proc (xmin)


class Operator(msgspec.Struct, frozen=True, gc=False):
    """A user-defined operator and the function that it runs (0: a built-in one)."""

    schema: str
    name: str
    function: int
    builtin_function: str | None = None
    oid: int = 0


class Type(msgspec.Struct, frozen=True, gc=False):
    """A user-defined type, under its own name and its array's. `functions` are the user-defined ones that a conversion to or from
    it runs: input/output functions, domain CHECKs (at any depth of domains, composites, arrays and ranges) and casts; `builtins`
    the names of built-in ones in those CHECKs, but for the plainly allowed ones.

    A row type of a table is here only when it reaches such a function, a type of pg_catalog only when a user-defined cast does.
    """

    schema: str
    name: str
    kind: Literal["base", "composite", "domain", "enum", "range", "multirange", "pseudo"]
    functions: tuple[int, ...] = ()
    builtins: tuple[str, ...] = ()
    extension: str | None = None
    base: str = ""  # of a domain the type it is made of at last, as in Column.type
    oid: int = 0  # 0 of the row type of a relation, which that stands for
    row: int = 0  # the transaction that wrote its row of pg_type (xmin)


class TypeShape(msgspec.Struct, frozen=True, gc=False):
    """What PostgreSQL asks of a type when it chooses between overloads."""

    kind: Literal["b", "c", "d", "e", "m", "p", "r"]  # pg_type.typtype
    category: str
    preferred: bool
    element: int  # of a true array, else 0
    base: int  # of a domain the type it is made over, else 0


class Overload(msgspec.Struct, frozen=True, gc=False):
    """One function of a name that both pg_catalog and public have."""

    oid: int
    schema: str
    arguments: tuple[int, ...]
    defaults: int
    is_variadic: bool


class OperatorOverload(msgspec.Struct, frozen=True, gc=False):
    """One operator of a name that both have; `left` is 0 for a prefix operator."""

    oid: int
    schema: str
    left: int
    right: int
    function: int


class Cast(msgspec.Struct, frozen=True, gc=False):
    """A cast between two types (pg_cast)."""

    context: Literal["i", "a", "e"]  # implicit, in assignments, explicit
    function: int  # 0: binary-coercible or by input and output


class Overloads(msgspec.Struct, frozen=True):
    """What overload resolution asks for, by oid: all types and casts, and what stands beside a built-in object of its name."""

    shapes: Mapping[int, TypeShape] = {}
    printed: Mapping[str, int] = {}  # as Column.type
    named: Mapping[tuple[str, str], int] = {}  # by schema and internal name
    functions: Mapping[str, tuple[Overload, ...]] = {}
    operators: Mapping[str, tuple[OperatorOverload, ...]] = {}
    casts: Mapping[tuple[int, int], Cast] = {}  # by source and target


class Catalog(msgspec.Struct, frozen=True, dict=True):
    """One database at one moment. `revision` rises with every snapshot of that database; 0 is the unread catalog."""

    revision: int
    database: str  # current_database()
    server_version: int = 0  # server_version_num
    relations: Mapping[tuple[str, str], Relation] = {}
    functions: Mapping[int, Function] = {}
    operators: tuple[Operator, ...] = ()
    types: Mapping[tuple[str, str], Type] = {}
    encoding: str = "UTF8"  # server_encoding, as PostgreSQL spells it
    everywhere_mark: int = 0
    """As `Relation.shape_mark`, of what any statement may meet: schemas without which names are written, operators, casts."""
    overloads: Overloads = Overloads()

    @property
    def is_read(self) -> bool:
        return self.revision > 0

    def relation(self, schema: str, name: str) -> Relation | None:
        """The relation of this name; None if there is none."""
        return self.relations.get((schema, name))

    @cached_property
    def by_oid(self) -> Mapping[int, Relation]:
        return {relation.oid: relation for relation in self.relations.values()}

    def closure(self, relation: Relation, step: Callable[[Relation], Iterable[int]]) -> Iterator[Relation]:
        """The relation, and what `step` leads to by oid from each, at any depth and once. Oids of no relation lead nowhere."""
        seen = {relation.oid}
        ahead = [relation]
        while ahead:
            each = ahead.pop()
            yield each
            for oid in step(each):
                found = self.by_oid.get(oid)
                if found is not None and oid not in seen:
                    seen.add(oid)
                    ahead.append(found)

    def written(
        self, relation: Relation, *, only: bool, events: Collection[WriteEvent] | None
    ) -> Mapping[int, tuple[Relation, bool]]:
        """What a write to the relation may write, by oid, itself first: base tables of views, children, targets of rules; of each
        again. With whether it is a rule that writes it: that may do anything there. None as `events`: any."""
        found: dict[int, tuple[Relation, bool]] = {}
        seen: set[tuple[int, bool]] = set()
        ahead: list[tuple[Relation, bool]] = [(relation, False)]
        while ahead:
            each, by_rule = ahead.pop()
            if (each.oid, by_rule) in seen:
                continue
            seen.add((each.oid, by_rule))
            found[each.oid] = each, by_rule or found.get(each.oid, (each, False))[1]
            if each.oid < FIRST_USER_OID and each.schema in ("pg_catalog", "information_schema"):
                continue
            children = () if only and each is relation else each.children
            below = [(oid, by_rule) for oid in (*(each.reads if each.kind == "view" else ()), *children)]
            ruled = [(oid, True) for oid in each.rule_targets(None if by_rule else events)]
            ahead += [(self.by_oid[oid], rule) for oid, rule in (*below, *ruled) if oid in self.by_oid]
        return found

    def has_column(self, relation: Relation, name: str) -> bool:
        """Whether the relation has a column of this name, its system columns left aside."""
        names = self._column_names.get(relation.oid)
        if names is None:
            names = self._column_names[relation.oid] = frozenset(column.name for column in relation.columns)
        return name in names

    @cached_property
    def _column_names(self) -> dict[int, frozenset[str]]:
        return {}

    @cached_property
    def indexes_by_table(self) -> Mapping[int, tuple[Relation, ...]]:
        found: dict[int, list[Relation]] = {}
        for relation in self.relations.values():
            if relation.kind == "index" and relation.belongs_to:
                found.setdefault(relation.belongs_to, []).append(relation)
        return {oid: tuple(indexes) for oid, indexes in found.items()}

    def worked_out(self, make: Callable[[P, "Catalog"], M], policy: P) -> M:
        """`make(policy, self)`, made once: what a policy means for this snapshot. It goes when the snapshot goes.

        An entry holds its policy, so the identity that is its key cannot be given to another one.
        """
        kept = self._worked_out.setdefault(make, {})
        entry = kept.get(id(policy))
        if entry is None:
            if len(kept) >= POLICIES_KEPT:
                kept.clear()
            entry = kept[id(policy)] = policy, make(policy, self)
        return cast("M", entry[1])

    @cached_property
    def _worked_out(self) -> dict[object, dict[int, tuple[object, object]]]:
        return {}

    @cached_property
    def conversions_run_functions(self) -> bool:
        """Whether the conversion of some type runs a user-defined function: what RUNS_ANY_CONVERSION is refused for."""
        return any(type_.functions or type_.builtins for type_ in self.types.values())

    @cached_property
    def functions_by_name(self) -> Mapping[str, tuple[Function, ...]]:
        found: dict[str, list[Function]] = {}
        for function in self.functions.values():
            found.setdefault(function.name, []).append(function)
        return {name: tuple(functions) for name, functions in found.items()}

    @cached_property
    def operators_by_name(self) -> Mapping[str, tuple[Operator, ...]]:
        found: dict[str, list[Operator]] = {}
        for operator in self.operators:
            found.setdefault(operator.name, []).append(operator)
        return {name: tuple(operators) for name, operators in found.items()}


def unread(database: str) -> Catalog:
    """The catalog of a database that did not answer yet."""
    return Catalog(revision=0, database=database)
