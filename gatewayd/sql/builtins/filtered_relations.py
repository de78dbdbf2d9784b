"""Relations of pg_catalog and information_schema that are shown in part: through a query in their place which leaves out what
belongs to something hidden. Data; `shields/` makes the queries.

A condition speaks of the relation's row as `m`. `$name(…)` stands for SQL that follows from policy and catalog:

- `$shown(oid)`: the relation, or the index or sequence of one, is not hidden; so is every one of the server's own
- `$measured(oid)`: shown, and made by a user: sizes of the server's own relations tell how much is in the hidden ones' catalogs
- `$apart(class, oid)`: the object depends on no hidden relation and on no masked column
- `$parts_apart(catalog, column, oid)`: the same of every object of that catalog which belongs to the relation
- `$object(class, oid)`: the object is not part of a hidden relation
- `$unmasked(oid)`: no column of the relation is masked
- `$masked(oid, name)`: the column is masked, or generated from a masked one
- `$oid(schema, name)`: the relation of that name
- `$constraint(schema, name)`: no constraint of that name belongs to a hidden relation
- `$visible_setting(name)`: SHOW may give the setting

Two ways to leave rows out. `fenced` ones are left out before any condition of the agent is evaluated, at the price of their
indexes. Of the others, which are looked up by key all the time, PostgreSQL may evaluate a condition first: what is secret in the
row is NULL then already, and that there is a row is all that a condition can find out.
"""

from collections.abc import Mapping
from typing import Final

import msgspec


class Filtered(msgspec.Struct, frozen=True):
    """A relation of the catalog that is shown in part: its rows, and columns that are NULL."""

    reason: str
    """What it shows of hidden things: completes "it …"."""
    rows: str = ""
    """Which rows are shown; "" for all."""
    columns: Mapping[str, str] = {}
    """Columns that are NULL but where this holds; "" for always."""
    fenced: bool = False
    always: bool = False
    """Also where the policy hides nothing: what these columns show is nobody's to see."""


_DEFINITIONS: Final = "shows definitions with constants, also of what the policy hides"
_NAMES: Final = "shows names and definitions of parts of tables, also of those that the policy hides"
_COUNTERS: Final = "shows counters of activity, also on what the policy hides"

_OWN_PARTS: Final = "$shown(m.oid)"
_BY_NAME: Final = "$shown($oid(m.table_schema, m.table_name))"
_BY_VIEW: Final = "$shown($oid(m.view_schema, m.view_name))"
_BY_TABLENAME: Final = "$shown($oid(m.schemaname, m.tablename))"
_MEASURED: Final = "$measured(m.relid)"
_SEQUENCE: Final = "$shown($oid(m.schemaname, m.sequencename))"


def _counters() -> dict[str, Filtered]:
    names = [f"pg_stat_{kind}" for kind in ("all", "sys", "user")] + [f"pg_stat_xact_{kind}" for kind in ("all", "sys", "user")]
    tables = [f"{name}_tables" for name in names] + [f"pg_statio_{kind}_tables" for kind in ("all", "sys", "user")]
    indexes = [f"{name}_{kind}_indexes" for name in ("pg_stat", "pg_statio") for kind in ("all", "sys", "user")]
    sequences = [f"pg_statio_{kind}_sequences" for kind in ("all", "sys", "user")]
    return {name: Filtered(_COUNTERS, _MEASURED, fenced=True) for name in (*tables, *indexes, *sequences)}


PG_CATALOG: Final[Mapping[str, Filtered]] = {
    "pg_class": Filtered(
        "shows row counts, sizes, partition bounds and names of indexes, also of what the policy hides",
        "m.relnamespace <> ALL (ARRAY(SELECT n.oid FROM pg_catalog.pg_namespace AS n WHERE n.nspname LIKE 'pg\\_t%')) "
        "AND (m.relkind NOT IN ('i', 'I') OR $shown(m.oid))",
        {
            "relname": "m.relkind NOT IN ('i', 'I') OR $shown(m.oid)",
            **dict.fromkeys(("reltuples", "relpages", "relallvisible", "relallfrozen"), "$measured(m.oid)"),
            **dict.fromkeys(
                (
                    "reloptions", "relchecks", "relhasindex", "relhasrules", "relhastriggers", "relrowsecurity",
                    "relforcerowsecurity", "reltablespace", "relnatts", "relam", "relreplident",
                ),
                _OWN_PARTS,
            ),
            **dict.fromkeys(("relfilenode", "reltoastrelid", "relfrozenxid", "relminmxid"), "$measured(m.oid)"),
            "relpartbound": "$shown(m.oid) AND $unmasked(m.oid)",
        },
    ),
    "pg_attribute": Filtered(
        "shows values of rows and options of columns, also of what the policy hides",
        "$no_hidden_index(m.attrelid)",
        {
            **dict.fromkeys(("attmissingval", "atthasmissing"), "$shown(m.attrelid) AND NOT $masked(m.attrelid, m.attname)"),
            **dict.fromkeys(("attstattarget", "attoptions", "attfdwoptions", "attcompression"), "$shown(m.attrelid)"),
        },
    ),
    "pg_attrdef": Filtered(
        "shows defaults, also of what the policy hides",
        "",
        {
            "adbin": "$shown(m.adrelid) AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = m.adrelid "
            "AND a.attnum = m.adnum AND $masked(a.attrelid, a.attname)) AND $apart('pg_attrdef', m.oid)"
        },
    ),
    "pg_constraint": Filtered(
        _NAMES,
        "$shown(m.conrelid)",
        {"conbin": "$apart('pg_constraint', m.oid)"},
        fenced=True,
    ),
    "pg_index": Filtered(
        _NAMES,
        "$shown(m.indrelid)",
        dict.fromkeys(("indexprs", "indpred"), "$apart('pg_class', m.indexrelid)"),
        fenced=True,
    ),
    "pg_partitioned_table": Filtered(
        _DEFINITIONS,
        "",
        {
            **dict.fromkeys(("partnatts", "partattrs", "partclass", "partcollation"), "$shown(m.partrelid)"),
            "partexprs": "$shown(m.partrelid) AND $unmasked(m.partrelid)",
        },
    ),
    "pg_publication_rel": Filtered(
        _DEFINITIONS, "", dict.fromkeys(("prqual", "prattrs"), "$shown(m.prrelid) AND $unmasked(m.prrelid)")
    ),
    "pg_publication_tables": Filtered(
        _DEFINITIONS,
        "",
        dict.fromkeys(("rowfilter", "attnames"), f"{_BY_TABLENAME} AND $unmasked($oid(m.schemaname, m.tablename))"),
    ),
    "pg_statistic_ext": Filtered(
        _NAMES,
        "$shown(m.stxrelid)",
        {"stxexprs": "$apart('pg_statistic_ext', m.oid)"},
        fenced=True,
    ),
    "pg_trigger": Filtered(
        _NAMES,
        "$shown(m.tgrelid) AND $shown(m.tgconstrrelid)",  # the second is the other table of a foreign key
        dict.fromkeys(("tgqual", "tgargs"), "$unmasked(m.tgrelid) AND $apart('pg_trigger', m.oid)"),
        fenced=True,
    ),
    "pg_policy": Filtered(
        "shows who may see which rows, also of what the policy hides",
        "$shown(m.polrelid)",
        dict.fromkeys(("polqual", "polwithcheck"), "$unmasked(m.polrelid) AND $apart('pg_policy', m.oid)"),
        fenced=True,
    ),
    "pg_policies": Filtered(
        "shows who may see which rows, also of what the policy hides",
        _BY_TABLENAME,
        dict.fromkeys(
            ("qual", "with_check"),
            "$unmasked($oid(m.schemaname, m.tablename)) "
            "AND $parts_apart('pg_policy', polrelid, $oid(m.schemaname, m.tablename))",
        ),
        fenced=True,
    ),
    "pg_rewrite": Filtered(
        "shows definitions of views and rules, also over what the policy hides",
        "$shown(m.ev_class)",
        dict.fromkeys(("ev_qual", "ev_action"), "$apart('pg_rewrite', m.oid)"),
        fenced=True,
    ),
    "pg_rules": Filtered(
        "shows definitions of rules, also on what the policy hides",
        _BY_TABLENAME,
        {"definition": "$parts_apart('pg_rewrite', ev_class, $oid(m.schemaname, m.tablename))"},
        fenced=True,
    ),
    "pg_views": Filtered(
        "shows definitions of views, also over what the policy hides",
        "",
        {
            "definition": "$shown($oid(m.schemaname, m.viewname)) "
            "AND $parts_apart('pg_rewrite', ev_class, $oid(m.schemaname, m.viewname))"
        },
    ),
    "pg_matviews": Filtered(
        "shows definitions of views, also over what the policy hides",
        "",
        {
            **dict.fromkeys(("hasindexes", "tablespace", "ispopulated"), "$shown($oid(m.schemaname, m.matviewname))"),
            "definition": "$shown($oid(m.schemaname, m.matviewname)) "
            "AND $parts_apart('pg_rewrite', ev_class, $oid(m.schemaname, m.matviewname))",
        },
    ),
    "pg_indexes": Filtered(
        _NAMES,
        _BY_TABLENAME,
        {"indexdef": "$apart('pg_class', $oid(m.schemaname, m.indexname))"},
        fenced=True,
    ),
    "pg_tables": Filtered(
        "shows which parts tables have, also those that the policy hides",
        "",
        dict.fromkeys(("tablespace", "hasindexes", "hasrules", "hastriggers", "rowsecurity"), _BY_TABLENAME),
    ),
    "pg_sequence": Filtered(
        "shows definitions of sequences, also of what the policy hides",
        "",
        dict.fromkeys(("seqstart", "seqincrement", "seqmax", "seqmin", "seqcache", "seqcycle"), "$shown(m.seqrelid)"),
    ),
    "pg_sequences": Filtered(
        "shows states of sequences, also of what the policy hides",
        "",
        dict.fromkeys(
            ("start_value", "min_value", "max_value", "increment_by", "cycle", "cache_size", "last_value"), _SEQUENCE
        ),
    ),
    "pg_description": Filtered(
        "shows comments, also on what the policy hides",
        "$object(m.classoid, m.objoid)",
        fenced=True,
    ),
    "pg_seclabel": Filtered("shows labels, also of what the policy hides", "$object(m.classoid, m.objoid)", fenced=True),
    "pg_seclabels": Filtered("shows labels, also of what the policy hides", "$object(m.classoid, m.objoid)", fenced=True),
    "pg_depend": Filtered(
        "shows of what parts tables are made, also those that the policy hides",
        "$object(m.classid, m.objid) AND $object(m.refclassid, m.refobjid)",
    ),
    "pg_shdepend": Filtered("shows of what parts tables are made, hidden ones too", "$object(m.classid, m.objid)"),
    "pg_init_privs": Filtered("shows parts of tables, also of those that the policy hides", "$object(m.classoid, m.objoid)"),
    **_counters(),
    "pg_proc": Filtered(
        "shows the source of functions",
        "",
        {
            "prosrc": "m.oid < '16384'::pg_catalog.oid OR m.prolang IN ('12', '13')",  # internal, c: names of C functions
            "prosqlbody": "m.oid < '16384'::pg_catalog.oid",
            "probin": "",
            "proconfig": "",
        },
        always=True,
    ),
    "pg_roles": Filtered("shows settings of roles", "", {"rolconfig": ""}, always=True),
    "pg_user": Filtered("shows settings of roles", "", {"useconfig": ""}, always=True),
    "pg_foreign_server": Filtered("shows addresses of other servers", "", {"srvoptions": ""}, always=True),
    "pg_foreign_table": Filtered("shows names and paths in other servers", "", {"ftoptions": ""}, always=True),
    "pg_foreign_data_wrapper": Filtered("shows options of other servers", "", {"fdwoptions": ""}, always=True),
    "pg_subscription": Filtered(
        "shows how another server is reached, with its account and password", "", {"subconninfo": ""}, always=True
    ),
    "pg_settings": Filtered(
        "shows settings, also paths and secrets",
        "$visible_setting(m.name)",
        {"sourcefile": "", "sourceline": ""},
        fenced=True,
        always=True,
    ),
}  # fmt: skip

INFORMATION_SCHEMA: Final[Mapping[str, Filtered]] = {
    "columns": Filtered(
        "shows defaults, also of what the policy hides",
        "",
        {
            **dict.fromkeys(
                ("column_default", "generation_expression"),
                f"{_BY_NAME} AND NOT $masked($oid(m.table_schema, m.table_name), m.column_name)",
            ),
            **dict.fromkeys(
                ("identity_start", "identity_increment", "identity_maximum", "identity_minimum", "identity_cycle"), _BY_NAME
            ),
        },
    ),
    "check_constraints": Filtered(
        _NAMES,
        "$constraint(m.constraint_schema, m.constraint_name)",
        {"check_clause": "$constraint_apart(m.constraint_schema, m.constraint_name)"},
        fenced=True,
    ),
    "referential_constraints": Filtered(_NAMES, "$constraint(m.constraint_schema, m.constraint_name)", fenced=True),
    "table_constraints": Filtered(_NAMES, _BY_NAME, fenced=True),
    "key_column_usage": Filtered(_NAMES, _BY_NAME, fenced=True),
    "constraint_column_usage": Filtered(_NAMES, "$constraint(m.constraint_schema, m.constraint_name)", fenced=True),
    "constraint_table_usage": Filtered(_NAMES, "$constraint(m.constraint_schema, m.constraint_name)", fenced=True),
    "column_column_usage": Filtered(_NAMES, _BY_NAME, fenced=True),
    "triggers": Filtered(
        _NAMES,
        "$shown($oid(m.event_object_schema, m.event_object_table))",
        dict.fromkeys(
            ("action_condition", "action_statement"), "$unmasked($oid(m.event_object_schema, m.event_object_table))"
        ),
        fenced=True,
    ),
    "triggered_update_columns": Filtered(
        _NAMES, "$shown($oid(m.event_object_schema, m.event_object_table))", fenced=True
    ),
    "views": Filtered(
        "shows definitions of views, also over what the policy hides",
        "",
        {
            "view_definition": f"{_BY_NAME} AND $parts_apart('pg_rewrite', ev_class, $oid(m.table_schema, m.table_name))",
            "is_trigger_updatable": _BY_NAME,
            "is_trigger_deletable": _BY_NAME,
            "is_trigger_insertable_into": _BY_NAME,
        },
    ),
    "view_column_usage": Filtered(_NAMES, f"{_BY_VIEW} AND {_BY_NAME}", fenced=True),
    "view_table_usage": Filtered(_NAMES, f"{_BY_VIEW} AND {_BY_NAME}", fenced=True),
    "view_routine_usage": Filtered(
        _NAMES, "$shown($oid(m.table_schema, m.table_name))", fenced=True
    ),
    "sequences": Filtered(
        "shows definitions of sequences, also of what the policy hides",
        "",
        dict.fromkeys(
            ("start_value", "minimum_value", "maximum_value", "increment", "cycle_option"),
            "$shown($oid(m.sequence_schema, m.sequence_name))",
        ),
    ),
    "routines": Filtered("shows the source of functions", "", {"routine_definition": ""}, always=True),
    "column_options": Filtered("shows options of columns in other servers", "", {"option_value": ""}, always=True),
    "foreign_table_options": Filtered("shows names and paths in other servers", "", {"option_value": ""}, always=True),
    "foreign_server_options": Filtered("shows addresses of other servers", "", {"option_value": ""}, always=True),
    "foreign_data_wrapper_options": Filtered("shows options of other servers", "", {"option_value": ""}, always=True),
}  # fmt: skip


def form(schema: str, name: str) -> Filtered | None:
    """How the relation is shown where the policy hides something; None if it is not in the list."""
    if schema == "pg_catalog":
        return PG_CATALOG.get(name)
    return INFORMATION_SCHEMA.get(name) if schema == "information_schema" else None
