SELECT * FROM pg_constraint
SELECT c FROM pg_constraint c
SELECT row_to_json(c) FROM pg_constraint c WHERE conrelid = 'hidden'::regclass
SELECT (c).conname FROM pg_constraint c
SELECT x2 FROM pg_constraint AS c (x1, x2)
SELECT array_agg(conname) FROM pg_constraint
SELECT array_agg(c) FROM pg_constraint c
SELECT conname FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
SELECT pg_constraint.conname FROM pg_catalog.pg_constraint, pg_catalog.pg_class WHERE pg_catalog.pg_class.oid = pg_catalog.pg_constraint.conrelid
SELECT pg_get_constraintdef(oid) FROM pg_constraint
SELECT pg_get_constraintdef(o::oid) FROM generate_series(16384, 17500) o
SELECT pg_get_indexdef(o::oid) FROM generate_series(16384, 17500) o
SELECT pg_get_indexdef(o::oid, 1, true) FROM generate_series(16384, 17500) o
SELECT pg_get_viewdef(o::oid) FROM generate_series(16384, 17500) o
SELECT pg_get_viewdef('over_hidden')
SELECT pg_get_viewdef('over_hidden'::regclass)
SELECT pg_get_viewdef('vouched', true)
SELECT pg_get_viewdef('kept_hidden'::regclass, 80)
SELECT pg_catalog.pg_get_viewdef((SELECT oid FROM pg_class WHERE relname = 'over_hidden'))
SELECT pg_get_triggerdef(o::oid) FROM generate_series(16384, 17500) o
SELECT pg_get_ruledef(o::oid) FROM generate_series(16384, 17500) o
SELECT pg_get_statisticsobjdef(o::oid) FROM generate_series(16384, 17500) o
SELECT pg_get_statisticsobjdef_columns(o::oid) FROM generate_series(16384, 17500) o
SELECT pg_get_partkeydef(o::oid) FROM generate_series(16384, 17500) o
SELECT obj_description(o::oid, c) FROM generate_series(16384, 17500) o, unnest(ARRAY['pg_class', 'pg_constraint', 'pg_trigger', 'pg_policy']) c
SELECT obj_description(o::oid) FROM generate_series(16384, 17500) o
SELECT col_description(o::oid, n) FROM generate_series(16384, 17500) o, generate_series(1, 8) n
SELECT col_description('hidden'::regclass, 3)
SELECT obj_description('hidden'::regclass, 'pg_class')
SELECT pg_describe_object('pg_constraint'::regclass, o::oid, 0) FROM generate_series(16384, 17500) o
SELECT pg_describe_object('pg_trigger'::regclass, o::oid, 0) FROM generate_series(16384, 17500) o
SELECT pg_describe_object('pg_policy'::regclass, o::oid, 0) FROM generate_series(16384, 17500) o
SELECT pg_describe_object('pg_statistic_ext'::regclass, o::oid, 0) FROM generate_series(16384, 17500) o
SELECT pg_describe_object('pg_rewrite'::regclass, o::oid, 0) FROM generate_series(16384, 17500) o
SELECT pg_describe_object('pg_class'::regclass, o::oid, 0) FROM generate_series(16384, 17500) o
SELECT pg_describe_object('pg_class'::regclass, 'hidden'::regclass, 3)
SELECT i.* FROM generate_series(16384, 17500) o, pg_identify_object('pg_constraint'::regclass, o::oid, 0) i
SELECT i.* FROM generate_series(16384, 17500) o, pg_identify_object_as_address('pg_constraint'::regclass, o::oid, 0) i
SELECT pg_describe_object(classid, objid, objsubid) FROM pg_depend
SELECT pg_describe_object(refclassid, refobjid, refobjsubid) FROM pg_depend
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef
SELECT adbin FROM pg_attrdef
SELECT pg_get_expr(conbin, conrelid) FROM pg_constraint
SELECT pg_get_expr(indpred, indrelid), pg_get_expr(indexprs, indrelid) FROM pg_index
SELECT pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid), polname FROM pg_policy
SELECT pg_get_expr(tgqual, tgrelid), tgname, tgargs FROM pg_trigger
SELECT ev_action, ev_qual, rulename FROM pg_rewrite WHERE ev_class >= 16384
SELECT stxname, stxexprs FROM pg_statistic_ext
SELECT * FROM pg_policies
SELECT * FROM pg_rules
SELECT * FROM pg_indexes
SELECT * FROM pg_views WHERE schemaname = 'public'
SELECT * FROM pg_matviews
SELECT * FROM pg_sequences
SELECT * FROM pg_sequence
SELECT pg_sequence_parameters(o::oid) FROM pg_class c, LATERAL (SELECT c.oid AS o WHERE c.relkind = 'S') x
SELECT (pg_sequence_parameters('hidden_amounts'::regclass)).*
SELECT * FROM pg_sequence_parameters('hidden_amounts'::regclass)
SELECT relname, reltuples, relpages, relchecks, relhasindex, relhastriggers, reloptions FROM pg_class WHERE oid >= 16384
SELECT c.* FROM pg_class c WHERE relname = 'hidden'
SELECT relname FROM pg_class WHERE reltuples > 2999
SELECT relname FROM pg_class ORDER BY reltuples DESC, relname
SELECT relname, relkind FROM pg_class WHERE relkind IN ('i', 't')
SELECT relname FROM pg_class WHERE relname::text LIKE 'secret%'
SELECT relname FROM pg_class c WHERE oid IN (SELECT indexrelid FROM pg_index)
SELECT indexrelid::regclass::text FROM pg_index
SELECT reltoastrelid::regclass::text FROM pg_class WHERE relname = 'hidden'
SELECT pg_total_relation_size('hidden'), pg_relation_size('hidden'::regclass), pg_table_size('public.hidden'), pg_indexes_size('hidden')
SELECT pg_total_relation_size(oid) FROM pg_class WHERE relname = 'hidden'
SELECT sum(pg_relation_size(o::oid)) FROM generate_series(16384, 17500) o WHERE o NOT IN (SELECT oid FROM pg_class)
SELECT pg_relation_size('hidden', 'fsm'), pg_relation_size('hidden', 'vm')
SELECT max(pg_total_relation_size(c.oid)) FROM pg_class c WHERE c.relname = 'hidden' GROUP BY c.oid
SELECT pg_size_pretty(pg_database_size(current_database())), pg_database_size(oid) FROM pg_database WHERE datname = current_database()
SELECT pg_stat_get_live_tuples('hidden'::regclass), pg_stat_get_numscans(o::oid) FROM generate_series(16384, 17500) o
SELECT relname, n_live_tup, n_tup_ins FROM pg_stat_user_tables
SELECT relname, indexrelname, idx_scan FROM pg_stat_user_indexes
SELECT relname, heap_blks_read FROM pg_statio_user_tables
SELECT * FROM pg_stat_xact_all_tables WHERE relname = 'hidden'
SELECT attname, attmissingval, attstattarget, attoptions FROM pg_attribute WHERE attrelid = 'hidden'::regclass
SELECT a.* FROM pg_attribute a WHERE attrelid = 'hidden'::regclass AND attname = 'late'
SELECT attname FROM pg_attribute WHERE attrelid = (SELECT max(indexrelid) FROM pg_index)
SELECT description FROM pg_description WHERE objoid >= 16384
SELECT * FROM pg_description WHERE objoid = 'hidden'::regclass
SELECT count(*) FROM pg_depend
SELECT count(*) FROM pg_shdepend
SELECT count(*), count(DISTINCT objoid) FROM pg_description
SELECT count(*) FROM pg_constraint
SELECT count(*) FROM pg_trigger
SELECT count(*) FROM pg_index
SELECT count(*) FROM pg_attrdef WHERE adbin IS NOT NULL
SELECT prosrc, prosqlbody, proconfig FROM pg_proc WHERE proname = 'grabs'
SELECT p FROM pg_proc p WHERE proname = 'grabs'
SELECT proname FROM pg_proc WHERE prosrc LIKE '%source%' AND oid >= 16384
SELECT * FROM pg_publication_tables
SELECT * FROM pg_publication_rel
SELECT name, setting FROM pg_settings WHERE name ~ 'dir|file|path|preload|log_'
SELECT * FROM pg_settings WHERE sourcefile IS NOT NULL
SELECT column_name, column_default, generation_expression FROM information_schema.columns WHERE table_name = 'hidden'
SELECT * FROM information_schema.columns WHERE column_default LIKE '%secret%'
SELECT * FROM information_schema.table_constraints
SELECT * FROM information_schema.check_constraints
SELECT * FROM information_schema.key_column_usage
SELECT * FROM information_schema.referential_constraints
SELECT * FROM information_schema.constraint_column_usage
SELECT * FROM information_schema.constraint_table_usage
SELECT * FROM information_schema.views WHERE table_schema = 'public'
SELECT * FROM information_schema.view_table_usage
SELECT * FROM information_schema.view_column_usage
SELECT * FROM information_schema.triggers
SELECT * FROM information_schema.sequences
SELECT routine_name, routine_definition FROM information_schema.routines WHERE routine_schema = 'public'
SELECT information_schema.columns.column_default FROM information_schema.columns WHERE information_schema.columns.table_name = 'hidden'
SELECT conname FROM pg_constraint WHERE CASE WHEN conname LIKE 'secret%' THEN 1 / 0 END IS NULL
SELECT 1 FROM pg_constraint WHERE 1 / (conname::text <> 'secret_check')::int > 0
SELECT relname FROM pg_class WHERE 1 / (relname::text <> 'secret_index')::int > 0
SELECT 1 FROM pg_class WHERE CASE WHEN relname = 'hidden' THEN 1 / (reltuples::int - 3000) ELSE 1 END > 0
SELECT count(*) FROM pg_class WHERE relname = 'hidden' AND has_table_privilege(oid, CASE WHEN reltuples > 5 THEN 'bogus' ELSE 'select' END)
SELECT count(*) FROM pg_constraint WHERE has_table_privilege(conrelid, CASE WHEN conname LIKE 'secret%' THEN 'bogus' ELSE 'select' END)
WITH q AS (TABLE pg_constraint) SELECT conname FROM q
SELECT conname FROM ONLY pg_constraint
SELECT conname FROM pg_constraint TABLESAMPLE bernoulli (100)
SELECT c.conname, t.relname FROM pg_constraint c NATURAL JOIN (SELECT oid, relname FROM pg_class) t
SELECT conname FROM pg_class c, LATERAL (SELECT conname FROM pg_constraint WHERE conrelid = c.oid) x
SELECT (SELECT string_agg(conname, ',') FROM pg_constraint k WHERE k.conrelid = c.oid) FROM pg_class c WHERE relname = 'hidden'
SELECT EXISTS (SELECT FROM pg_constraint WHERE conname = 'secret_check')
SELECT conname FROM pg_constraint UNION SELECT indexname FROM pg_indexes
VALUES ((SELECT array_agg(conname) FROM pg_constraint)::text)
CREATE TABLE stolen AS SELECT conname FROM pg_constraint
INSERT INTO takes SELECT conname FROM pg_constraint RETURNING what
SELECT has_any_column_privilege('hidden', 'select'), row_security_active('hidden')
SELECT to_regclass('hidden'), format_type('hidden'::regtype, NULL)
SELECT relid::regclass::text, parentrelid, isleaf, level FROM pg_partition_tree('hidden')
SELECT pg_get_serial_sequence('hidden', 'id'), pg_get_serial_sequence('hidden', 'amount')
