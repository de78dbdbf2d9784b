"""Which functions a statement may make PostgreSQL run (decision 3.5): calls, attribute notation, operators, casts and types.

Allow-listed throughout. Built-in ones have their verdict in `sql/builtins/lookup.py`; a user-defined one needs
`functions.allow`, or to be IMMUTABLE and owned by an extension (or on the list of `sql/builtins/extensions.py`), or to be
STABLE or IMMUTABLE where the policy hides nothing.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Final

import msgspec

from gatewayd.catalog import Catalog, Function, Operator, Relation, Type
from gatewayd.policy.decide.reasons import Refusal, allow, at, dotted, shown
from gatewayd.policy.file.model import Policy
from gatewayd.sql.bind.bound import Bound
from gatewayd.sql.builtins import extensions as builtins_extensions
from gatewayd.sql.builtins import filtered_functions
from gatewayd.sql.builtins import lookup as builtins
from gatewayd.sql.builtins.lookup import Builtin, Clearance
from gatewayd.sql.facts.statement import FieldUse, FunctionUse, OperatorUse, TypeUse

SEARCH_PATH: Final = "public"  # the only user schema that an unqualified name is looked up in (decision 11)
TRIGGERS: Final = frozenset({"suppress_redundant_updates_trigger", "tsvector_update_trigger", "tsvector_update_trigger_column"})
SERIALS: Final = frozenset({"serial", "serial2", "serial4", "serial8", "smallserial", "bigserial"})
SQL_RUNNING_EXTENSIONS: Final = frozenset({"tablefunc", "xml2", "dblink"})  # their STABLE functions run SQL text they are given
HIDING: Final = "this policy denies or masks tables"


class Blocked(msgspec.Struct, frozen=True, gc=False):
    """Something that may not run: what it is, and why, without the place where a statement names it."""

    subject: str
    why: str

    def refusal(self, sql: str, position: int, note: str = "") -> Refusal:
        """The refusal at this byte offset of the text."""
        return Refusal(f"{self.subject}{at(sql, position)}{note} is not permitted: {self.why}")


class FunctionRules:
    """The rules of one policy over one catalog snapshot."""

    def __init__(self, policy: Policy, catalog: Catalog) -> None:
        self._allowed = policy.functions.allow
        self._hides = policy.hides_something
        self._catalog = catalog
        self._known: dict[int, Blocked | None] = {}
        self._types: dict[tuple[str, str], Blocked | None] = {}

    @property
    def _retry(self) -> str:
        if self._catalog.is_read:
            return "retry in a few seconds if it was just created"
        return "retry in a few seconds, when the catalog of this database is read"

    # --- calls

    def refuse_call(
        self, use: FunctionUse, sql: str, bound: Bound, *, is_column: bool = False, shielded: bool = False
    ) -> Refusal | None:
        """`is_column`: `f(x)` is `x.f` where no function is called so. `shielded`: a call that could speak of hidden things is
        given an argument which does not."""
        if use.name in (TRIGGERS if use.trigger else builtins.TABLESAMPLE_METHODS) and use.schema in (None, "pg_catalog"):
            return None
        if is_grammar(use, self._catalog):
            return None
        if use.grammar_since and use.name == "system_user":
            why = 'to this server it is the name of a column, and to the parser it is not; write it quoted: "system_user"'
            return Blocked("system_user", why).refusal(sql, use.position)
        found, blocked = self._named(use.schema, use.name, use.arguments, use.constant, bound, shielded=shielded)
        if blocked is not None:
            note = " (grammar for newer servers, a call for this one)" if use.grammar_since else ""
            return blocked.refusal(sql, use.position, note)
        if found or is_column:
            return None
        where = f"in schema {dotted(use.schema)}" if use.schema is not None else "in pg_catalog or public"
        why = f"no function of that name is known {where}; check the spelling, qualify it with its schema, or {self._retry}"
        return Blocked(f"function {dotted(use.schema, use.name)}", why).refusal(sql, use.position)

    def _named(
        self,
        schema: str | None,
        name: str,
        arguments: int,
        constant: str | None = None,
        bound: Bound | None = None,
        *,
        shielded: bool = False,
    ) -> tuple[bool, Blocked | None]:
        """Whether anything of that name can run here, and why it may not. `arguments` is how many are written, -1 when that is
        not known; `constant` as in FunctionUse."""
        found = False
        if schema in (None, "pg_catalog", "information_schema"):
            builtin = builtins.function(name, schema or "pg_catalog")
            found = builtin is not None
            harmless = (
                (name, arguments) in builtins.HARMLESS_WITH
                or (constant is not None and name in builtins.RUNS_ANY_CONVERSION)
                or (shielded and filtered_functions.applies(name, hides=self._hides))
            )
            blocked = self._refuse_builtin(name, builtin) if builtin is not None and not harmless else None
            if blocked is not None and constant is not None:
                blocked = _refuse_setting(constant)
            if blocked is not None:
                return True, blocked
        if schema not in ("pg_catalog", "information_schema"):
            place = schema or SEARCH_PATH
            candidates = [each for each in self._catalog.functions_by_name.get(name, ()) if each.schema == place]
            if found and bound is not None and schema is None and any(map(self.refuse_function, candidates)):
                taken = bound.functions(name)
                candidates = [each for each in candidates if taken is None or each.oid in taken]
            for each in candidates:
                blocked = self.refuse_function(each)
                if blocked is not None:
                    shadows = f" (an overload of the built-in {name}, which PostgreSQL may choose)" if found else ""
                    return True, Blocked(blocked.subject + shadows, blocked.why)
            if candidates and self._blocked_json is not None:
                return True, Blocked(f"function {dotted(place, name)}", self._answered_as_json)
            found = found or bool(candidates) or (not self._catalog.is_read and self._is_listed(place, name))
        if arguments in (1, -1):  # f(x) may also mean a conversion to type f
            is_type, blocked = self._type(schema, name)
            if blocked is not None:
                return True, blocked
            found = found or is_type
        return found, None

    def refuse_function(self, function: Function) -> Blocked | None:
        """One user-defined function, by what it is."""
        if function.oid not in self._known:
            self._known[function.oid] = None  # an aggregate cannot run itself; a cycle would be a broken catalog
            self._known[function.oid] = self._judge(function)
        return self._known[function.oid]

    def _judge(self, function: Function) -> Blocked | None:
        named = f"function {dotted(function.schema, function.name)}"
        if function.kind == "procedure":
            return Blocked(named, "it is a procedure, and CALL is never permitted")
        if self._is_listed(function.schema, function.name):
            return None
        if function.schema == "information_schema" and builtins.function(function.name, function.schema) is not None:
            return None
        type_ = self._catalog.types.get((function.schema, function.name))
        if function.language == "internal" and type_ is not None and type_.kind in ("range", "multirange"):
            return self._convert(type_)  # the constructor that PostgreSQL makes with the type
        if _is_reviewed(function):
            return self._refuse_all(named, "it runs", function.calls, function.builtins)
        remedy = f"an operator can permit it with {allow(function.schema, function.name)}"
        if function.volatility == "volatile":
            return Blocked(named, f"it is volatile, so it may change things; {remedy}")
        if not (function.volatility == "immutable" and function.extension is not None):
            why = self._why_not_open(function)
            if why is not None:
                return Blocked(named, f"{why}; {remedy}")
        return self._refuse_all(named, "it runs", function.calls, function.builtins)

    def _why_not_open(self, function: Function) -> str | None:
        if self._hides:
            return f"it is {function.volatility} and {HIDING}, so it could read those"
        if function.security_definer:
            return "it runs with its owner's rights (SECURITY DEFINER)"
        if function.extension in SQL_RUNNING_EXTENSIONS:
            return f"extension {function.extension} runs SQL text that it is given"
        if function.kind == "aggregate" or function.extension is not None:
            return None  # an aggregate is what it calls
        if function.language in ("c", "internal") or function.language.endswith("u"):
            return f"language {function.language} can reach outside the database"
        return None

    def _is_listed(self, schema: str, name: str) -> bool:
        return (name != "*" and (schema, name) in self._allowed) or (schema, "*") in self._allowed

    def _refuse_builtin(self, name: str, builtin: Builtin) -> Blocked | None:
        if builtin.clearance is Clearance.REFUSED:
            return Blocked(
                f"function {name}", f"it {builtin.reason}; no key of the policy opens it, leave it out of the statement"
            )
        if builtin.clearance is Clearance.OPEN_ONLY and self._hides:
            return Blocked(f"function {name}", f"it {builtin.reason}, and {HIDING}; leave it out of the statement")
        if name in builtins.RUNS_ANY_CONVERSION and self._blocked_conversion is not None:
            return Blocked(
                f"function {name}", f"it may convert to {self._blocked_conversion.subject}, where {self._blocked_conversion.why}"
            )
        return None

    def _refuse_all(self, subject: str, runs: str, oids: Iterable[int], names: Iterable[str]) -> Blocked | None:
        """Functions that the statement makes PostgreSQL run without naming them."""
        for oid in oids:
            function = self._catalog.functions.get(oid)
            if function is None:
                return Blocked(
                    subject, f"{runs} a function that was not there when the catalog was last read; retry in a few seconds"
                )
            blocked = self.refuse_function(function)
            if blocked is not None:
                return Blocked(subject, f"{runs} {blocked.subject}, which is not permitted: {blocked.why}")
        for name in names:
            builtin = builtins.function(name)
            if builtin is None:
                return Blocked(subject, f"{runs} built-in function {name}, which is not on the reviewed list")
            blocked = self._refuse_builtin(name, builtin)
            if blocked is not None:
                return Blocked(subject, f"{runs} {blocked.subject}, which is not permitted: {blocked.why}")
        return None

    def behind(self, relation: Relation, *, vouched: bool) -> Blocked | None:
        """The functions that a view's query runs. `vouched`: the view has its own key, so only the volatile count."""
        subject = f"the query of {dotted(relation.schema, relation.name)}"
        if not vouched:
            return self._refuse_all(subject, "it runs", relation.functions, relation.builtins)
        functions = (self._catalog.functions.get(oid) for oid in relation.functions)
        volatile = [each.oid for each in functions if each is not None and each.volatility == "volatile"]
        return self._refuse_all(subject, "it runs", volatile, ())

    # --- operators

    def refuse_operator(self, use: OperatorUse, sql: str, bound: Bound) -> Refusal | None:
        """A built-in operator is harmless; a user-defined one of the name, which PostgreSQL may choose, is its function."""
        named = f"operator {dotted(use.schema) + '.' if use.schema else ''}{use.name[:63]}"
        builtin = use.schema in (None, "pg_catalog") and builtins.operator(use.name)
        place = use.schema or SEARCH_PATH
        candidates = [each for each in self._catalog.operators_by_name.get(use.name, ()) if each.schema == place]
        runs = "an overload of this built-in operator runs" if builtin else "it runs"
        blocked = next(filter(None, (self._behind_operator(each, named, runs) for each in candidates)), None)
        if blocked is not None and builtin and use.schema is None and (taken := bound.operators(use.name)) is not None:
            candidates = [each for each in candidates if each.oid in taken]
            blocked = next(filter(None, (self._behind_operator(each, named, runs) for each in candidates)), None)
        if blocked is not None:
            return blocked.refusal(sql, use.position)
        if builtin:
            return None
        if candidates:
            blocked = Blocked(named, self._answered_as_json) if self._blocked_json is not None else None
            return blocked.refusal(sql, use.position) if blocked is not None else None
        return Blocked(named, f"no operator of that name is known; check its schema, or {self._retry}").refusal(sql, use.position)

    def _behind_operator(self, operator: Operator, named: str, runs: str) -> Blocked | None:
        names = (operator.builtin_function,) if operator.builtin_function is not None and not operator.function else ()
        return self._refuse_all(named, runs, () if names else (operator.function,), names)

    # --- types

    def refuse_type(self, use: TypeUse, sql: str, bound: Bound) -> Refusal | None:
        """The refusal of a type that is unknown, or whose conversions run a function that the policy does not allow; else
        None."""
        known, blocked = self._type(use.schema, use.name)
        if blocked is not None and _is_plain(use.name) and bound.casts_to(use.schema, use.name):
            return None
        if blocked is not None:
            return blocked.refusal(sql, use.position)
        if known or (use.schema is None and use.name in SERIALS) or not self._catalog.is_read:
            return None
        why = f"no type of that name is known; check the spelling, qualify it with its schema, or {self._retry}"
        return Blocked(f"type {dotted(use.schema, use.name)}", why).refusal(sql, use.position)

    def _type(self, schema: str | None, name: str) -> tuple[bool, Blocked | None]:
        """Whether a type of that name exists, and why a conversion to or from it may not run."""
        if schema in (None, "pg_catalog"):
            builtin = builtins.type_name(name)
            if builtin is not None and builtin.clearance is not Clearance.ALLOWED:
                return True, Blocked(f"type {name}", f"it {builtin.reason}; leave it out of the statement")
            # A type of pg_catalog is in the catalog when a user-defined cast from or to it runs a function.
            kind = self._catalog.types.get(("pg_catalog", name))
            blocked = self._convert(kind) if kind is not None else None
            if builtin is not None or schema is not None:
                return builtin is not None, blocked
        if schema == "information_schema":
            return True, None  # domains over built-in types
        place = schema or SEARCH_PATH
        plain = name.removeprefix("_")  # type t[] is called _t
        kind = self._catalog.types.get((place, name)) or self._catalog.types.get((place, plain))
        if kind is not None:
            return True, self._convert(kind)
        # The row type of a table is among the types only when one of its columns runs something.
        return any(self._catalog.relation(place, each) is not None for each in (name, plain)), None

    def _convert(self, kind: Type) -> Blocked | None:
        key = (kind.schema, kind.name)
        if key not in self._types:
            self._types[key] = self._refuse_all(f"type {dotted(*key)}", "a conversion runs", kind.functions, kind.builtins)
        return self._types[key]

    def refuse_columns(self, relation: Relation, used: frozenset[str] | None, sql: str, position: int) -> Refusal | None:
        """Columns whose type says what PostgreSQL converts, though the statement names no type: `column = '{x}'` turns the text
        into a value of the column's type, `length(column)` may run a cast from it."""
        hostile = self._blocked_by_printed_type
        if not hostile:
            return None
        for column in relation.columns:
            blocked = hostile.get(column.type.removesuffix("[]")) if used is None or column.name in used else None
            if blocked is not None:
                table = dotted(relation.schema, relation.name)
                named = f"an expression over column {shown(column.name)} of table {table}"
                why = f"it has {blocked.subject}, and {blocked.why}; select it as it stands, or leave it out"
                return Blocked(named, why).refusal(sql, position)
        return None

    @cached_property
    def _blocked_by_printed_type(self) -> dict[str, Blocked]:
        """User-defined types whose conversion may not run, as format_type() prints them: quoted where the name needs it."""
        found: dict[str, Blocked] = {}
        for kind in self._catalog.types.values():
            blocked = self._convert(kind) if kind.schema != "pg_catalog" else None
            if blocked is not None:
                schema, name = ((each, '"' + each.replace('"', '""') + '"') for each in (kind.schema, kind.name))
                prefixes = tuple(f"{each}." for each in schema) + (("",) if kind.schema == SEARCH_PATH else ())
                found.update({prefix + each: blocked for each in name for prefix in prefixes})
        return found

    @cached_property
    def _blocked_conversion(self) -> Blocked | None:
        """Any type at all whose conversion may not run, for the functions that convert to a type no one names."""
        return next((each for each in map(self._convert, self._catalog.types.values()) if each is not None), None)

    def written_as_json(self, relation: Relation) -> Blocked | None:
        """A cast to json that may not run, where a value of the relation could make PostgreSQL choose it: every answer goes
        through row_to_json, and that runs the cast of a user-defined type, which the statement does not name."""
        if self._blocked_json is None or not any("." in column.type for column in relation.columns):
            return None
        return self._blocked_json

    @property
    def _answered_as_json(self) -> str:
        """Why a user-defined function or operator may not run then: its result may be of such a type, which the statement does
        not name."""
        assert self._blocked_json is not None
        return f"its result may be written as JSON, and there {self._blocked_json.why}"

    @cached_property
    def _blocked_json(self) -> Blocked | None:
        kinds = (self._catalog.types.get(("pg_catalog", name)) for name in ("json", "jsonb"))
        return next((blocked for kind in kinds if kind is not None and (blocked := self._convert(kind)) is not None), None)

    # --- attribute notation

    def refuse_field(self, use: FieldUse, is_column: bool, sql: str) -> Refusal | None:
        """`x.name` and `(expr).name`: a column where proved, else a call of `name`, unless nothing at all is called so."""
        if is_column:
            return None
        _, blocked = self._named(None, use.name, 1)
        if blocked is None:
            return None
        return blocked.refusal(sql, use.position, note=f" (written as .{shown(use.name)}, not known to be a column here)")


def _is_plain(type_name: str) -> bool:
    """A type of PostgreSQL's own that is refused for the casts of users alone."""
    builtin = builtins.type_name(type_name)
    return builtin is not None and builtin.clearance is Clearance.ALLOWED


def is_grammar(use: FunctionUse, catalog: Catalog) -> bool:
    """Whether this server reads the words as grammar, like the parser that found them, and looks up no function."""
    return 0 < use.grammar_since <= catalog.server_version


def _is_reviewed(function: Function) -> bool:
    """Whether it belongs to an extension and is reviewed as depending on its arguments alone, although it is not marked
    IMMUTABLE."""
    names = builtins_extensions.SAFE.get(function.extension or "", ())
    return function.name in names and function.language in builtins_extensions.LANGUAGES and not function.security_definer


def _refuse_setting(name: str) -> Blocked | None:
    """A call of current_setting with a constant: what SHOW may print, it may give too."""
    known = builtins.setting(name)
    if known is not None and known.clearance is Clearance.ALLOWED:
        return None
    return Blocked("function current_setting", f"setting {shown(name)} is not among those that SHOW may print")
