"""decide() over the catalog of a real database: what names alone hide, and what honest work needs (decisions 3.4, 3.5)."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
import pytest

from gatewayd.catalog import Catalog
from gatewayd.policy.decide.decision import decide, unknown_names
from gatewayd.policy.decide.outcomes import Allowed, Decision, Denied
from gatewayd.policy.file.model import FullRedact, Functions, Guardrails, Policy, TableAccess
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests.policy.live_catalog import catalog_of

SCHEMA = """
CREATE EXTENSION IF NOT EXISTS plpgsql;
CREATE SCHEMA app; CREATE SCHEMA archive;
CREATE TABLE users (id serial PRIMARY KEY, name text, email text, info jsonb, at timestamptz DEFAULT now());
CREATE TABLE secrets (id serial PRIMARY KEY, key text);
CREATE TABLE app.items (id int, label text);
CREATE VIEW v_users AS SELECT id, name FROM users;
CREATE VIEW v_secrets AS SELECT key FROM secrets;
CREATE VIEW v_deep AS SELECT upper(key) AS k FROM v_secrets;
CREATE VIEW v_exists AS SELECT id FROM users WHERE EXISTS (SELECT FROM secrets);
CREATE MATERIALIZED VIEW m_secrets AS SELECT * FROM secrets;
CREATE VIEW v_activity AS SELECT query FROM pg_stat_activity;
CREATE VIEW v_sizes AS SELECT relname, reltuples FROM pg_class;
CREATE VIEW v_xml AS SELECT query_to_xml('SELECT * FROM secrets', true, true, '') AS x;
CREATE FUNCTION peek() RETURNS text LANGUAGE sql STABLE AS 'SELECT key FROM secrets LIMIT 1';
CREATE FUNCTION grab() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT key FROM secrets LIMIT 1';
CREATE FUNCTION slug(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower($1)';
CREATE FUNCTION touch() RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1';
CREATE FUNCTION app.helper(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE FUNCTION lower(int) RETURNS text LANGUAGE sql VOLATILE AS 'SELECT key FROM secrets WHERE id = $1';
CREATE FUNCTION leak(users) RETURNS text LANGUAGE sql VOLATILE AS 'SELECT key FROM secrets LIMIT 1';
CREATE PROCEDURE shred() LANGUAGE sql AS 'SELECT 1';
CREATE VIEW v_peek AS SELECT peek() AS p;
CREATE VIEW v_touch AS SELECT touch() AS t;
CREATE FUNCTION same(text, int) RETURNS bool LANGUAGE sql VOLATILE AS 'SELECT true';
CREATE OPERATOR = (LEFTARG = text, RIGHTARG = int, FUNCTION = same);
CREATE OPERATOR app.<~> (LEFTARG = text, RIGHTARG = int, FUNCTION = same);
CREATE VIEW v_operator AS SELECT 'a'::text = 1 AS e;
CREATE FUNCTION valid(text) RETURNS bool LANGUAGE sql VOLATILE AS 'SELECT EXISTS (SELECT FROM secrets WHERE key = $1)';
CREATE DOMAIN guess AS text CHECK (valid(VALUE));
CREATE DOMAIN short AS text CHECK (length(VALUE) < 9);
CREATE TYPE mood AS ENUM ('ok', 'sad');
CREATE TYPE pair AS (a int, b guess);
CREATE TABLE typed (id int, g guess);
CREATE AGGREGATE vsum(int) (SFUNC = int4pl, STYPE = int);
CREATE FUNCTION vstep(int, int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT $1';
CREATE AGGREGATE vagg(int) (SFUNC = vstep, STYPE = int);
CREATE TABLE events (id int, day date) PARTITION BY RANGE (day);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE archive.events_0 PARTITION OF events FOR VALUES FROM ('2019-01-01') TO ('2020-01-01');
CREATE TABLE parent (id int); CREATE TABLE child (more int) INHERITS (parent);
CREATE TABLE log (id int); CREATE TABLE ruled (id int);
CREATE RULE also AS ON INSERT TO ruled DO ALSO INSERT INTO log VALUES (new.id);
CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER far FOREIGN DATA WRAPPER nowhere;
CREATE FOREIGN TABLE remote (id int) SERVER far;
"""


class Server(Protocol):
    def create_database(self, sql: str = "") -> str: ...


@pytest.fixture(scope="module")
def catalog(postgres: Server) -> Catalog:
    return catalog_of(postgres.create_database(SCHEMA))


def policy(default: Any = "read", allow: tuple[str, ...] = (), **tables: str) -> Policy:
    """Keys with `__` for the dot: `app__items`; `app__all` for `app.*`. Guardrails off: they are tested elsewhere."""
    keys = {
        tuple((key if "__" in key else f"public__{key}").replace("__all", "__*").split("__")): level
        for key, level in tables.items()
    }
    return Policy(
        table_access=TableAccess(default, msgspec.convert(keys, dict[tuple[str, str], Any])),
        functions=Functions(frozenset(tuple(each.split(".")) for each in allow)),  # type: ignore[misc] # two parts each
        guardrails=Guardrails(False, False, False),
    )


OPEN = policy()
HIDING = policy(secrets="deny")
WRITING = policy("read_write", users="read")
MASKING = msgspec.structs.replace(OPEN, column_masks={("public", "users"): {"id": FullRedact()}})


def decided(sql: str, under: Policy, catalog: Catalog) -> Decision:
    return decide(analyze(sql), under, catalog)


# What each statement would do without us stands beside it, then what the reason must say.
DENIED: Mapping[str, tuple[Policy, str, str]] = {
    # views
    "SELECT * FROM v_secrets": (HIDING, "reads secrets", "reaches public.secrets"),
    "SELECT * FROM v_deep": (HIDING, "reads secrets two views down", "reaches public.secrets"),
    "SELECT id FROM v_exists": (HIDING, "tells whether secrets has rows", "reaches public.secrets"),
    "SELECT * FROM m_secrets": (HIDING, "holds a copy of secrets", "reaches public.secrets"),
    "SELECT 1 FROM (SELECT * FROM v_secrets) q": (HIDING, "reads secrets", "reaches public.secrets"),
    "EXPLAIN SELECT * FROM v_secrets": (
        policy(secrets="deny", v_secrets="read"),
        "shows how large secrets is",
        "reaches public.secrets",
    ),
    "SELECT * FROM v_activity": (OPEN, "shows what others run", "reaches pg_catalog.pg_stat_activity"),
    "SELECT reltuples FROM v_sizes": (HIDING, "shows how many rows secrets has", "reaches pg_catalog.pg_class"),
    "SELECT * FROM v_xml": (OPEN, "runs SQL no one has seen", "runs function query_to_xml"),
    "SELECT * FROM v_peek": (HIDING, "runs a function that reads secrets", "runs function public.peek"),
    "SELECT * FROM v_touch": (policy(v_touch="read"), "runs a volatile function", "runs function public.touch"),
    "SELECT * FROM v_operator": (OPEN, "runs a volatile function behind an operator", "runs function public.same"),
    "UPDATE v_users SET name = 'x' WHERE id = 1": (WRITING, "changes users", "reaches public.users"),
    "INSERT INTO v_users VALUES (1)": (
        policy("read_write", users="read", v_users="read_write"),
        "changes users",
        "reaches public.users",
    ),
    "SELECT * FROM v_users FOR UPDATE": (WRITING, "locks users", "reaches public.users"),
    # functions
    "SELECT peek()": (HIDING, "reads secrets", "function public.peek"),
    "SELECT public.peek()": (HIDING, "reads secrets", "function public.peek"),
    "SELECT grab()": (OPEN, "reads with the owner's rights", "function public.grab"),
    "SELECT touch()": (OPEN, "is volatile", "function public.touch"),
    "SELECT * FROM touch()": (OPEN, "is volatile", "function public.touch"),
    "SELECT slug('A')": (HIDING, "immutable is a promise, not a fact", "function public.slug"),
    "SELECT lower(1)": (OPEN, "the overload in public reads secrets", "function public.lower"),
    "SELECT lower(id + 1) FROM users": (OPEN, "PostgreSQL may choose the overload", "function public.lower"),
    "SELECT shred()": (policy(allow=("public.shred",)), "is a procedure", "function public.shred"),
    "SELECT vagg(id) FROM users": (OPEN, "its step is volatile", "function public.vagg"),
    "SELECT app.nope(1)": (OPEN, "is not known", "function app.nope"),
    "SELECT nope(1)": (OPEN, "is not known", "function nope"),
    "SELECT pg_read_file('/etc/passwd')": (policy(allow=("pg_catalog.pg_read_file",)), "reads a file", "function pg_read_file"),
    "SELECT pg_catalog.pg_sleep(9)": (OPEN, "sleeps", "function pg_sleep"),
    "SELECT query_to_xml('SELECT 1', true, true, '')": (OPEN, "runs SQL it is given", "function query_to_xml"),
    "SELECT set_config('role', 'x', false)": (OPEN, "changes a setting", "function set_config"),
    "SELECT nextval('users_id_seq')": (policy("read_write"), "changes a sequence", "function nextval"),
    "EXPLAIN SELECT pg_get_viewdef('v_secrets'::regclass)": (HIDING, "computes with a definition", "function pg_get_viewdef"),
    # attribute notation
    "SELECT u.leak FROM users u": (OPEN, "calls leak(users)", "function public.leak"),
    "SELECT (u).leak FROM users u": (OPEN, "calls leak(users)", "function public.leak"),
    "SELECT users.leak FROM users": (OPEN, "calls leak(users)", "function public.leak"),
    "SELECT q.leak FROM (SELECT * FROM users) q": (OPEN, "calls leak", "function public.leak"),
    "SELECT ('SELECT key FROM secrets'::text).ts_stat": (OPEN, "runs SQL it is given", "function ts_stat"),
    "SELECT ('x'::text).guess": (HIDING, "converts to guess, whose check reads secrets", "runs function public.valid"),
    # operators
    "SELECT 'a'::text = 1": (OPEN, "the overload of = is volatile", "runs function public.same"),
    "SELECT 1 FROM users WHERE name IN (1, 2)": (OPEN, "IN runs =", "runs function public.same"),
    "SELECT 1 FROM users WHERE id = 3": (MASKING, "a mask may make its column a text", "runs function public.same"),
    "SELECT 'a'::text OPERATOR(app.<~>) 1": (OPEN, "runs a volatile function", "runs function public.same"),
    "SELECT 1 <~> 2": (OPEN, "is not on the search path", "operator <~>"),
    # types
    "SELECT 'x'::guess": (HIDING, "its check reads secrets", "runs function public.valid"),
    "SELECT CAST('x' AS public.guess)": (OPEN, "its check is volatile", "runs function public.valid"),
    "SELECT guess('x')": (OPEN, "converts by function notation", "runs function public.valid"),
    "SELECT '{x}'::guess[]": (OPEN, "converts each element", "runs function public.valid"),
    "SELECT '{x}'::_guess": (OPEN, "converts each element", "runs function public.valid"),
    "SELECT '(1,x)'::pair": (OPEN, "converts the field", "runs function public.valid"),
    "SELECT '(1,x)'::typed": (OPEN, "converts to a row of typed, and so to guess", "runs function public.valid"),
    "SELECT * FROM json_to_record('{}') AS r(a guess)": (OPEN, "converts to guess", "runs function public.valid"),
    "SELECT json_populate_record(NULL::typed, '{}')": (OPEN, "converts to guess", "runs function public.valid"),
    "SELECT 'x'::nope": (OPEN, "is not known", "type nope"),
    # partitions and inheritance
    "SELECT * FROM events_1": (policy(events="deny"), "holds rows of events", "has level deny (table:public.events→deny)"),
    "SELECT * FROM archive.events_0": (
        policy(events="deny"),
        "holds rows of events",
        "has level deny (table:public.events→deny)",
    ),
    "SELECT * FROM events": (policy(events_1="deny"), "reads events_1", "reaches public.events_1"),
    "SELECT * FROM ONLY parent, events": (policy(events_1="deny"), "reads events_1", "reaches public.events_1"),
    "SELECT * FROM child": (policy(parent="deny"), "holds rows of parent", "has level deny (table:public.parent→deny)"),
    "SELECT * FROM parent": (policy(child="deny"), "reads child", "reaches public.child"),
    "SELECT count(*) FROM parent": (policy(archive__all="deny", child="deny"), "reads child", "reaches public.child"),
    "INSERT INTO events VALUES (1, '2020-02-02')": (
        policy("read_write", events_1="read"),
        "fills events_1",
        "reaches public.events_1",
    ),
    "DELETE FROM parent WHERE id = 1": (policy("read_write", child="read"), "deletes from child", "reaches public.child"),
    "DELETE FROM child WHERE id = 1": (
        policy("read_write", parent="read"),
        "deletes rows of parent",
        "has level read (table:public.parent→read)",
    ),
    "SELECT id FROM events": (policy(archive__all="deny"), "reads archive.events_0", "reaches archive.events_0"),
    # rules, foreign tables, sequences
    "REFRESH MATERIALIZED VIEW m_secrets": (policy("read_write", secrets="deny"), "reads secrets", "reaches public.secrets"),
    "DROP INDEX secrets_pkey": (policy("read_write", secrets="read"), "changes secrets", "reaches public.secrets"),
    "ALTER SEQUENCE secrets_id_seq RESTART": (policy("read_write", secrets="read"), "changes secrets", "reaches public.secrets"),
    "ALTER VIEW v_deep RENAME TO shown": (
        policy("read_write", secrets="deny", shown="read"),
        "takes a key of its own",
        "reaches public.secrets",
    ),
    "INSERT INTO ruled VALUES (1)": (policy("read_write", log="read"), "writes to log", "reaches public.log"),
    "INSERT INTO ruled VALUES (2)": (policy("read_write", log="deny"), "writes to log", "reaches public.log"),
    "SELECT * FROM remote": (HIDING, "may reach secrets through its server", "is a foreign table"),
    "SELECT last_value FROM secrets_id_seq": (HIDING, "tells how many secrets there were", "reaches public.secrets"),
    # pg_catalog
    "SELECT rolpassword FROM pg_authid": (OPEN, "shows passwords", "by default: it holds passwords"),
    "SELECT * FROM pg_catalog.pg_stat_activity": (OPEN, "shows what others run", "by default: it shows what"),
    "SELECT most_common_vals FROM pg_stats": (OPEN, "shows values", "by default: it shows row"),
    "SELECT * FROM pg_toast.pg_toast_1": (policy("read_write"), "holds pieces of rows", "TOAST"),
    "DELETE FROM pg_class WHERE true": (policy("read_write"), "breaks the database", "system relation"),
    "INSERT INTO information_schema.sql_features VALUES ('x')": (
        policy("read_write"),
        "changes a system table",
        "system relation",
    ),
    "SELECT * FROM shop.public.users": (OPEN, "names another database", "names a database"),
}


@pytest.mark.parametrize("sql", DENIED)
def test_denied_by_table_access(sql: str, catalog: Catalog) -> None:
    under, why, says = DENIED[sql]
    decision = decided(sql, under, catalog)
    assert isinstance(decision, Denied), why
    assert decision.policy_rule == "table_access"
    assert says in decision.reason
    assert decision.reason.isprintable()


PASSING: Mapping[str, Policy] = {
    "SELECT id, name FROM v_users": HIDING,
    "SELECT * FROM v_secrets": policy(secrets="deny", v_secrets="read"),
    "SELECT * FROM v_deep": OPEN,
    "SELECT * FROM v_peek": policy(secrets="deny", v_peek="read"),
    "SELECT * FROM m_secrets": policy(secrets="deny", m_secrets="read"),
    "SELECT v.name, count(*) OVER (PARTITION BY u.email ORDER BY v.id) FROM v_users v JOIN users u USING (id)": policy(
        secrets="deny", allow=("public.same", "public.lower")
    ),
    "SELECT slug(name), peek() FROM users": OPEN,
    "SELECT slug('A'), app.helper(1)": policy(secrets="deny", allow=("public.slug", "app.*")),
    "SELECT upper(name), to_char(at, 'YYYY-MM'), info -> 'a' ->> 'b', info @> '{}' FROM users": HIDING,
    "SELECT rank() OVER w, lag(id, 1) OVER w, sum(id) FILTER (WHERE id > 1) OVER w FROM users WINDOW w AS (ORDER BY id)": HIDING,
    "SELECT u.id, u.ctid, (u).name, u.xmin FROM users u": HIDING,
    "SELECT q.n FROM (SELECT name AS n FROM users) q": HIDING,
    "SELECT q.name FROM (SELECT * FROM users) q": HIDING,
    "SELECT u.nothing_is_called_so FROM users u": HIDING,
    "SELECT (now() - at)::interval, at::date, date_trunc('month', at) FROM users": HIDING,
    "SELECT 'ok'::mood, 'abc'::short, '{ok}'::mood[]": HIDING,
    "SELECT vsum(id) FROM users": OPEN,
    "SELECT * FROM users TABLESAMPLE bernoulli (10)": HIDING,
    "SELECT * FROM events": HIDING,
    "SELECT * FROM archive.events_0": policy("deny", events="read"),
    "SELECT * FROM ONLY parent": policy(child="deny"),
    "SELECT * FROM events_1": policy(events="deny", events_1="read"),
    "INSERT INTO ruled VALUES (1)": policy("read_write", secrets="deny"),
    "INSERT INTO users (name) VALUES ('x') RETURNING id": policy(users="read_write", secrets="deny"),
    "UPDATE v_users SET name = 'x' WHERE id > 1": policy(users="read_write", v_users="read_write", secrets="deny"),
    "SELECT * FROM remote": policy(secrets="deny", remote="read"),
    "REFRESH MATERIALIZED VIEW m_secrets": policy("read_write", secrets="read"),
    "DROP VIEW v_users": policy("read_write", users="read"),
    "SELECT last_value FROM users_id_seq": HIDING,
    "SELECT typname, nspname FROM pg_type t JOIN pg_namespace n ON n.oid > t.typnamespace": HIDING,
    "SELECT table_name FROM information_schema.tables": policy("deny"),
    "SELECT c.relname, c.relkind FROM pg_catalog.pg_class c": OPEN,
    "SELECT (information_schema._pg_expandarray(i.indkey)).n FROM pg_index i": OPEN,
    "SELECT * FROM json_to_record('{}') AS r(a int, b mood)": HIDING,
    # A user's overload of the name that PostgreSQL does not take for these types.
    "SELECT lower('A'), lower(name), lower(u.email) FROM users u": HIDING,
    "SELECT 1 FROM users WHERE id IN (1, 2) AND id = 3 AND name = 'x' AND email IS DISTINCT FROM name": HIDING,
    "SELECT 1::text, id::text, 'x'::text, now()::date::text FROM users": HIDING,
    "SELECT geo.* FROM (VALUES (1, 2)) AS geo(lat, long)": HIDING,
}


@pytest.mark.parametrize("sql", PASSING)
def test_allowed(sql: str, catalog: Catalog) -> None:
    decision = decided(sql, PASSING[sql], catalog)
    assert isinstance(decision, Allowed), decision


def test_nothing_here_asks_for_a_refresh(catalog: Catalog) -> None:
    for sql in PASSING:
        statement = analyze(sql)
        assert isinstance(statement, Statement)
        assert not unknown_names(statement, catalog), sql


def test_the_reason_names_what_a_view_reaches_and_its_setting(catalog: Catalog) -> None:
    decision = decided("SELECT * FROM v_deep", HIDING, catalog)
    assert isinstance(decision, Denied)
    assert decision.matched_rule == "table:public.secrets→deny"
    assert decision.reason.startswith("table v_deep reaches public.secrets, which has level deny (table:public.secrets→deny)")
    assert decision.reason.endswith('an operator can open this view alone with table_access.tables."public.v_deep": read')


def test_the_reason_for_a_function_names_its_place_and_setting(catalog: Catalog) -> None:
    decision = decided("SELECT 1,\n  touch()", OPEN, catalog)
    assert isinstance(decision, Denied)
    assert decision.reason == (
        "function public.touch at line 2, column 3 is not permitted: it is volatile, so it may change things; "
        'an operator can permit it with functions.allow: ["public.touch"]'
    )
