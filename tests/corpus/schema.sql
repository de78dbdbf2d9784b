-- The sample database of the corpus: a shop with one of everything that a statement could reach a hidden table through.
-- Additions are welcome; what is here stays as it is, for rows of the corpus and their effects rest on it.

CREATE SCHEMA sales; CREATE SCHEMA vault; CREATE SCHEMA archive; CREATE SCHEMA tpch; CREATE SCHEMA "Strange";

-- the shop: open under every policy but `closed`, which opens products alone
CREATE TABLE customers (
    id serial PRIMARY KEY, name text NOT NULL, email text UNIQUE, phone text, country char(2) DEFAULT 'DE', tags text[] DEFAULT '{}',
    info jsonb DEFAULT '{}', born date, active boolean DEFAULT true, created_at timestamptz NOT NULL DEFAULT '2024-01-01 00:00+00'
);
CREATE TABLE products (
    id serial PRIMARY KEY, name text NOT NULL, category text, price numeric(10,2) NOT NULL, stock int NOT NULL DEFAULT 0,
    attributes jsonb DEFAULT '{}', description text, search tsvector GENERATED ALWAYS AS (to_tsvector('english', coalesce(description, ''))) STORED
);
CREATE TABLE orders (
    id serial PRIMARY KEY, customer_id int REFERENCES customers, placed_at timestamptz NOT NULL DEFAULT '2024-02-01 00:00+00',
    status text NOT NULL DEFAULT 'new' CHECK (status IN ('new', 'paid', 'shipped', 'cancelled')), total numeric(12,2) NOT NULL DEFAULT 0,
    note text
);
CREATE TABLE order_items (
    order_id int REFERENCES orders, line int, product_id int REFERENCES products, quantity int NOT NULL CHECK (quantity > 0),
    price numeric(10,2) NOT NULL, PRIMARY KEY (order_id, line)
);
CREATE TABLE payments (id serial PRIMARY KEY, order_id int, amount numeric(12,2), method text, paid_at timestamptz);
CREATE TABLE employees (
    id int PRIMARY KEY, name text NOT NULL, manager_id int REFERENCES employees, department text, salary numeric(10,2), hired date
);
CREATE TABLE page_views (id bigserial PRIMARY KEY, session_id uuid, url text, referrer text, at timestamptz NOT NULL, duration_ms int);
CREATE TABLE sensors (id int PRIMARY KEY, name text, lat float8, lon float8, place point);
CREATE TABLE readings (sensor_id int, at timestamptz, value float8, quality smallint, PRIMARY KEY (sensor_id, at));
CREATE TABLE articles (id serial PRIMARY KEY, title text, body text, author text, published date, words int);
CREATE TABLE audit_log (id serial PRIMARY KEY, at timestamptz DEFAULT '2024-01-01 00:00+00', actor text, what text);
CREATE INDEX orders_by_customer ON orders (customer_id);
CREATE INDEX orders_open ON orders (placed_at) WHERE status <> 'cancelled';
CREATE INDEX customers_lower_email ON customers (lower(email));
CREATE INDEX products_search ON products USING gin (search);
CREATE SEQUENCE ticket_numbers;

-- hidden: no statement of an agent may learn anything from these under `hiding`
CREATE TABLE secrets (id serial PRIMARY KEY, name text UNIQUE, value text, weight int DEFAULT 1);
CREATE TABLE vault.keys (id int PRIMARY KEY, key text, owner text);
CREATE TABLE vault.cards (id int PRIMARY KEY, customer_id int, number text);
CREATE SEQUENCE vault.key_numbers OWNED BY vault.keys.id;
CREATE INDEX secrets_by_weight ON secrets (weight) WHERE value <> 'hunter2';
CREATE STATISTICS secrets_statistics (dependencies, mcv) ON weight, value FROM secrets;
ALTER TABLE secrets ADD COLUMN pin text DEFAULT 'pin-4711';

-- views
CREATE VIEW sales.recent_orders AS SELECT id, customer_id, total FROM orders WHERE status <> 'cancelled';
CREATE VIEW customer_names AS SELECT id, name FROM customers;
CREATE VIEW order_totals AS SELECT c.name, sum(o.total) AS total FROM customers c JOIN orders o ON o.customer_id = c.id GROUP BY c.name;
CREATE VIEW v_secrets AS SELECT name, value FROM secrets;
CREATE VIEW v_deep AS SELECT upper(value) AS value FROM v_secrets;
CREATE VIEW v_deeper AS WITH d AS (SELECT value FROM v_deep) SELECT * FROM d;
CREATE VIEW v_joined AS SELECT c.name, s.value FROM customers c JOIN secrets s ON s.id = c.id;
CREATE VIEW v_exists AS SELECT id FROM customers WHERE EXISTS (SELECT FROM secrets WHERE secrets.id = customers.id);
CREATE VIEW v_count AS SELECT name, (SELECT count(*) FROM secrets) AS n FROM customers;
CREATE VIEW v_union AS SELECT name FROM products UNION ALL SELECT key FROM vault.keys;
CREATE VIEW v_barrier WITH (security_barrier) AS SELECT value FROM secrets WHERE weight > 0;
CREATE VIEW v_invoker WITH (security_invoker) AS SELECT value FROM secrets;
CREATE VIEW v_opened AS SELECT count(*) AS n FROM secrets;
CREATE VIEW v_editable AS SELECT id, name, value FROM secrets WHERE weight > 0 WITH CHECK OPTION;
CREATE VIEW v_audit AS SELECT id, actor, what FROM audit_log;
CREATE VIEW v_activity AS SELECT pid, query FROM pg_stat_activity;
CREATE VIEW v_sizes AS SELECT relname, reltuples FROM pg_class;
CREATE VIEW v_passwords AS SELECT rolname, rolpassword FROM pg_authid;
CREATE VIEW archive.v_secrets AS SELECT * FROM secrets;
CREATE VIEW v_articles AS SELECT title, body FROM articles;
CREATE VIEW v_staff AS SELECT name, salary FROM employees;
CREATE VIEW v_headcount AS SELECT count(*) AS n FROM employees;
CREATE MATERIALIZED VIEW m_secrets AS SELECT name, value FROM secrets;
CREATE MATERIALIZED VIEW m_totals AS SELECT customer_id, sum(total) AS total FROM orders GROUP BY customer_id;
CREATE VIEW v_over_m AS SELECT value FROM m_secrets;

-- partitions and inheritance
CREATE TABLE events (id int, day date NOT NULL, kind text, payload jsonb) PARTITION BY RANGE (day);
CREATE TABLE events_2023 PARTITION OF events FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
CREATE TABLE events_2024 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE archive.events_2022 PARTITION OF events FOR VALUES FROM ('2022-01-01') TO ('2023-01-01');
CREATE TABLE hidden_parts (id int, region text, amount int) PARTITION BY LIST (region);
CREATE TABLE hidden_parts_eu PARTITION OF hidden_parts FOR VALUES IN ('eu');
CREATE TABLE hidden_parts_us PARTITION OF hidden_parts FOR VALUES IN ('us');
CREATE TABLE people (id int, name text);
CREATE TABLE agents (codename text) INHERITS (people);
CREATE TABLE visitors (badge int) INHERITS (people);

-- rules and triggers
CREATE TABLE inbox (id int, body text); CREATE TABLE inbox_log (id int, body text);
CREATE RULE inbox_also AS ON INSERT TO inbox DO ALSO INSERT INTO inbox_log VALUES (new.id, new.body);
CREATE TABLE dropbox (id int, body text);
CREATE RULE dropbox_instead AS ON INSERT TO dropbox DO INSTEAD UPDATE secrets SET value = new.body WHERE id = new.id;
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.note = 'stamped'; RETURN NEW; END$$;
CREATE VIEW order_entry AS SELECT id, total FROM orders;

-- functions, by what they do
CREATE FUNCTION peek() RETURNS text LANGUAGE sql STABLE AS 'SELECT value FROM secrets ORDER BY id LIMIT 1';
CREATE FUNCTION peek(int) RETURNS text LANGUAGE sql STABLE AS 'SELECT value FROM secrets WHERE id = $1';
CREATE FUNCTION peek(customers) RETURNS text LANGUAGE sql STABLE AS 'SELECT value FROM secrets WHERE id = $1.id';
CREATE FUNCTION all_secrets() RETURNS SETOF secrets LANGUAGE sql STABLE AS 'SELECT * FROM secrets';
CREATE FUNCTION grab() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT value FROM secrets ORDER BY id LIMIT 1';
CREATE FUNCTION liar(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN (SELECT value FROM secrets WHERE name = $1); END$$;
CREATE FUNCTION bump() RETURNS int LANGUAGE sql VOLATILE AS 'UPDATE products SET stock = stock + 1 WHERE id = 1 RETURNING stock';
CREATE FUNCTION bump(products) RETURNS int LANGUAGE sql VOLATILE AS 'UPDATE products SET stock = stock + 1 WHERE id = $1.id RETURNING stock';
CREATE FUNCTION run(text) RETURNS text LANGUAGE plpgsql AS $$DECLARE r text; BEGIN EXECUTE $1 INTO r; RETURN r; END$$;
CREATE FUNCTION first_article() RETURNS text LANGUAGE sql STABLE AS 'SELECT body FROM articles ORDER BY id LIMIT 1';
CREATE FUNCTION slug(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT lower(replace($1, ' ', '-'))$$;
CREATE FUNCTION sales.tax(numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 0.19';
CREATE FUNCTION order_count(int) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM orders WHERE customer_id = $1';
CREATE FUNCTION initcap(int) RETURNS text LANGUAGE sql VOLATILE AS 'SELECT value FROM secrets WHERE id = $1';
CREATE PROCEDURE wipe() LANGUAGE sql AS 'DELETE FROM audit_log';
CREATE AGGREGATE plain_sum(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0');
CREATE FUNCTION spy_step(text, int) RETURNS text LANGUAGE sql VOLATILE AS 'SELECT max(value) FROM secrets WHERE id >= $2';
CREATE AGGREGATE spy(int) (SFUNC = spy_step, STYPE = text);
CREATE FUNCTION loud(int, text) RETURNS text LANGUAGE sql VOLATILE AS 'SELECT $2 || value FROM secrets WHERE id = $1';
CREATE OPERATOR ~~> (LEFTARG = int, RIGHTARG = text, FUNCTION = loud);
CREATE FUNCTION loud_prefix(text) RETURNS text LANGUAGE sql VOLATILE AS 'SELECT value FROM secrets WHERE name = $1';
CREATE OPERATOR !! (RIGHTARG = text, FUNCTION = loud_prefix);
CREATE OPERATOR sales.<~ (LEFTARG = int, RIGHTARG = text, FUNCTION = loud);
CREATE FUNCTION same_secret(text, int) RETURNS boolean LANGUAGE sql VOLATILE AS 'SELECT EXISTS (SELECT FROM secrets WHERE value = $1 AND id = $2)';
CREATE OPERATOR sales.= (LEFTARG = text, RIGHTARG = int, FUNCTION = same_secret);

-- types whose conversions look into secrets
CREATE FUNCTION is_secret(text) RETURNS boolean LANGUAGE sql VOLATILE AS 'SELECT EXISTS (SELECT FROM secrets WHERE value = $1)';
CREATE DOMAIN guess AS text CHECK (is_secret(VALUE));
CREATE DOMAIN short AS text CHECK (length(VALUE) < 9);
CREATE DOMAIN email_address AS text CHECK (VALUE ~ '@');
CREATE TYPE mood AS ENUM ('ok', 'sad');
CREATE TYPE coin AS (metal text, grams int);
CREATE TYPE guessed AS (a int, g guess);
CREATE TYPE price_range AS RANGE (subtype = numeric);
CREATE TABLE typed (id int, m mood DEFAULT 'ok', c coin, p price_range, s short);
CREATE TABLE guesses (id int, g guess, gs guess[]);
CREATE TYPE weight AS (grams int);
CREATE FUNCTION weight_price(weight) RETURNS money LANGUAGE sql VOLATILE AS 'SELECT length(value)::numeric::money FROM secrets WHERE id = ($1).grams';
CREATE CAST (weight AS money) WITH FUNCTION weight_price(weight);
CREATE TABLE weights (id int, w weight);
CREATE TYPE soft AS (n int);
CREATE FUNCTION soft_box(soft) RETURNS box LANGUAGE sql VOLATILE AS 'SELECT box(point(0, 0), point(length(value), 1)) FROM secrets WHERE id = ($1).n';
CREATE CAST (soft AS box) WITH FUNCTION soft_box(soft) AS IMPLICIT;
CREATE TYPE guess_range AS RANGE (subtype = guess);
CREATE TABLE softs (id int, s soft); CREATE TABLE ranged (id int, r guess_range, gg guessed);
CREATE VIEW soft_view AS SELECT id, s FROM softs;

-- names that need quotes
CREATE TABLE "Strange"."Mixed Case" (id int, "select" text);
CREATE TABLE "Secrets" (id int, value text);
CREATE TABLE "geheim ü" (id int, wert text);
CREATE TABLE "a.b" (id int);
CREATE TABLE "quo""te" (id int);

-- foreign table (its server answers nothing), row security, large object, roles, a function in a language of its own
CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER elsewhere FOREIGN DATA WRAPPER nowhere OPTIONS (host 'db.internal', dbname 'hr');
CREATE USER MAPPING FOR postgres SERVER elsewhere OPTIONS (password 'mapped-password');
CREATE FOREIGN TABLE remote_staff (id int, name text) SERVER elsewhere OPTIONS (table_name 'staff');
CREATE TABLE private_notes (id int, owner text, note text);
ALTER TABLE private_notes ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_notes ON private_notes USING (owner = current_user);
SELECT lo_from_bytea(424242, 'large-object-secret');

-- an analyst's warehouse, in the shape of TPC-H
CREATE TABLE tpch.region (r_regionkey int PRIMARY KEY, r_name text, r_comment text);
CREATE TABLE tpch.nation (n_nationkey int PRIMARY KEY, n_name text, n_regionkey int, n_comment text);
CREATE TABLE tpch.supplier (s_suppkey int PRIMARY KEY, s_name text, s_address text, s_nationkey int, s_phone text, s_acctbal numeric, s_comment text);
CREATE TABLE tpch.customer (
    c_custkey int PRIMARY KEY, c_name text, c_address text, c_nationkey int, c_phone text, c_acctbal numeric, c_mktsegment text, c_comment text
);
CREATE TABLE tpch.part (
    p_partkey int PRIMARY KEY, p_name text, p_mfgr text, p_brand text, p_type text, p_size int, p_container text, p_retailprice numeric, p_comment text
);
CREATE TABLE tpch.partsupp (ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost numeric, ps_comment text, PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE tpch.orders (
    o_orderkey int PRIMARY KEY, o_custkey int, o_orderstatus char(1), o_totalprice numeric, o_orderdate date, o_orderpriority text, o_clerk text,
    o_shippriority int, o_comment text
);
CREATE TABLE tpch.lineitem (
    l_orderkey int, l_partkey int, l_suppkey int, l_linenumber int, l_quantity numeric, l_extendedprice numeric, l_discount numeric, l_tax numeric,
    l_returnflag char(1), l_linestatus char(1), l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct text, l_shipmode text,
    l_comment text, PRIMARY KEY (l_orderkey, l_linenumber)
);

-- rows
INSERT INTO customers (name, email, born, tags, info) VALUES
    ('Ada', 'ada@example.org', '1985-12-10', '{vip,early}', '{"plan": "gold", "logins": [1, 2]}'),
    ('Grace', 'grace@example.org', '1976-12-09', '{vip}', '{"plan": "free"}'), ('Linus', 'linus@example.org', NULL, '{}', '{}');
INSERT INTO products (name, category, price, stock, description) VALUES
    ('Lamp', 'home', 29.90, 5, 'A lamp for the desk'), ('Desk', 'home', 199.00, 2, 'A wooden desk'), ('Pen', 'office', 1.50, 900, 'Writes blue');
INSERT INTO orders (customer_id, status, total) VALUES (1, 'paid', 29.90), (1, 'new', 200.50), (2, 'shipped', 1.50);
INSERT INTO order_items VALUES (1, 1, 1, 1, 29.90), (2, 1, 2, 1, 199.00), (2, 2, 3, 1, 1.50), (3, 1, 3, 1, 1.50);
INSERT INTO payments (order_id, amount, method, paid_at) VALUES (1, 29.90, 'card', '2024-02-02 10:00+00');
INSERT INTO employees VALUES (1, 'Boss', NULL, 'board', 9000, '2010-01-01'), (2, 'Middle', 1, 'sales', 5000, '2015-01-01'),
    (3, 'Clerk', 2, 'sales', 3000, '2020-01-01');
INSERT INTO page_views (session_id, url, at, duration_ms) VALUES ('00000000-0000-0000-0000-000000000001', '/', '2024-02-01 00:00+00', 120);
INSERT INTO sensors VALUES (1, 'roof', 52.5, 13.4, '(52.5,13.4)'); INSERT INTO readings VALUES (1, '2024-02-01 00:00+00', 3.5, 1);
INSERT INTO articles (title, body, author, published, words) VALUES ('On lamps', 'Lamps shine.', 'Ada', '2024-01-05', 2);
INSERT INTO audit_log (actor, what) VALUES ('system', 'created');
INSERT INTO secrets (name, value, weight) VALUES ('root', 'hunter2', 1), ('api', 'sk-canary-1', 2), ('db', 'pg-canary-2', 3);
INSERT INTO vault.keys VALUES (1, 'key-canary', 'ops'); INSERT INTO vault.cards VALUES (1, 1, '4111-canary');
INSERT INTO events SELECT n, day, 'click', '{}' FROM (VALUES (1, date '2022-05-05'), (2, '2023-05-05'), (3, '2024-05-05')) AS e(n, day);
INSERT INTO hidden_parts VALUES (1, 'eu', 10), (2, 'us', 20);
INSERT INTO people VALUES (1, 'Anyone'); INSERT INTO agents VALUES (2, 'Bond', '007'); INSERT INTO visitors VALUES (3, 'Guest', 1);
INSERT INTO inbox_log VALUES (0, 'first'); INSERT INTO typed VALUES (1, 'ok', '(gold,5)', '[1,5)', 'x');
INSERT INTO guesses VALUES (1, 'hunter2', '{hunter2}'); INSERT INTO weights VALUES (1, ROW(1));
INSERT INTO softs VALUES (1, ROW(1)); INSERT INTO ranged VALUES (1, '[hunter2,hunter2]', '(1,hunter2)');
INSERT INTO "Strange"."Mixed Case" VALUES (1, 'x'); INSERT INTO "Secrets" VALUES (1, 'upper-canary'); INSERT INTO "geheim ü" VALUES (1, 'umlaut-canary');
INSERT INTO "a.b" VALUES (1); INSERT INTO "quo""te" VALUES (1); INSERT INTO private_notes VALUES (1, 'someone', 'note');
INSERT INTO tpch.region VALUES (0, 'EUROPE', ''); INSERT INTO tpch.nation VALUES (0, 'GERMANY', 0, '');
REFRESH MATERIALIZED VIEW m_secrets; REFRESH MATERIALIZED VIEW m_totals;
ANALYZE;
