"""The reviewed lists of pg_catalog's relations, types and operators, and of the settings SHOW may give (decisions 2, 3.2, 3.5).

Data for `lookup.py`, written by hand from what `tests/sql/builtins_generate.py` reports; tests hold it against each server.
"""

from typing import Final

RELATIONS: Final[tuple[tuple[str, str, str, str], ...]] = (
    (
        "allowed",
        "names, shapes and keys of objects: what information_schema tells as well",
        "",
        """
        pg_aggregate pg_am pg_amop pg_amproc pg_attrdef pg_cast pg_collation pg_conversion pg_database
        pg_depend pg_description pg_enum pg_event_trigger pg_extension pg_inherits pg_language pg_namespace pg_opclass
        pg_operator pg_opfamily pg_publication pg_publication_namespace pg_range pg_seclabel pg_seclabels pg_sequence
        pg_shdepend pg_shdescription pg_shseclabel pg_tables pg_tablespace pg_transform pg_ts_config pg_ts_config_map
        pg_ts_dict pg_ts_parser pg_ts_template pg_type
        """,
    ),
    (
        "allowed",
        "roles and privileges, no passwords",
        "",
        """
        pg_auth_members pg_default_acl pg_group pg_init_privs pg_parameter_acl
        """,
    ),
    (
        "allowed",
        "what the server was built with",
        "",
        """
        pg_available_extension_versions pg_available_extensions pg_timezone_abbrevs pg_timezone_names pg_wait_events
        """,
    ),
    (
        "open only",
        "shows row counts and sizes, also of what the policy hides",
        "reltuples relpages relallvisible relallfrozen relfrozenxid relminmxid relpartbound",
        """
        pg_class
        """,
    ),
    (
        "open only",
        "shows values of rows, also of what the policy hides",
        "attmissingval",
        """
        pg_attribute
        """,
    ),
    (
        "open only",
        "shows definitions with constants, also of what the policy hides",
        "conbin",
        """
        pg_constraint
        """,
    ),
    (
        "open only",
        "shows definitions with constants, also of what the policy hides",
        "indexprs indpred",
        """
        pg_index
        """,
    ),
    (
        "open only",
        "shows definitions with constants, also of what the policy hides",
        "partexprs",
        """
        pg_partitioned_table
        """,
    ),
    (
        "open only",
        "shows definitions with constants, also of what the policy hides",
        "indexdef",
        """
        pg_indexes
        """,
    ),
    (
        "open only",
        "shows definitions with constants, also of what the policy hides",
        "prqual",
        """
        pg_publication_rel
        """,
    ),
    (
        "open only",
        "shows definitions with constants, also of what the policy hides",
        "rowfilter",
        """
        pg_publication_tables
        """,
    ),
    (
        "open only",
        "shows definitions with constants, also of what the policy hides",
        "stxexprs",
        """
        pg_statistic_ext
        """,
    ),
    (
        "open only",
        "shows definitions of views, also over what the policy hides",
        "definition",
        """
        pg_matviews pg_views
        """,
    ),
    (
        "open only",
        "shows definitions of rules, also on what the policy hides",
        "definition",
        """
        pg_rules
        """,
    ),
    (
        "open only",
        "shows definitions of views and rules, also over what the policy hides",
        "ev_qual ev_action",
        """
        pg_rewrite
        """,
    ),
    (
        "open only",
        "shows definitions of triggers, also on what the policy hides",
        "tgqual tgargs",
        """
        pg_trigger
        """,
    ),
    (
        "open only",
        "shows who may see which rows, also of what the policy hides",
        "polqual polwithcheck",
        """
        pg_policy
        """,
    ),
    (
        "open only",
        "shows who may see which rows, also of what the policy hides",
        "qual with_check",
        """
        pg_policies
        """,
    ),
    (
        "open only",
        "shows states of sequences, also of what the policy hides",
        "last_value",
        """
        pg_sequences
        """,
    ),
    (
        "open only",
        "shows counters of activity, also on what the policy hides",
        "",
        """
        pg_stat_all_indexes pg_stat_all_tables pg_stat_archiver pg_stat_bgwriter pg_stat_checkpointer pg_stat_database
        pg_stat_database_conflicts pg_stat_io pg_stat_recovery_prefetch pg_stat_slru pg_stat_sys_indexes
        pg_stat_sys_tables pg_stat_user_functions pg_stat_user_indexes pg_stat_user_tables pg_stat_wal
        pg_stat_xact_all_tables pg_stat_xact_sys_tables pg_stat_xact_user_functions pg_stat_xact_user_tables
        pg_statio_all_indexes pg_statio_all_sequences pg_statio_all_tables pg_statio_sys_indexes
        pg_statio_sys_sequences pg_statio_sys_tables pg_statio_user_indexes pg_statio_user_sequences
        pg_statio_user_tables
        """,
    ),
    (
        "refused",
        "shows the source of functions",
        "prosrc probin prosqlbody proconfig",
        """
        pg_proc
        """,
    ),
    (
        "refused",
        "shows settings of roles",
        "rolconfig",
        """
        pg_roles
        """,
    ),
    (
        "refused",
        "shows settings of roles",
        "useconfig",
        """
        pg_user
        """,
    ),
    (
        "refused",
        "shows addresses of other servers",
        "srvoptions",
        """
        pg_foreign_server
        """,
    ),
    (
        "refused",
        "shows names and paths in other servers",
        "ftoptions",
        """
        pg_foreign_table
        """,
    ),
    (
        "refused",
        "shows options of other servers",
        "fdwoptions",
        """
        pg_foreign_data_wrapper
        """,
    ),
    (
        "refused",
        "shows row values kept in the planner's statistics",
        "",
        """
        pg_statistic pg_statistic_ext_data pg_stats pg_stats_ext pg_stats_ext_exprs
        """,
    ),
    (
        "refused",
        "shows what other sessions do, with the text of their statements",
        "",
        """
        pg_locks pg_prepared_xacts pg_stat_activity pg_stat_gssapi pg_stat_progress_analyze
        pg_stat_progress_basebackup pg_stat_progress_cluster pg_stat_progress_copy pg_stat_progress_create_index
        pg_stat_progress_vacuum pg_stat_ssl
        """,
    ),
    (
        "refused",
        "shows the state of the gateway's own session, not of the database",
        "",
        """
        pg_backend_memory_contexts pg_cursors pg_prepared_statements
        """,
    ),
    (
        "refused",
        "holds passwords of roles",
        "",
        """
        pg_authid pg_shadow
        """,
    ),
    (
        "refused",
        "holds accounts on other servers with their passwords",
        "",
        """
        pg_user_mapping pg_user_mappings
        """,
    ),
    (
        "refused",
        "shows settings, also paths and secrets; SHOW gives those that may be seen",
        "",
        """
        pg_config pg_db_role_setting pg_file_settings pg_hba_file_rules pg_ident_file_mappings pg_settings
        """,
    ),
    (
        "refused",
        "holds large objects, which no table of the policy covers",
        "",
        """
        pg_largeobject pg_largeobject_metadata
        """,
    ),
    (
        "refused",
        "shows replication, its hosts and its accounts",
        "",
        """
        pg_replication_origin pg_replication_origin_status pg_replication_slots pg_stat_replication
        pg_stat_replication_slots pg_stat_subscription pg_stat_subscription_stats pg_stat_wal_receiver
        pg_subscription_rel
        """,
    ),
    (
        "refused",
        "shows how another server is reached, with its account and password",
        "subconninfo",
        """
        pg_subscription
        """,
    ),
    (
        "refused",
        "shows the memory and the running input and output of the server",
        "",
        """
        pg_aios pg_shmem_allocations pg_shmem_allocations_numa
        """,
    ),
)
"""(verdict, reason, columns that the verdict is about or "" for the whole relation, names)"""

TYPES: Final = """
    aclitem bit bool box bpchar bytea char cid cidr circle date datemultirange daterange float4 float8 gtsvector inet int2
    int2vector int4 int4multirange int4range int8 int8multirange int8range interval json jsonb jsonpath line lseg macaddr
    macaddr8 money name numeric nummultirange numrange oid oidvector path pg_brin_bloom_summary
    pg_brin_minmax_multi_summary pg_dependencies pg_lsn pg_mcv_list pg_ndistinct pg_node_tree pg_snapshot point polygon
    record refcursor regclass regcollation regconfig regdictionary regnamespace regoper regoperator regproc regprocedure
    regrole regtype text tid time timestamp timestamptz timetz tsmultirange tsquery tsrange tstzmultirange tstzrange
    tsvector txid_snapshot unknown uuid varbit varchar void xid xid8 xml
"""
"""Types whose values a statement may make, by internal name without the `_` of their arrays."""

PSEUDO_TYPES: Final = """
    any anyarray anycompatible anycompatiblearray anycompatiblemultirange anycompatiblenonarray anycompatiblerange
    anyelement anyenum anymultirange anynonarray anyrange cstring event_trigger fdw_handler index_am_handler internal
    language_handler pg_ddl_command table_am_handler trigger tsm_handler
"""
"""Types no statement has a use for."""

OPERATORS: Final = r"""
    !! !~ !~* !~~ !~~* # ## #- #> #>> % & && &< &<| &> * *< *<= *<> *= *> *>= + - -> ->> -|- / < <-> << <<= <<| <= <> <@
    <^ = > >= >> >>= >^ ? ?# ?& ?- ?-| ?| ?|| @ @-@ @> @? @@ @@@ ^ ^@ | |&> |/ |>> || ||/ ~ ~* ~<=~ ~<~ ~= ~>=~ ~>~ ~~ ~~*
"""
"""Every operator name of pg_catalog."""

INFORMATION_SCHEMA_FUNCTIONS: Final = """
    _pg_char_max_length _pg_char_octet_length _pg_datetime_precision _pg_expandarray _pg_index_position _pg_interval_type
    _pg_numeric_precision _pg_numeric_precision_radix _pg_numeric_scale _pg_truetypid _pg_truetypmod
"""
"""Helpers of information_schema's views; JDBC's key and index look-ups call them."""

SETTINGS: Final = """
    application_name array_nulls backslash_quote block_size bytea_output check_function_bodies client_encoding
    client_min_messages data_checksums datestyle default_statistics_target default_table_access_method
    default_text_search_config default_toast_compression default_transaction_deferrable default_transaction_isolation
    default_transaction_read_only effective_cache_size effective_io_concurrency escape_string_warning extra_float_digits
    from_collapse_limit idle_in_transaction_session_timeout idle_session_timeout in_hot_standby integer_datetimes
    intervalstyle is_superuser jit join_collapse_limit lc_collate lc_ctype lc_messages lc_monetary lc_numeric lc_time
    lock_timeout maintenance_work_mem max_connections max_function_args max_identifier_length max_index_keys
    max_parallel_workers max_parallel_workers_per_gather max_replication_slots max_wal_senders max_worker_processes
    quote_all_identifiers random_page_cost row_security search_path segment_size seq_page_cost server_encoding server_version
    server_version_num session_authorization shared_buffers standard_conforming_strings statement_timeout timezone
    transaction_deferrable transaction_isolation transaction_read_only transaction_timeout transform_null_equals
    wal_block_size wal_level work_mem xmlbinary xmloption
"""
"""Settings that SHOW and `current_setting('…')` may give, lower case: no path, no secret, nothing about other sessions."""
