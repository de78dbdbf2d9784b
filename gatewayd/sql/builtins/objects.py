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
        pg_aggregate pg_am pg_amop pg_amproc pg_cast pg_collation pg_conversion pg_database pg_enum pg_event_trigger
        pg_extension pg_inherits pg_language pg_namespace pg_opclass pg_operator pg_opfamily pg_publication
        pg_publication_namespace pg_range pg_shdescription pg_shseclabel pg_tablespace pg_transform
        pg_ts_config pg_ts_config_map pg_ts_dict pg_ts_parser pg_ts_template pg_type
        """,
    ),
    (
        "allowed",
        "roles and privileges, no passwords",
        "",
        """
        pg_auth_members pg_default_acl pg_group pg_parameter_acl
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
        "shows comments, labels, defaults and parts of tables, also of those that the policy hides",
        "",
        """
        pg_attrdef pg_depend pg_description pg_init_privs pg_seclabel pg_seclabels pg_sequence pg_shdepend pg_tables
        """,
    ),
    (
        "open only",
        "shows row counts, sizes and names of indexes, also of what the policy hides",
        "",
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
        "",
        """
        pg_constraint
        """,
    ),
    (
        "open only",
        "shows definitions with constants, also of what the policy hides",
        "",
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
        "",
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
        "",
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
        "",
        """
        pg_rules
        """,
    ),
    (
        "open only",
        "shows definitions of views and rules, also over what the policy hides",
        "",
        """
        pg_rewrite
        """,
    ),
    (
        "open only",
        "shows definitions of triggers, also on what the policy hides",
        "",
        """
        pg_trigger
        """,
    ),
    (
        "open only",
        "shows who may see which rows, also of what the policy hides",
        "",
        """
        pg_policy
        """,
    ),
    (
        "open only",
        "shows who may see which rows, also of what the policy hides",
        "",
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
    application_name array_nulls autovacuum autovacuum_analyze_scale_factor autovacuum_analyze_threshold
    autovacuum_freeze_max_age autovacuum_max_workers autovacuum_multixact_freeze_max_age autovacuum_naptime
    autovacuum_vacuum_cost_delay autovacuum_vacuum_cost_limit autovacuum_vacuum_insert_scale_factor
    autovacuum_vacuum_insert_threshold autovacuum_vacuum_max_threshold autovacuum_vacuum_scale_factor
    autovacuum_vacuum_threshold autovacuum_work_mem autovacuum_worker_slots backend_flush_after backslash_quote
    bgwriter_delay bgwriter_flush_after bgwriter_lru_maxpages bgwriter_lru_multiplier block_size bytea_output
    check_function_bodies checkpoint_completion_target checkpoint_flush_after checkpoint_timeout checkpoint_warning
    client_connection_check_interval client_encoding client_min_messages commit_delay commit_siblings constraint_exclusion
    cpu_index_tuple_cost cpu_operator_cost cpu_tuple_cost cursor_tuple_fraction data_checksums datestyle deadlock_timeout
    default_statistics_target default_table_access_method default_tablespace default_text_search_config
    default_toast_compression default_transaction_deferrable default_transaction_isolation default_transaction_read_only
    effective_cache_size effective_io_concurrency enable_async_append enable_bitmapscan enable_distinct_reordering
    enable_gathermerge enable_group_by_reordering enable_hashagg enable_hashjoin enable_incremental_sort
    enable_indexonlyscan enable_indexscan enable_material enable_memoize enable_mergejoin enable_nestloop
    enable_parallel_append enable_parallel_hash enable_partition_pruning enable_partitionwise_aggregate
    enable_partitionwise_join enable_presorted_aggregate enable_self_join_elimination enable_seqscan enable_sort
    enable_tidscan escape_string_warning extra_float_digits from_collapse_limit fsync full_page_writes geqo geqo_effort
    geqo_generations geqo_pool_size geqo_seed geqo_selection_bias geqo_threshold gin_fuzzy_search_limit
    gin_pending_list_limit hash_mem_multiplier hot_standby hot_standby_feedback huge_page_size huge_pages
    idle_in_transaction_session_timeout idle_session_timeout in_hot_standby integer_datetimes intervalstyle is_superuser jit
    jit_above_cost jit_inline_above_cost jit_optimize_above_cost join_collapse_limit lc_collate lc_ctype lc_messages
    lc_monetary lc_numeric lc_time lock_timeout logical_decoding_work_mem maintenance_io_concurrency maintenance_work_mem
    max_connections max_files_per_process max_function_args max_identifier_length max_index_keys max_locks_per_transaction
    max_logical_replication_workers max_parallel_apply_workers_per_subscription max_parallel_maintenance_workers
    max_parallel_workers max_parallel_workers_per_gather max_pred_locks_per_page max_pred_locks_per_relation
    max_pred_locks_per_transaction max_prepared_transactions max_replication_slots max_slot_wal_keep_size max_stack_depth
    max_standby_archive_delay max_standby_streaming_delay max_sync_workers_per_subscription max_wal_senders max_wal_size
    max_worker_processes min_dynamic_shared_memory min_parallel_index_scan_size min_parallel_table_scan_size min_wal_size
    parallel_leader_participation parallel_setup_cost parallel_tuple_cost plan_cache_mode quote_all_identifiers
    random_page_cost recursive_worktable_factor row_security search_path segment_size seq_page_cost server_encoding
    server_version server_version_num session_authorization shared_buffers standard_conforming_strings statement_timeout
    stats_fetch_consistency superuser_reserved_connections synchronize_seqscans synchronous_commit temp_buffers
    temp_file_limit temp_tablespaces timezone timezone_abbreviations track_activities track_activity_query_size
    track_commit_timestamp track_counts track_functions track_io_timing track_wal_io_timing transaction_deferrable
    transaction_isolation transaction_read_only transaction_timeout transform_null_equals vacuum_buffer_usage_limit
    vacuum_cost_delay vacuum_cost_limit vacuum_cost_page_dirty vacuum_cost_page_hit vacuum_cost_page_miss
    vacuum_failsafe_age vacuum_freeze_min_age vacuum_freeze_table_age vacuum_multixact_failsafe_age
    vacuum_multixact_freeze_min_age vacuum_multixact_freeze_table_age wal_block_size wal_buffers wal_compression
    wal_decode_buffer_size wal_keep_size wal_level wal_log_hints wal_recycle wal_segment_size wal_skip_threshold
    wal_sync_method wal_writer_delay wal_writer_flush_after work_mem xmlbinary xmloption
"""
"""Settings that SHOW and `current_setting('…')` may give, lower case: no path, no secret, nothing about other sessions."""
