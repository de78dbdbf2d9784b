"""What the columns of a built-in function are called where it stands in FROM. Data, and its look-up.

PostgreSQL names the columns of a function with several OUT parameters, or with one that is named, after them; an alias names the
item then, not the column. Only where the result is a plain value is its one column called as the alias, or as the function.
Every function of pg_catalog that is on neither list gives a plain value: a test holds this against servers.
"""

from typing import Final

from gatewayd.sql.builtins import lookup

SCALAR: Final[tuple[str, ...]] = ()
"""One column, called as the alias or the function."""

_PARAMETERS: Final = """
    aclexplode: grantor grantee privilege_type is_grantable
    json_array_elements: value
    json_array_elements_text: value
    json_each: key value
    json_each_text: key value
    jsonb_array_elements: value
    jsonb_array_elements_text: value
    jsonb_each: key value
    jsonb_each_text: key value
    pg_available_extension_versions: name version superuser trusted relocatable schema requires comment
    pg_available_extensions: name default_version comment
    pg_get_catalog_foreign_keys: fktable fkcols pktable pkcols is_array is_opt
    pg_get_keywords: word catcode barelabel catdesc baredesc
    pg_get_object_address: classid objid objsubid
    pg_identify_object: type schema name identity
    pg_identify_object_as_address: type object_names object_args
    pg_input_error_info: message detail hint sql_error_code
    pg_options_to_table: option_name option_value
    pg_partition_ancestors: relid
    pg_partition_tree: relid parentrelid isleaf level
    pg_sequence_parameters: start_value minimum_value maximum_value increment cycle_option cache_size data_type
    pg_timezone_abbrevs: abbrev utc_offset is_dst
    pg_timezone_names: name abbrev utc_offset is_dst
    ts_debug: alias description token dictionaries dictionary lexemes
    ts_parse: tokid token
    ts_token_type: tokid alias description
"""
_UNTOLD: Final = """
    any_value_transfn json_populate_record json_populate_recordset json_to_record json_to_recordset jsonb_populate_record
    jsonb_populate_recordset jsonb_to_record jsonb_to_recordset lower pg_extension_update_paths pg_get_publication_tables
    pg_get_wait_events pg_get_wal_resource_managers pg_last_committed_xact pg_split_walfile_name pg_stat_get_archiver
    pg_stat_get_backend_io pg_stat_get_backend_wal pg_stat_get_io pg_stat_get_recovery_prefetch pg_stat_get_slru
    pg_stat_get_subscription_stats pg_stat_get_wal pg_timezone_abbrevs_abbrevs pg_timezone_abbrevs_zone
    pg_walfile_name_offset pg_xact_commit_timestamp_origin record_larger record_smaller unnest upper
"""
"""Their columns follow from the types of their arguments, or differ between versions of the server."""

_NAMED: Final = {
    name.strip(): tuple(columns.split())
    for name, _, columns in (line.partition(":") for line in _PARAMETERS.strip().splitlines())
}
_OPEN: Final = frozenset(_UNTOLD.split())

ARRAYS_OF_VALUES: Final = frozenset({"regexp_match", "regexp_split_to_array", "string_to_array", "tsvector_to_array"})
"""Functions that give arrays of plain values, never of rows."""


def result_columns(name: str) -> tuple[str, ...] | None:
    """The names of a function's columns, SCALAR for a plain value; None where the name does not tell. All overloads count."""
    if name in _OPEN or lookup.function(name) is None:
        return None
    return _NAMED.get(name, SCALAR)
