"""The queries that read a catalog (decision 12). All run in one read-only snapshot with `search_path` = pg_catalog alone, so that
no object of a user stands in for one of PostgreSQL's, and names from elsewhere come out qualified.

Objects with an oid below 16384 came with the server. pg_depend says nothing about the pinned ones among them; what a view or a
CHECK does with those is read from its stored tree, whose fields follow ` :` (constants are bytes there, blanks in names escaped).
A whole row in the expression of an index leaves no dependency on its columns: there it is column 0 of the stored tree; a CHECK
notes it as column 0 of its key.
"""

from typing import Final

import asyncpg
import msgspec

from gatewayd.postgres.catalog.row_marks import EVERYWHERE, KEYS, SHAPE

BEGIN: Final = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = pg_catalog; "
    "SET LOCAL statement_timeout = '30s'"  # the limit in the policy is for agents' statements
)

SERVER: Final = (
    "SELECT current_database()::text AS database, current_setting('server_version_num')::int AS version, "
    f"current_setting('server_encoding') AS encoding, {EVERYWHERE} AS everywhere"
)

RELATIONS: Final = f"""
SELECT c.oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind, c.reltype AS row_type,
       c.relrowsecurity AS row_security,
       EXISTS (SELECT FROM pg_options_to_table(c.reloptions) WHERE option_name = 'security_barrier' AND option_value::bool)
           AS is_barrier,
       CASE WHEN t.indrelid IS NOT NULL THEN ARRAY[t.indrelid, t.indexrelid] END AS toast,
       coalesce(i.indrelid, s.refobjid, 0) AS belongs_to, a.names, a.types, a.required,
       a.numbers, i.indkey::int2[] AS index_numbers, i.indexprs IS NOT NULL AS index_computes,
       CASE WHEN c.relkind IN ('v', 'm') AND c.oid >= 16384 THEN pg_get_viewdef(c.oid) END AS definition,
       CASE WHEN c.relkind NOT IN ('i', 'I') AND c.oid >= 16384 THEN {SHAPE} ELSE 0 END AS shape,
       CASE WHEN c.relkind NOT IN ('i', 'I') AND c.oid >= 16384 THEN {KEYS} ELSE 0 END AS keys
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
LEFT JOIN pg_index AS t ON c.reltoastrelid <> 0 AND t.indrelid = c.reltoastrelid
LEFT JOIN (
    SELECT objid, min(refobjid::int8)::oid AS refobjid FROM pg_depend
    WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND refobjsubid > 0 AND deptype IN ('a', 'i')
    GROUP BY objid
) AS s ON c.relkind = 'S' AND s.objid = c.oid
LEFT JOIN (
    SELECT attrelid, array_agg(attname::text ORDER BY attnum) AS names, array_agg(atttypid ORDER BY attnum) AS types,
           array_agg(attnotnull ORDER BY attnum) AS required, array_agg(attnum ORDER BY attnum) AS numbers
    FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped GROUP BY attrelid
) AS a ON c.relkind NOT IN ('i', 'I') AND a.attrelid = c.oid
WHERE n.nspname NOT LIKE 'pg\\_t%' AND (c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'c')
      OR c.relkind IN ('i', 'I') AND c.oid >= 16384)
"""

INHERITANCE: Final = "SELECT inhrelid AS child, inhparent AS parent FROM pg_inherits ORDER BY inhrelid, inhseqno"

GENERATED: Final = """
SELECT a.attrelid AS relation, a.attname::text AS name, array_agg(DISTINCT s.attname::text) AS sources
FROM pg_attribute AS a
JOIN pg_attrdef AS e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid > 0
     AND (d.classid = 'pg_attrdef'::regclass AND d.objid = e.oid
          OR d.classid = 'pg_class'::regclass AND d.objid = a.attrelid AND d.objsubid = a.attnum)
JOIN pg_attribute AS s ON s.attrelid = a.attrelid AND s.attnum = d.refobjsubid AND s.attnum <> a.attnum
WHERE a.attgenerated <> '' AND a.attrelid >= 16384 AND NOT a.attisdropped
GROUP BY a.attrelid, a.attname
"""

CONSTRAINTS: Final = """
SELECT i.indrelid AS relation, 'unique' AS kind, array_agg(DISTINCT a.attname::text) AS columns, 0::oid AS other,
       NULL::text[] AS other_columns
FROM pg_index AS i
JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum > 0 AND NOT a.attisdropped AND (
    a.attnum = ANY (i.indkey)
    OR a.attnum IN (
        SELECT d.refobjsubid FROM pg_depend AS d
        WHERE (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL) AND d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
              AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid)
    OR i.indexprs::text ~ ' :varattno 0\\y' OR i.indpred::text ~ ' :varattno 0\\y')
WHERE (i.indisunique OR i.indisexclusion) AND i.indrelid >= 16384
GROUP BY i.indexrelid, i.indrelid
UNION ALL
SELECT c.conrelid, CASE c.contype WHEN 'f' THEN 'foreign' ELSE 'check' END,
       ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = c.conrelid AND attnum > 0 AND NOT attisdropped
             AND (attnum = ANY (c.conkey) OR 0 = ANY (c.conkey)) ORDER BY attnum),
       c.confrelid,
       ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = c.confrelid AND attnum = ANY (c.confkey) ORDER BY attnum)
FROM pg_constraint AS c WHERE c.contype IN ('c', 'f') AND c.conrelid <> 0 AND c.conkey IS NOT NULL
UNION ALL
SELECT p.partrelid, 'partition',
       ARRAY(SELECT a.attname::text FROM pg_attribute AS a WHERE a.attrelid = p.partrelid AND a.attnum > 0 AND (
           a.attnum = ANY (p.partattrs) OR p.partexprs IS NOT NULL AND a.attnum IN (
               SELECT d.refobjsubid FROM pg_depend AS d
               WHERE d.classid = 'pg_class'::regclass AND d.objid = p.partrelid AND d.refclassid = 'pg_class'::regclass
                     AND d.refobjid = p.partrelid))),
       0::oid, NULL
FROM pg_partitioned_table AS p
"""

RULES: Final = """
SELECT r.ev_class AS relation, r.ev_type::text AS event, d.refclassid::regclass::text AS class, d.refobjid AS oid
FROM pg_rewrite AS r
JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
WHERE r.ev_class >= 16384 AND d.refobjid <> r.ev_class
      AND d.refclassid IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass)
UNION
SELECT r.ev_class, r.ev_type::text, CASE WHEN f.found[1] = 'relid' THEN 'pg_class' ELSE 'pg_proc' END, f.found[2]::oid
FROM pg_rewrite AS r
CROSS JOIN LATERAL regexp_matches(
    r.ev_action::text || r.ev_qual::text, ' :(relid|funcid|opfuncid|aggfnoid|winfnoid) ([1-9][0-9]{0,4})\\y', 'g'
) AS f (found)
WHERE r.ev_class >= 16384 AND f.found[2]::int8 < 16384
UNION
SELECT ev_class, ev_type::text, 'none', 0::oid FROM pg_rewrite WHERE ev_class >= 16384 AND ev_type <> '1'
"""  # the last: a rule that touches nothing is a rule all the same

FUNCTIONS: Final = """
SELECT p.oid, n.nspname::text AS schema, p.proname::text AS name, p.provolatile::text AS volatility,
       p.prosecdef AS security_definer, l.lanname::text AS language, e.extname::text AS extension,
       p.pronargs::int4 AS arguments, p.prokind::text AS kind, p.xmin::text::int8 AS row
FROM pg_proc AS p
JOIN pg_namespace AS n ON n.oid = p.pronamespace
JOIN pg_language AS l ON l.oid = p.prolang
LEFT JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
     AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
LEFT JOIN pg_extension AS e ON e.oid = d.refobjid
WHERE p.oid >= 16384 OR n.nspname NOT IN ('pg_catalog', 'information_schema')
"""

AGGREGATES: Final = """
SELECT a.aggfnoid::oid AS aggregate, p.oid, p.provolatile::text AS volatility, p.prosecdef AS security_definer
FROM pg_aggregate AS a
JOIN pg_proc AS p ON p.oid = ANY (ARRAY[a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn,
                                        a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn]::oid[])
WHERE a.aggfnoid::oid >= 16384
"""

OPERATORS: Final = """
SELECT o.oid, n.nspname::text AS schema, o.oprname::text AS name, o.oprcode::oid AS function
FROM pg_operator AS o JOIN pg_namespace AS n ON n.oid = o.oprnamespace
WHERE o.oid >= 16384
"""

TYPES: Final = """
SELECT t.oid, n.nspname::text AS schema, t.typname::text AS name, t.typtype::text AS kind,
       format_type(t.oid, NULL) AS printed, t.typelem AS element,
       t.typelem <> 0 AND t.typlen = -1 AND item.typarray = t.oid AS is_array, t.typbasetype AS base, t.typrelid AS row_of,
       coalesce(r.rngsubtype, 0) AS subtype, e.extname::text AS extension, t.xmin::text::int8 AS row,
       t.typcategory::text AS category, t.typispreferred AS preferred,
       ARRAY[t.typinput, t.typoutput, t.typreceive, t.typsend, t.typmodin, t.typmodout, coalesce(r.rngcanonical, 0)]::oid[]
           AS functions
FROM pg_type AS t
JOIN pg_namespace AS n ON n.oid = t.typnamespace
LEFT JOIN pg_class AS c ON c.oid = t.typrelid
LEFT JOIN pg_type AS item ON item.oid = t.typelem
LEFT JOIN pg_class AS item_of ON item_of.oid = item.typrelid
LEFT JOIN pg_range AS r ON t.oid IN (r.rngtypid, r.rngmultitypid)
LEFT JOIN pg_depend AS d ON d.classid = 'pg_type'::regclass AND d.objid = t.oid
     AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
LEFT JOIN pg_extension AS e ON e.oid = d.refobjid
WHERE coalesce(c.relkind, 'c') = 'c' AND coalesce(item_of.relkind, 'c') = 'c' AND n.nspname NOT LIKE 'pg\\_t%'
"""

ROW_TYPES: Final = """
SELECT t.oid, format_type(t.oid, NULL) AS printed, t.typelem AS element FROM pg_type AS t WHERE t.oid = ANY ($1::oid[])
"""

CHECKS: Final = """
SELECT c.contypid AS type, d.refclassid::regclass::text AS class, d.refobjid AS oid
FROM pg_constraint AS c
JOIN pg_depend AS d ON d.classid = 'pg_constraint'::regclass AND d.objid = c.oid
WHERE c.contypid >= 16384 AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass)
UNION
SELECT c.contypid, 'pg_proc', f.found[1]::oid
FROM pg_constraint AS c
CROSS JOIN LATERAL regexp_matches(c.conbin::text, ' :(?:funcid|opfuncid) ([1-9][0-9]{0,4})\\y', 'g') AS f (found)
WHERE c.contypid >= 16384 AND f.found[1]::int8 < 16384
"""

CASTS: Final = """
SELECT c.casttarget AS target, c.castfunc AS function,
       CASE WHEN c.castcontext <> 'e' AND c.castsource >= 16384 THEN c.castsource END AS source
FROM pg_cast AS c
WHERE c.oid >= 16384 AND c.castfunc <> 0 AND NOT EXISTS (
    SELECT FROM pg_depend AS d WHERE d.classid = 'pg_proc'::regclass AND d.objid = c.castfunc AND d.deptype = 'i'
)
"""  # a range type brings its own, made of built-in code and internally dependent on it

OVERLOADS: Final = """
SELECT p.oid, n.nspname::text AS schema, p.proname::text AS name, p.proargtypes::oid[] AS arguments,
       p.pronargdefaults::int4 AS defaults, p.provariadic <> 0 AS variadic
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname IN ('pg_catalog', 'public') AND p.proname IN (
    SELECT b.proname FROM pg_proc AS b WHERE b.pronamespace = 'pg_catalog'::regnamespace
    INTERSECT SELECT u.proname FROM pg_proc AS u JOIN pg_namespace AS m ON m.oid = u.pronamespace WHERE m.nspname = 'public')
"""

OPERATOR_OVERLOADS: Final = """
SELECT o.oid, n.nspname::text AS schema, o.oprname::text AS name, o.oprleft AS left, o.oprright AS right,
       o.oprcode::oid AS function
FROM pg_operator AS o JOIN pg_namespace AS n ON n.oid = o.oprnamespace
WHERE n.nspname IN ('pg_catalog', 'public') AND o.oprname IN (
    SELECT b.oprname FROM pg_operator AS b WHERE b.oprnamespace = 'pg_catalog'::regnamespace
    INTERSECT SELECT u.oprname FROM pg_operator AS u JOIN pg_namespace AS m ON m.oid = u.oprnamespace WHERE m.nspname = 'public')
"""

ALL_CASTS: Final = """
SELECT castsource AS source, casttarget AS target, castfunc AS function, castcontext::text AS context FROM pg_cast
"""

BUILTINS: Final = "SELECT oid, proname::text AS name FROM pg_proc WHERE oid = ANY ($1::oid[])"


class Rows(msgspec.Struct, frozen=True):
    """What each query gave."""

    server: asyncpg.Record
    relations: list[asyncpg.Record]
    inheritance: list[asyncpg.Record]
    constraints: list[asyncpg.Record]
    generated: list[asyncpg.Record]
    rules: list[asyncpg.Record]
    functions: list[asyncpg.Record]
    aggregates: list[asyncpg.Record]
    operators: list[asyncpg.Record]
    types: list[asyncpg.Record]
    row_types: list[asyncpg.Record]
    checks: list[asyncpg.Record]
    casts: list[asyncpg.Record]
    builtins: list[asyncpg.Record]
    overloads: list[asyncpg.Record]
    operator_overloads: list[asyncpg.Record]
    all_casts: list[asyncpg.Record]
