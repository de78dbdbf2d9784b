"""Lineage: where a marked column shows plainly, and every place where it may not stand (decision 10)."""

import pytest

from gatewayd.catalog import Function
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from gatewayd.sql.lineage.origins import Plain
from gatewayd.sql.lineage.whole_statement import columns_of
from tests.sql.lineage_shop import HIDDEN, lineage, marks

PLAIN = [
    ("SELECT * FROM users", "id name city email=users.email ssn=users.ssn"),
    ("TABLE users", "id name city email=users.email ssn=users.ssn"),
    ("SELECT u.* FROM users u", "id name city email=users.email ssn=users.ssn"),
    ("SELECT email AS name, name AS email FROM users", "name=users.email email"),
    ("SELECT public.users.email FROM users", "email=users.email"),
    ("SELECT u.b FROM users AS u(a, b)", "b"),
    ("SELECT u.d FROM users AS u(a, b, c, d)", "d=users.email"),
    ("SELECT email::text, email::pg_catalog.text AS e FROM users", "email=users.email e=users.email"),
    ("SELECT q.e FROM (SELECT email AS e FROM users) q", "e=users.email"),
    ("SELECT q.x FROM (SELECT id, email FROM users) AS q(y, x)", "x=users.email"),
    ("SELECT count(*) FROM users", "count"),
    ("SELECT city, count(*) AS n, max(id) FROM users GROUP BY city HAVING count(*) > 1 ORDER BY n", "city n max"),
    ("SELECT name FROM users WHERE city = 'Oslo' ORDER BY name LIMIT 3", "name"),
    ("SELECT u.id, u.email, count(*) FROM users u JOIN orders o ON o.user_id = u.id GROUP BY u.id", "id email=users.email count"),
    ("SELECT DISTINCT city FROM users", "city"),
    ("SELECT DISTINCT ON (city) city, email FROM users ORDER BY city, id", "city email=users.email"),
    ("SELECT 1 FROM users WHERE EXISTS (SELECT email FROM users)", "?column?"),
    ("SELECT exists(SELECT * FROM users WHERE id = 3) AS there", "there"),
    ("SELECT (SELECT email FROM users u WHERE u.id = o.user_id) FROM orders o", "email=users.email"),
    ("SELECT (SELECT e FROM (SELECT email AS e FROM users) q LIMIT 1) AS one", "one=users.email"),
    ("WITH a AS (SELECT id, email e FROM users), b AS (SELECT * FROM a) SELECT b.e FROM b", "e=users.email"),
    ("WITH users AS (SELECT email AS id FROM users) SELECT id FROM users", "id=users.email"),
    ("WITH users AS (SELECT 1 AS email) SELECT email FROM users, public.users u", "email=users.email"),
    ("WITH users AS (SELECT 1 AS email) SELECT users.email FROM users, public.orders u", "email"),
    (("WITH RECURSIVE t(i, m) AS (SELECT id, email FROM users WHERE id = 1 UNION ALL SELECT u.id, u.email FROM users u JOIN t "
     "ON t.i + 1 = u.id) SELECT * FROM t"), "i m=users.email"),
    ("WITH RECURSIVE t AS (SELECT id, email FROM users UNION ALL SELECT id + 1, email FROM t WHERE id < 9) SELECT email FROM t",
     "email=users.email"),
    ("WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT email FROM users) SELECT * FROM a", "email=users.email"),
    (("WITH RECURSIVE t AS (SELECT id, email FROM users UNION ALL SELECT id + 1, email FROM t) SEARCH DEPTH FIRST BY id SET o "
     "CYCLE id SET c USING p SELECT * FROM t"), "id email=users.email o c p"),
    ("SELECT x.e FROM users u, LATERAL (SELECT u.email AS e) x", "e=users.email"),
    ("SELECT x.e FROM users u CROSS JOIN LATERAL (SELECT u.email AS e FROM orders o WHERE o.user_id = u.id) x", "e=users.email"),
    ("SELECT a.id, b.email FROM users a LEFT JOIN users b ON a.id = b.id", "id email=users.email"),
    ("SELECT * FROM users NATURAL JOIN places", "id city name email=users.email ssn=users.ssn"),
    ("SELECT * FROM orders JOIN users USING (id)", ("id user_id total note card=orders.card name city email=users.email "
     "ssn=users.ssn")),
    ("SELECT j.c4 FROM (users JOIN orders ON true) AS j(c1, c2, c3, c4)", "c4=users.email"),
    ("SELECT k.id FROM orders JOIN users USING (id) AS k", "id"),
    ("SELECT email FROM users UNION ALL SELECT card FROM orders", "email=users.email+orders.card"),
    ("SELECT id FROM users UNION SELECT id FROM orders ORDER BY id", "id"),
    ("SELECT row_number() OVER w, email FROM users WINDOW w AS (PARTITION BY city ORDER BY id)", "row_number email=users.email"),
    ("SELECT sum(total) OVER (ORDER BY id), card FROM orders", "sum card=orders.card"),
    ("SELECT u.id, g FROM users u, generate_series(1, 3) g", "id g"),
    ("SELECT * FROM users u, unnest(ARRAY[1]) WITH ORDINALITY AS g(v, o)", "id name city email=users.email ssn=users.ssn v o"),
    ("SELECT u.id, j.* FROM users u, jsonb_each('{}') j", "id key value"),
    ("SELECT u.id, j.* FROM users u, jsonb_populate_record(NULL::orders, '{}') j", "id *"),
    ("SELECT u.id, g.* FROM users u, ROWS FROM (generate_series(1, 2), jsonb_each('{}')) WITH ORDINALITY g",
     "id generate_series key value ordinality"),
    ("SELECT g.* FROM users u, unnest(ARRAY[1], ARRAY['x']) AS g(n)", "n unnest"),
    ("SELECT g.* FROM users u, json_array_elements('[]') AS g", "value"),
    ("SELECT g.* FROM users u, ROWS FROM (jsonb_to_record('{}') AS (a int, b text), now()) AS g", "a b now"),
    ("SELECT email FROM users, LATERAL (SELECT email FROM jsonb_each('{}')) x LIMIT 1", "email=users.email"),
    ("SELECT name, city FROM users GROUP BY ROLLUP ((name, city), id)", "name city"),
    ("SELECT q.ctid FROM (SELECT 1 AS ctid) q, users", "ctid"),
    ("SELECT u.email, t.a FROM users u, jsonb_to_record('{}') AS t(a int)", "email=users.email a"),
    ("SELECT u.email, t.x FROM users u, json_table('{}'::jsonb, '$' COLUMNS (x int)) AS t", "email=users.email x"),
    ("SELECT id, xmin, tableoid FROM users", "id xmin tableoid"),
    ("SELECT p.id, p.ctid FROM places p JOIN users u ON u.id = p.id", "id ctid"),
    ("SELECT email FROM users TABLESAMPLE system (5) REPEATABLE (1)", "email=users.email"),
    ("SELECT email FROM ONLY users", "email=users.email"),
    ("SELECT ip FROM events", "ip=events.ip"),
    ("SELECT id, email FROM users FOR UPDATE", "id email=users.email"),
    ("SELECT left(name, 1) AS email, count(*) FROM users GROUP BY 1 ORDER BY email", "email count"),
    ("SELECT q.coalesce FROM (SELECT coalesce(name, 'x') FROM users) q", "coalesce"),
    ("SELECT q.name FROM (SELECT name::varchar FROM users) q ORDER BY name", "name"),
    ("SELECT id FROM orders", "id"),
    ("SELECT id FROM places", "free"),
    ("SELECT * FROM pg_class", "free"),
    # What a mask leaves as it is: whether there is a value.
    ("SELECT count(email) FROM users WHERE email IS NOT NULL", "count"),
    ("SELECT count(u.email) FILTER (WHERE city IS NULL) OVER (PARTITION BY city) FROM users u", "count"),
    ("SELECT CASE WHEN email IS NULL THEN 'none' ELSE 'some' END AS has FROM users ORDER BY email IS NULL", "has"),
    # Views
    ("SELECT * FROM contacts", "id name mail=users.email"),
    ("SELECT c.mail FROM contacts c WHERE c.id = 3", "mail=users.email"),
    ("SELECT mail FROM contacts2", "mail=users.email"),
    ("SELECT email FROM kept", "email=users.email"),
    ("SELECT * FROM cities", "city n"),
    ("SELECT id FROM lowered", "id"),
    ("SELECT * FROM marked_low", "id low=marked_low.low"),
    ("SELECT * FROM twice", "id mail=users.email+twice.mail"),
    # Writes
    ("UPDATE users SET email = 'x' WHERE id = 1 RETURNING id, email", "id email=users.email"),
    ("UPDATE users u SET name = o.note FROM orders o WHERE o.user_id = u.id RETURNING *",
     "id name city email=users.email ssn=users.ssn id user_id total note card=orders.card"),
    ("UPDATE users SET email = DEFAULT, (name, city) = ROW('a', 'b') WHERE id = 1", ""),
    ("INSERT INTO users (id, email) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING users.*",
     "id name city email=users.email ssn=users.ssn"),
    ("INSERT INTO users (id, email) SELECT id, note FROM orders RETURNING email", "email=users.email"),
    ("DELETE FROM users u USING orders o WHERE o.user_id = u.id RETURNING u.email, o.note", "email=users.email note"),
    ("UPDATE users SET name = 'x' WHERE id = 1 RETURNING old.email, new.email AS now", "email=users.email now=users.email"),
    ("UPDATE users SET name = 'x' WHERE id = 1 RETURNING WITH (OLD AS o) o.*", "id name city email=users.email ssn=users.ssn"),
    (("MERGE INTO users u USING orders o ON u.id = o.user_id WHEN MATCHED AND o.total > 5 THEN UPDATE SET name = o.note "
     "WHEN NOT MATCHED THEN INSERT (id, email) VALUES (o.id, 'x') RETURNING u.email"), "email=users.email"),
    ("WITH d AS (DELETE FROM users WHERE id = 1 RETURNING email) SELECT * FROM d", "email=users.email"),
    ("TRUNCATE users", ""),
    ("DROP TABLE users", ""),
    ("COMMENT ON COLUMN users.email IS 'x'", ""),
    ("CREATE TABLE t AS SELECT id, name FROM users", ""),
    ("EXPLAIN SELECT email FROM users WHERE id = 3", ""),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "expected"), PLAIN)
def test_marked_columns_show_plainly(sql: str, expected: str) -> None:
    assert lineage(sql) == expected


REFUSED = [
    ("SELECT lower(email) FROM users", "select list"),
    ("SELECT email || 'x' FROM users", "select list"),
    ("SELECT ssn::date FROM users", "select list"),
    ("SELECT email COLLATE \"C\" FROM users", "select list"),
    ("SELECT (email) = 'x' FROM users", "select list"),
    ("SELECT coalesce(email, name) FROM users", "select list"),
    ("SELECT CASE email WHEN 'x' THEN 1 END FROM users", "select list"),
    ("SELECT ARRAY[email] FROM users", "select list"),
    ("SELECT ROW(email) FROM users", "select list"),
    ("SELECT max(email) FROM users", "select list"),
    ("SELECT count(DISTINCT email) FROM users", "select list"),
    ("SELECT count(ssn) FROM users", "select list"),
    ("SELECT ssn IS NULL FROM users", "select list"),
    ("SELECT count(*) FILTER (WHERE email LIKE '%x') FROM users", "select list"),
    ("SELECT string_agg(name, ',' ORDER BY email) FROM users", "select list"),
    ("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY email) FROM users", "select list"),
    ("SELECT lag(email) OVER (ORDER BY id) FROM users", "select list"),
    ("SELECT rank() OVER (ORDER BY email) FROM users", "select list"),
    ("SELECT rank() OVER w FROM users WINDOW w AS (PARTITION BY email)", "WINDOW"),
    ("SELECT xmlforest(email) FROM users", "select list"),
    ("SELECT json_object('a': email) FROM users", "select list"),
    ("SELECT json_arrayagg(email) FROM users", "select list"),
    ("SELECT ARRAY(SELECT email FROM users)", "select list"),
    ("SELECT (SELECT max(email) FROM users)", "select list"),
    ("SELECT (SELECT email FROM users LIMIT 1)::text || 'x'", "select list"),
    ("SELECT id, ctid FROM users", "tells how long"),
    ("SELECT max(u.ctid) FROM users u", "tells how long"),
    ("DELETE FROM users WHERE ctid > '(9,9)'", "tells how long"),
    ("SELECT 1 FROM users WHERE email = 'x'", "WHERE"),
    ("SELECT 1 FROM users WHERE id = 1 AND (name = 'x' OR NOT email LIKE 'y%')", "WHERE"),
    ("SELECT 1 FROM users WHERE (id, email) = (1, 'x')", "WHERE"),
    ("SELECT 1 FROM users WHERE 'x' IN (SELECT email FROM users)", "WHERE"),
    ("SELECT 1 FROM users WHERE email IN (SELECT note FROM orders)", "WHERE"),
    ("SELECT 1 FROM users WHERE 'x' = ANY (SELECT mail FROM contacts)", "WHERE"),
    ("SELECT 1 FROM orders o WHERE EXISTS (SELECT FROM users WHERE email = o.note)", "WHERE"),
    ("SELECT 1 FROM orders o WHERE EXISTS (SELECT 1 FROM users GROUP BY city HAVING max(email) > o.note)", "HAVING"),
    ("SELECT 1 FROM users u WHERE EXISTS (SELECT 1 FROM orders WHERE note = u.email)", "WHERE"),
    ("SELECT 1 FROM users u WHERE EXISTS (SELECT 1 FROM orders WHERE note = email)", "WHERE"),
    ("SELECT 1 FROM users a JOIN users b ON a.email = b.email", "JOIN … ON"),
    ("SELECT 1 FROM users a JOIN users b USING (email)", "JOIN … USING"),
    ("SELECT 1 FROM users NATURAL JOIN app.parts", "NATURAL JOIN"),
    ("SELECT 1 FROM users a NATURAL LEFT JOIN (SELECT id, email FROM users) b", "NATURAL JOIN"),
    ("SELECT email, count(*) FROM users GROUP BY email", "GROUP BY"),
    ("SELECT email, count(*) FROM users GROUP BY 1", "GROUP BY"),
    ("SELECT email AS e, count(*) FROM users GROUP BY e", "GROUP BY"),
    ("SELECT left(name, 1) AS email, count(*) FROM users GROUP BY email", "GROUP BY"),
    ("SELECT count(*) FROM users GROUP BY ROLLUP (city, email)", "GROUP BY"),
    ("SELECT count(*) FROM users GROUP BY GROUPING SETS ((city), (lower(email)))", "GROUP BY"),
    ("SELECT city FROM users GROUP BY city HAVING min(email) > 'a'", "HAVING"),
    ("SELECT id FROM users ORDER BY email", "ORDER BY"),
    ("SELECT id, email FROM users ORDER BY 2", "ORDER BY"),
    ("SELECT id, email AS e FROM users ORDER BY e DESC LIMIT 1", "ORDER BY"),
    ("SELECT id FROM users ORDER BY lower(email)", "ORDER BY"),
    ("SELECT q.id FROM (SELECT * FROM users) q ORDER BY q.email", "ORDER BY"),
    ("SELECT DISTINCT email FROM users", "SELECT DISTINCT"),
    ("SELECT DISTINCT * FROM contacts", "SELECT DISTINCT"),
    ("SELECT DISTINCT ON (email) id FROM users", "DISTINCT ON"),
    ("SELECT DISTINCT ON (2) id, email FROM users", "DISTINCT ON"),
    ("SELECT 1 FROM orders LIMIT (SELECT length(email) FROM users LIMIT 1)", "select list"),
    ("SELECT 1 FROM orders LIMIT (SELECT email FROM users LIMIT 1)::int", "LIMIT"),
    ("SELECT email FROM users UNION SELECT card FROM orders", "UNION without ALL"),
    ("SELECT email FROM users INTERSECT ALL SELECT card FROM orders", "INTERSECT"),
    ("SELECT note FROM orders EXCEPT SELECT email FROM users", "EXCEPT"),
    ("SELECT email FROM users UNION ALL SELECT note FROM orders", "UNION ALL"),
    ("SELECT email FROM users UNION ALL SELECT ssn FROM users", "UNION ALL"),
    ("(SELECT id, email FROM users UNION ALL SELECT id, card FROM orders) ORDER BY email", "ORDER BY"),
    ("WITH RECURSIVE t(i, m) AS (SELECT 1, 'x' UNION ALL SELECT i + 1, email FROM users, t) SELECT m FROM t", "UNION ALL"),
    ("WITH RECURSIVE t AS (SELECT id, email FROM users UNION SELECT id, email FROM t) SELECT 1 FROM t", "UNION without ALL"),
    ("WITH RECURSIVE t AS (SELECT id, email FROM users UNION ALL SELECT id, email FROM t) CYCLE email SET c USING p SELECT 1",
     "CYCLE"),
    (("WITH RECURSIVE t AS (SELECT id, email FROM users UNION ALL SELECT id, email FROM t) SEARCH DEPTH FIRST BY email SET o "
     "SELECT o FROM t"), "SEARCH"),
    ("WITH unused AS (SELECT 1 FROM users WHERE email = 'x') SELECT 1", "WHERE"),
    ("WITH d AS (DELETE FROM users WHERE email = 'x') SELECT 1", "WHERE"),
    ("VALUES ((SELECT email FROM users LIMIT 1))", "VALUES"),
    ("SELECT x FROM users u, unnest(ARRAY[u.email]) x", "function in FROM"),
    ("SELECT x.e FROM users u, LATERAL (VALUES (u.email)) x(e)", "VALUES"),
    ("SELECT 1 FROM users u, jsonb_each(to_jsonb(u))", "whole row"),
    ("SELECT u FROM users u", "whole row"),
    ("SELECT users FROM users", "whole row"),
    ("SELECT q FROM (SELECT email FROM users) q", "whole row"),
    ("SELECT count(u) FROM users u", "whole row"),
    ("SELECT count(u.*) FROM users u", "select list"),
    ("SELECT ROW(u.*) FROM users u", "select list"),
    ("SELECT (u).email FROM users u", "whole row"),
    ("SELECT (u).id FROM users u", "whole row"),
    ("SELECT (u.*).id FROM users u", "select list"),
    ("SELECT u.row_to_json FROM users u", "whole row"),
    ("SELECT u::text FROM users u", "whole row"),
    ("SELECT 1 FROM users u WHERE u IS NULL", "whole row"),
    ("SELECT 1 FROM users a, users b WHERE a = b", "whole row"),
    ("SELECT j FROM (users JOIN orders ON true) AS j", "whole row"),
    ("SELECT emial FROM users", "not known as a column"),
    ("SELECT u.emial FROM users u", "whole row"),
    ("SELECT v.email FROM users u", "not known as a column"),
    ("SELECT * FROM users, jsonb_populate_record(NULL::orders, '{}')", "name the columns"),
    ("SELECT ssn, city, count(*) FROM users GROUP BY (1, 2)", "GROUP BY"),
    ("SELECT ssn AS s, count(*) FROM users GROUP BY CUBE ((s, city))", "GROUP BY"),
    ("SELECT (SELECT ctid FROM users LIMIT 1) FROM (SELECT 1 AS ctid) q", "tells how long"),
    ("SELECT q.xmin FROM (SELECT * FROM users) q", "whole row"),
    (("SELECT (SELECT email FROM generate_series(1, 2) AS email), (SELECT email FROM unnest(id) AS email) FROM users"),
     "cannot be told"),
    ("SELECT * FROM missing", "not known here yet"),
    ("SELECT email FROM users, LATERAL (SELECT email FROM jsonb_populate_record(NULL::orders, '{}')) x", "cannot be told"),
    ("SELECT * FROM lowered", "made of masked columns"),
    ("SELECT low FROM lowered WHERE id = 3", "made of masked columns"),
    ("SELECT id FROM lowered ORDER BY low", "made of masked columns"),
    ("SELECT id FROM matching", "view public.matching uses masked columns"),
    ("SELECT id FROM lost", "cannot be read"),
    ("SELECT id FROM circle", "uses masked columns"),
    ("SELECT most_common_vals FROM pg_stats", "shows values of other tables"),
    ("INSERT INTO orders (note) SELECT email FROM users", "INSERT … SELECT"),
    ("INSERT INTO users (id, email) SELECT id, email FROM users", "INSERT … SELECT"),
    ("INSERT INTO users (id) VALUES (1) ON CONFLICT (email) DO NOTHING", "ON CONFLICT"),
    ("INSERT INTO users (id) VALUES (1) ON CONFLICT (lower(email)) DO NOTHING", "ON CONFLICT"),
    ("INSERT INTO users (id) VALUES (1) ON CONFLICT DO NOTHING", "ON CONFLICT without columns"),
    ("INSERT INTO users (id) VALUES (1) ON CONFLICT ON CONSTRAINT users_pkey DO NOTHING", "ON CONFLICT without columns"),
    ("INSERT INTO users (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET name = users.email", "DO UPDATE"),
    ("INSERT INTO users (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET name = 'x' WHERE users.email = 'y'", "DO UPDATE"),
    ("INSERT INTO users (id) VALUES (1) RETURNING length(email)", "select list"),
    ("UPDATE users SET name = email WHERE id = 1", "SET"),
    ("UPDATE users SET email = email || 'x' WHERE id = 1", "SET"),
    ("UPDATE users SET (name, city) = (SELECT email, ssn FROM users WHERE id = 2) WHERE id = 1", "SET"),
    ("UPDATE users SET name = 'x' WHERE ssn = 'y'", "WHERE"),
    ("UPDATE orders SET note = 'x' FROM users u WHERE u.email = orders.note", "WHERE"),
    ("UPDATE users SET name = 'x' WHERE id = 1 RETURNING users", "whole row"),
    ("DELETE FROM users WHERE email LIKE 'a%'", "WHERE"),
    ("MERGE INTO users u USING orders o ON u.email = o.note WHEN MATCHED THEN DELETE", "MERGE … ON"),
    ("MERGE INTO users u USING orders o ON u.id = o.id WHEN MATCHED AND u.ssn = 'x' THEN DELETE", "MERGE … WHEN"),
    ("MERGE INTO orders o USING users u ON u.id = o.id WHEN MATCHED THEN UPDATE SET note = u.email", "MERGE … WHEN"),
    ("MERGE INTO orders o USING users u ON u.id = o.id WHEN NOT MATCHED THEN INSERT (note) VALUES (u.email)", "MERGE … WHEN"),
    ("CREATE TABLE t AS SELECT email FROM users", "copied by CREATE TABLE AS"),
    ("SELECT email INTO t FROM users", "copied by SELECT INTO"),
    ("CREATE MATERIALIZED VIEW t AS SELECT email FROM users", "copied by CREATE MATERIALIZED VIEW"),
    ("CREATE VIEW t AS SELECT id FROM users", "out of the reach"),
    ("CREATE INDEX ON users (email)", "out of the reach"),
    ("ALTER TABLE users RENAME COLUMN email TO mail", "out of the reach"),
    ("CREATE TABLE t (LIKE users)", "out of the reach"),
    ("EXPLAIN SELECT 1 FROM users WHERE email = 'x'", "WHERE"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "why"), REFUSED)
def test_any_other_use_is_refused(sql: str, why: str) -> None:
    found = lineage(sql)
    assert found.startswith("refused: "), found
    assert why in found


def test_masks_of_a_view_and_of_its_table_meet() -> None:
    of = marks()
    statement = analyze("SELECT mail FROM twice")
    assert isinstance(statement, Statement)
    [column] = columns_of(statement, of)
    assert column.source == Plain(("public.users.email", "public.twice.mail"), "text", HIDDEN)


def test_a_count_of_the_users_own_is_no_count() -> None:
    own = Function(30000, "public", "count", "immutable", False, "sql", None, 1, "aggregate")
    assert lineage("SELECT count(email) FROM users") == "count"
    assert lineage("SELECT count(email) FROM users", marks(own)).startswith("refused")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM users WHERE " + "(" * 300 + "id = 1" + ")" * 300,
        "SELECT * FROM " + "(SELECT *, * FROM " * 30 + "users" + ") q" * 30,
        "SELECT 1 FROM users u" + "".join(f" JOIN users u{n} ON u{n}.id = u.id" for n in range(200)),
        " UNION ALL ".join(["SELECT id FROM users"] * 150),
        "SELECT " + "(SELECT " * 60 + "email" + ")" * 60 + " FROM users",
        "SELECT " + " || ".join(["name"] * 150) + " FROM users",
    ],
    ids=["brackets", "doubling stars", "joins", "arms", "subqueries", "operators"],
)
def test_large_and_deep_statements_get_an_answer(sql: str) -> None:
    lineage(sql)


def test_a_function_of_a_user_hides_what_a_built_in_one_is_known_to_give() -> None:
    sql = "SELECT id, (SELECT email FROM jsonb_each('{}') AS x LIMIT 1) FROM users"
    assert lineage(sql) == "id email=users.email"
    overload = Function(30000, "public", "jsonb_each", "immutable", False, "sql", None, 1)
    assert "cannot be told" in lineage(sql, marks(overload))
    assert lineage(sql.replace("jsonb_each", "pg_catalog.jsonb_each"), marks(overload)) == "id email=users.email"
    assert "cannot be told" in lineage(sql.replace("jsonb_each", "public.jsonb_each"), marks(overload))
