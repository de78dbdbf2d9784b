"""Functions that are called with less: an argument which names a hidden object becomes NULL, and so does their answer. Data.

Each is strict, so PostgreSQL gives NULL, or no row, for it. Conditions speak of the argument as `m.o`, in the words of
`filtered_relations.py`; `EXISTS` in them costs one look-up by OID.
"""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec


class Argument(msgspec.Struct, frozen=True):
    """An argument of a built-in function through which it could show hidden things."""

    reason: str
    """What the function shows of hidden things: completes "it …"."""
    condition: str
    """When the object may be spoken of; "" for never."""
    type: Literal["regclass", "oid", ""]
    """To what the argument is converted: a name in quotes is a relation then, as for the function itself. "" leaves it."""
    place: int = 0
    always: bool = False
    """Also where the policy hides nothing: what the function shows is nobody's to see."""


_DEFINITIONS: Final = "shows definitions, also of what the policy hides"
_SIZES: Final = "shows sizes, also of what the policy hides"
_COUNTERS: Final = "shows counters of activity, also on what the policy hides"
_COMMENTS: Final = "shows comments, also on what the policy hides"
_DESCRIBES: Final = "names parts of tables, also of those that the policy hides"

_RELATION: Final = Argument(_DEFINITIONS, "$shown(m.o)", "regclass")
_PARTITIONED: Final = Argument(_DEFINITIONS, "$shown(m.o) AND $unmasked(m.o)", "regclass")
_MEASURED: Final = (
    "$measured(m.o) AND EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace "
    "WHERE c.oid = m.o AND n.nspname NOT LIKE 'pg\\_t%')"
)


def _part(catalog: str, alias: str, owner: str, more: str = "") -> Argument:
    condition = (
        f"EXISTS (SELECT FROM pg_catalog.{catalog} AS {alias} WHERE {alias}.oid = m.o AND $shown({alias}.{owner}){more}) "
        f"AND $apart('{catalog}', m.o)"
    )
    return Argument(_DEFINITIONS, condition, "oid")


_SIZED: Final = "pg_indexes_size pg_relation_size pg_table_size pg_total_relation_size"
_COUNTED: Final = """
    pg_stat_get_analyze_count pg_stat_get_autoanalyze_count pg_stat_get_autovacuum_count pg_stat_get_blocks_fetched
    pg_stat_get_blocks_hit pg_stat_get_dead_tuples pg_stat_get_ins_since_vacuum pg_stat_get_last_analyze_time
    pg_stat_get_last_autoanalyze_time pg_stat_get_last_autovacuum_time pg_stat_get_last_vacuum_time pg_stat_get_lastscan
    pg_stat_get_live_tuples pg_stat_get_mod_since_analyze pg_stat_get_numscans pg_stat_get_tuples_deleted
    pg_stat_get_tuples_fetched pg_stat_get_tuples_hot_updated pg_stat_get_tuples_inserted pg_stat_get_tuples_newpage_updated
    pg_stat_get_tuples_returned pg_stat_get_tuples_updated pg_stat_get_vacuum_count
"""

FUNCTIONS: Final[Mapping[str, Argument]] = {
    **dict.fromkeys(_SIZED.split(), Argument(_SIZES, _MEASURED, "regclass")),
    **dict.fromkeys(_COUNTED.split(), Argument(_COUNTERS, _MEASURED, "oid")),
    **dict.fromkeys(("pg_database_size", "pg_tablespace_size"), Argument(_SIZES, "", "")),
    "pg_tablespace_location": Argument("shows paths of the server", "", "", always=True),
    "pg_get_indexdef": Argument(_DEFINITIONS, "$shown(m.o) AND $apart('pg_class', m.o)", "oid"),
    "pg_get_viewdef": Argument(_DEFINITIONS, "$shown(m.o) AND $parts_apart('pg_rewrite', ev_class, m.o)", "regclass"),
    **dict.fromkeys(("pg_get_partkeydef", "pg_get_partition_constraintdef"), _PARTITIONED),
    **dict.fromkeys(("pg_sequence_parameters", "pg_index_column_has_property", "pg_index_has_property"), _RELATION),
    "row_security_active": _RELATION,
    "pg_get_constraintdef": _part("pg_constraint", "c", "conrelid"),
    "pg_get_ruledef": _part("pg_rewrite", "r", "ev_class"),
    "pg_get_triggerdef": _part("pg_trigger", "t", "tgrelid", " AND $shown(t.tgconstrrelid)"),
    **dict.fromkeys(
        ("pg_get_statisticsobjdef", "pg_get_statisticsobjdef_columns", "pg_get_statisticsobjdef_expressions"),
        _part("pg_statistic_ext", "s", "stxrelid"),
    ),
    "col_description": Argument(_COMMENTS, "$shown(m.o)", "oid"),
    "obj_description": Argument(_COMMENTS, "$any_object(m.o)", "oid"),
    **dict.fromkeys(
        ("pg_describe_object", "pg_identify_object", "pg_identify_object_as_address"),
        Argument(_DESCRIBES, "$any_object(m.o)", "oid", 1),
    ),
}


def applies(name: str, *, hides: bool) -> bool:
    """Whether a call of the function is given less, under a policy that hides something or none."""
    argument = FUNCTIONS.get(name)
    return argument is not None and (hides or argument.always)
