"""The look-ups over the reviewed lists, without a server."""

import subprocess
import sys

import pytest

from gatewayd.sql.builtins import functions as builtins_functions
from gatewayd.sql.builtins import lookup as builtins
from gatewayd.sql.builtins import objects as builtins_objects
from gatewayd.sql.builtins.lookup import Builtin, Clearance

ALLOWED, OPEN_ONLY, REFUSED = Clearance.ALLOWED, Clearance.OPEN_ONLY, Clearance.REFUSED


ALLOWED_FUNCTIONS = """
    lower upper count sum row_number lag percentile_cont date_trunc date_part extract timezone overlay substring position
    normalize is_normalized xmlexists system_user like_escape similar_to_escape to_char generate_series random now
    clock_timestamp gen_random_uuid jsonb_path_query to_tsvector ts_headline format_type pg_table_is_visible
    has_table_privilege to_regclass pg_typeof version current_database pg_get_expr pg_get_userbyid
    pg_backend_pid pg_is_in_recovery array_agg unnest string_agg record_send uuid_send md5 hashtext
"""
OPEN_ONLY_FUNCTIONS = """
    pg_get_viewdef pg_get_ruledef pg_get_triggerdef pg_get_constraintdef pg_get_indexdef pg_get_partkeydef
    pg_get_statisticsobjdef pg_relation_size pg_total_relation_size pg_table_size pg_indexes_size pg_database_size
    pg_stat_get_live_tuples pg_stat_get_tuples_inserted obj_description col_description
    row_security_active pg_input_is_valid pg_current_wal_lsn
"""
REFUSED_FUNCTIONS = """
    nextval setval currval lastval pg_sequence_last_value pg_read_file pg_read_binary_file pg_ls_dir pg_stat_file lo_import
    lo_export lo_get lo_put loread pg_cancel_backend pg_terminate_backend pg_reload_conf pg_switch_wal pg_promote
    pg_create_restore_point pg_rotate_logfile pg_drop_replication_slot pg_replication_origin_create pg_backup_start
    query_to_xml query_to_xmlschema table_to_xml schema_to_xml database_to_xml cursor_to_xml ts_stat ts_rewrite
    pg_advisory_lock pg_try_advisory_xact_lock_shared pg_sleep pg_sleep_for set_config current_setting setseed pg_notify
    pg_export_snapshot pg_current_xact_id txid_current pg_stat_get_activity pg_stat_get_backend_activity pg_show_all_settings
    pg_mcv_list_items pg_hba_file_rules pg_get_functiondef pg_get_function_sqlbody inet_server_addr pg_logical_emit_message
    brin_summarize_new_values gin_clean_pending_list binary_upgrade_set_next_pg_type_oid pg_import_system_collations
    pg_stat_reset pg_log_backend_memory_contexts currtid2 pg_relation_filepath pg_config textin domain_in record_in array_in
    int4recv array_agg_transfn RI_FKey_cascade_del bernoulli pg_event_trigger_ddl_commands plpgsql_call_handler
    fmgr_c_validator current_query pg_prepared_statement pg_lock_status pg_restore_relation_stats
"""
ALLOWED_RELATIONS = "pg_type pg_namespace pg_enum pg_inherits pg_database"
OPEN_ONLY_RELATIONS = (
    "pg_class pg_index pg_constraint pg_views pg_stat_user_tables pg_rewrite pg_trigger pg_sequences pg_policies "
    "pg_attrdef pg_description pg_tables"
)
REFUSED_RELATIONS = """
    pg_proc pg_statistic pg_stats pg_stats_ext pg_stat_activity pg_authid pg_shadow pg_user_mapping pg_user_mappings
    pg_hba_file_rules pg_file_settings pg_settings pg_largeobject pg_locks pg_prepared_statements pg_cursors
    pg_stat_replication pg_subscription pg_foreign_server pg_roles
"""


def clearance_of(found: Builtin | None) -> Clearance | None:
    return None if found is None else found.clearance


@pytest.mark.parametrize(
    ("clearance", "names"), [(ALLOWED, ALLOWED_FUNCTIONS), (OPEN_ONLY, OPEN_ONLY_FUNCTIONS), (REFUSED, REFUSED_FUNCTIONS)]
)
def test_functions_get_the_clearance_of_what_they_do(clearance: Clearance, names: str) -> None:
    assert {name for name in names.split() if clearance_of(builtins.function(name)) is not clearance} == set()


@pytest.mark.parametrize("name", ["", "LOWER", "dblink", "no_such_function", "pg_read_file ", "nextval\x00", "st_area"])
def test_what_no_list_holds_is_no_built_in_function(name: str) -> None:
    assert builtins.function(name) is None


def test_jdbc_helpers_of_information_schema_are_known_by_their_schema_only() -> None:
    assert builtins.function("_pg_expandarray", "information_schema") == builtins.ALLOWED
    assert builtins.function("_pg_expandarray") is None
    assert builtins.function("lower", "information_schema") is None


@pytest.mark.parametrize(
    ("clearance", "names"), [(ALLOWED, ALLOWED_RELATIONS), (OPEN_ONLY, OPEN_ONLY_RELATIONS), (REFUSED, REFUSED_RELATIONS)]
)
def test_relations_get_the_clearance_of_what_they_show(clearance: Clearance, names: str) -> None:
    assert {name for name in names.split() if clearance_of(builtins.relation(name)) is not clearance} == set()


@pytest.mark.parametrize(
    ("relation", "column"),
    [
        ("pg_attribute", "attmissingval"),
        ("pg_proc", "prosrc"),
        ("pg_roles", "rolconfig"),
    ],
)
def test_relations_that_introspection_needs_are_held_back_for_a_few_columns_only(relation: str, column: str) -> None:
    found = builtins.relation(relation)
    assert found is not None
    assert column in found.columns


@pytest.mark.parametrize(
    ("name", "clearance"),
    [("int4", ALLOWED), ("_int4", ALLOWED), ("record", ALLOWED), ("regclass", ALLOWED), ("pg_class", ALLOWED),
     ("internal", REFUSED), ("cstring", REFUSED), ("_cstring", REFUSED), ("trigger", REFUSED), ("mood", None), ("int", None)],
)  # fmt: skip
def test_types_are_known_by_their_internal_names(name: str, clearance: Clearance | None) -> None:
    assert clearance_of(builtins.type_name(name)) == clearance


@pytest.mark.parametrize(
    ("name", "clearance"),
    [("TimeZone", ALLOWED), ("server_version", ALLOWED), ("SEARCH_PATH", ALLOWED), ("all", REFUSED), ("data_directory", None),
     ("primary_conninfo", None), ("hba_file", None), ("ssl_key_file", None), ("app.secret", None), ("archive_command", None)],
)  # fmt: skip
def test_show_gives_no_path_and_no_secret(name: str, clearance: Clearance | None) -> None:
    assert clearance_of(builtins.setting(name)) == clearance


def test_operators_are_known_by_name() -> None:
    assert [name for name in ("||", "~~*", "@>", "<->", "<=>", "") if builtins.operator(name)] == ["||", "~~*", "@>", "<->"]


def test_every_name_stands_in_one_section_and_every_refusal_says_why() -> None:
    functions = [name for _, _, names in builtins_functions.SECTIONS for name in names.split()]
    relations = [name for _, _, _, names in builtins_objects.RELATIONS for name in names.split()]
    assert len(functions) == len(set(functions))
    assert len(relations) == len(set(relations))
    for name in functions:
        builtin = builtins.function(name)
        assert builtin is not None
        assert bool(builtin.reason) == (builtin.clearance is not ALLOWED)
        assert builtin.reason == "" or (builtin.reason[0].islower() and not builtin.reason.endswith("."))


def test_functions_that_convert_to_any_type_are_listed_functions() -> None:
    assert {name for name in builtins.RUNS_ANY_CONVERSION if builtins.function(name) is None} == set()


def test_loading_the_lists_reads_no_file_and_imports_nothing_heavy() -> None:
    """Start-up on stdio pays for this module on every run."""
    code = (
        "import sys; from gatewayd.sql.builtins import lookup; lookup.function('lower'); "
        "print([m for m in ('pglast', 'trio', 'yaml') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
