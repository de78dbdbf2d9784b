"""What the generator knows of a database: its relations, and the server's own functions, operators and casts by type.

Read from the server itself, so that each function of pg_catalog is called sooner or later, refused ones too.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from gatewayd.sql.builtins import lookup as builtins
from tests.properties.literals import BASIC

Fetch = Callable[[str], Awaitable[list[Any]]]
ANY: Final = {
    "anyelement": "integer",
    "anyarray": "integer[]",
    "anynonarray": "text",
    "anyenum": "mood",
    "anyrange": "int4range",
    "anymultirange": "int4multirange",
    "anycompatible": "integer",
    "anycompatiblearray": "integer[]",
    "anycompatiblenonarray": "integer",
    "anycompatiblerange": "int4range",
    "anycompatiblemultirange": "int4multirange",
    '"any"': "text",
    "record": "addr",
    "cstring": "text",
}
"""What stands for a pseudo-type where the generator needs a type."""

RELATIONS: Final = """
    SELECT n.nspname AS schema, c.relname AS name, c.relkind::text AS kind,
      array_remove(array_agg(a.attname::text ORDER BY attnum), NULL) AS columns,
      array_remove(array_agg(format_type(atttypid, NULL) ORDER BY attnum), NULL) AS types
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
      LEFT JOIN pg_attribute a ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped
    WHERE relkind IN ('r', 'v', 'm', 'p', 'S') AND nspname !~ '^pg_t' GROUP BY 1, 2, 3 ORDER BY 1, 2"""
FUNCTIONS: Final = """
    SELECT n.nspname AS schema, proname AS name, prokind::text AS kind, proretset AS set,
      format_type(prorettype, NULL) AS returns,
      ARRAY(SELECT format_type(t, NULL) FROM unnest(proargtypes::oid[]) WITH ORDINALITY AS u(t, i) ORDER BY i) AS arguments,
      pronargdefaults AS defaults, provariadic > 0 AS variadic, coalesce(aggkind::text, '') AS aggregate,
      coalesce(aggnumdirectargs, 0) AS direct
    FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace LEFT JOIN pg_aggregate a ON aggfnoid = p.oid
    WHERE prokind <> 'p' AND nspname <> 'information_schema'
      AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
    ORDER BY 1, 2, p.oid"""
OPERATORS: Final = """
    SELECT n.nspname AS schema, oprname AS name, CASE WHEN oprleft = 0 THEN '' ELSE format_type(oprleft, NULL) END AS left,
      format_type(oprright, NULL) AS right, format_type(oprresult, NULL) AS returns
    FROM pg_operator o JOIN pg_namespace n ON n.oid = oprnamespace ORDER BY 1, 2, o.oid"""
CASTS: Final = (
    "SELECT format_type(castsource, NULL) AS source, format_type(casttarget, NULL) AS target FROM pg_cast ORDER BY 1, 2"
)

_SLOW: Final = """
    pg_timezone_names pg_timezone_abbrevs pg_sleep pg_sleep_for pg_sleep_until repeat generate_series lpad rpad
    array_fill pg_get_keywords pg_ls_dir pg_terminate_backend pg_cancel_backend pg_promote pg_reload_conf
    pg_rotate_logfile pg_switch_wal factorial pg_get_catalog_foreign_keys pg_available_extension_versions
    pg_available_extensions
"""
SLOW: Final = frozenset(_SLOW.split())
"""Left to the hand-written forms: too slow for a statement in thousands, or fatal to the server if they were ever allowed."""
_OF_THE_SESSION: Final = """
    pg_backend_pid pg_postmaster_start_time pg_conf_load_time pg_current_snapshot txid_current_snapshot age mxid_age
    pg_current_xact_id txid_current pg_current_xact_id_if_assigned txid_current_if_assigned now transaction_timestamp
    statement_timestamp clock_timestamp timeofday random random_normal gen_random_uuid uuidv4 uuidv7 pg_snapshot_xmax
    pg_stat_get_snapshot_timestamp
"""
OF_THE_SESSION: Final = frozenset(_OF_THE_SESSION.split())
"""Answers that differ between two sessions or servers by nature. They are called, but not compared."""


class Relation(msgspec.Struct, frozen=True):
    schema: str
    name: str
    kind: str
    columns: tuple[tuple[str, str], ...]

    @property
    def is_system(self) -> bool:
        return self.schema in ("pg_catalog", "information_schema")


class Function(msgspec.Struct, frozen=True):
    schema: str
    name: str
    kind: str  # f, a (aggregate), w (window)
    set: bool
    returns: str
    arguments: tuple[str, ...]
    defaults: int
    variadic: bool
    aggregate: str  # n, o (ordered-set), h (hypothetical-set); "" for the others
    direct: int


class Operator(msgspec.Struct, frozen=True):
    schema: str
    name: str
    left: str  # "" for a prefix operator
    right: str
    returns: str


class Model:
    def __init__(
        self, relations: list[Relation], functions: list[Function], operators: list[Operator], casts: list[tuple[str, str]]
    ) -> None:
        self.tables = [each for each in relations if not each.is_system and each.kind != "S"]
        self.sequences = [each for each in relations if each.kind == "S"]
        self.system = [each for each in relations if each.is_system]
        self.functions = functions
        self.own_functions = [each for each in functions if each.schema != "pg_catalog"]
        usable = [each for each in functions if each.name not in SLOW and all(_is_basic(type_) for type_ in each.arguments)]
        self.plain: dict[str, list[Function]] = defaultdict(list)
        self.aggregates: dict[str, list[Function]] = defaultdict(list)
        self.windows: dict[str, list[Function]] = defaultdict(list)
        self.sets = [each for each in usable if each.set and each.kind == "f"]
        for each in usable:
            by_kind = {"f": self.plain, "a": self.aggregates, "w": self.windows}[each.kind]
            if not each.set and not _is_routine(each):
                for returns in _returned(each.returns):
                    by_kind[returns].append(each)
        self.operators: dict[str, list[Operator]] = defaultdict(list)
        for operator in operators:
            if _is_basic(operator.right) and (not operator.left or _is_basic(operator.left)):
                for returns in _returned(operator.returns):
                    self.operators[returns].append(operator)
        self.casts: dict[str, list[str]] = defaultdict(list)
        for source, target in casts:
            if source in BASIC and target in BASIC:
                self.casts[target].append(source)
        self.one_argument: dict[str, list[str]] = defaultdict(list)
        for each in usable:
            if len(each.arguments) == 1 and not each.variadic:
                self.one_argument[each.arguments[0]].append(each.name)


def _is_routine(function: Function) -> bool:
    """Made for types, indexes and aggregates: refused by name, all alike; attribute notation and mutations still try some."""
    verdict = builtins.function(function.name) if function.schema == "pg_catalog" else None
    return verdict is not None and verdict.reason in (builtins.SUPPORT_ROUTINE, builtins.CONVERSION_ROUTINE)


def _is_basic(type_: str) -> bool:
    return type_ in BASIC or type_ in ANY


def _returned(type_: str) -> tuple[str, ...]:
    if type_ in ("anyelement", "anycompatible"):
        return ("integer",)
    return (ANY.get(type_, type_),) if type_ != "record" else ()


async def read_model(fetch: Fetch) -> Model:
    relations = [
        Relation(row["schema"], row["name"], row["kind"], tuple(zip(row["columns"], row["types"], strict=True)))
        for row in await fetch(RELATIONS)
    ]
    functions = [
        Function(
            row["schema"],
            row["name"],
            row["kind"],
            row["set"],
            row["returns"],
            tuple(row["arguments"]),
            row["defaults"],
            row["variadic"],
            row["aggregate"],
            row["direct"],
        )
        for row in await fetch(FUNCTIONS)
    ]
    operators = [
        Operator(row["schema"], row["name"], row["left"], row["right"], row["returns"]) for row in await fetch(OPERATORS)
    ]
    casts = [(row["source"], row["target"]) for row in await fetch(CASTS)]
    return Model(relations, functions, operators, casts)
