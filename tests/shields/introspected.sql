-- A database to be looked at: `hidden` and what belongs to it must not show, all else must. Every name that begins with secret_
-- and every number 424242 is told nowhere.
CREATE SCHEMA app;
CREATE TYPE mood AS ENUM ('glad', 'sad');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TABLE teams (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, mood mood DEFAULT 'glad');
COMMENT ON TABLE teams IS 'Who works with whom';
COMMENT ON COLUMN teams.name IS 'As on the door';
CREATE TABLE people (
    id serial PRIMARY KEY,
    team_id int NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    name text NOT NULL DEFAULT 'nobody',
    age positive CHECK (age < 200),
    size numeric(8, 2) CONSTRAINT size_fits CHECK (size BETWEEN 0 AND 300),
    born date,
    shout text GENERATED ALWAYS AS (upper(name)) STORED,
    CONSTRAINT people_named UNIQUE (team_id, name)
);
COMMENT ON CONSTRAINT size_fits ON people IS 'In centimetres';
CREATE INDEX people_lower ON people (lower(name)) WHERE age > 17;
CREATE INDEX people_born ON people USING brin (born);
CREATE STATISTICS people_both (dependencies) ON team_id, age FROM people;
CREATE VIEW app.grown AS SELECT id, name FROM people WHERE age > 17;
COMMENT ON VIEW app.grown IS 'Over seventeen';
CREATE MATERIALIZED VIEW app.counted AS SELECT team_id, count(*) AS n FROM people GROUP BY team_id;
CREATE INDEX counted_n ON app.counted (n);
CREATE TABLE events (at date NOT NULL, what text, id bigint) PARTITION BY RANGE (at);
CREATE TABLE events_2025 PARTITION OF events FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE events_2026 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE INDEX events_at ON events (at);
CREATE FUNCTION add(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + $2';
CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER people_touched BEFORE UPDATE ON people FOR EACH ROW WHEN (OLD.age IS DISTINCT FROM NEW.age) EXECUTE FUNCTION touched();
ALTER TABLE people ENABLE ROW LEVEL SECURITY;
CREATE POLICY people_seen ON people USING (age > 0);
CREATE RULE people_no_delete AS ON DELETE TO events WHERE OLD.id < 0 DO INSTEAD NOTHING;
CREATE SEQUENCE app.tickets START 7;
CREATE TABLE badges (person_id int REFERENCES people (id), code text, PRIMARY KEY (person_id, code));
CREATE TABLE app."Mixed Case" ("the Id" int PRIMARY KEY, at timestamptz DEFAULT now());

CREATE TABLE hidden (
    id serial PRIMARY KEY,
    person_id int CONSTRAINT secret_person REFERENCES people (id),
    code text DEFAULT 'secret_default' CONSTRAINT secret_check CHECK (code <> 'secret_constant'),
    amount numeric DEFAULT 424242,
    told text GENERATED ALWAYS AS (code || 'secret_generated') STORED,
    CONSTRAINT secret_unique UNIQUE (code)
);
ALTER INDEX hidden_pkey RENAME TO secret_pkey;
COMMENT ON TABLE hidden IS 'secret_table_comment';
COMMENT ON COLUMN hidden.code IS 'secret_column_comment';
COMMENT ON CONSTRAINT secret_check ON hidden IS 'secret_constraint_comment';
CREATE INDEX secret_index ON hidden ((code || 'secret_expression')) WHERE amount > 424242;
COMMENT ON INDEX secret_index IS 'secret_index_comment';
CREATE STATISTICS secret_statistics (mcv) ON person_id, code FROM hidden;
CREATE TRIGGER secret_trigger BEFORE UPDATE ON hidden FOR EACH ROW WHEN (NEW.code = 'secret_when') EXECUTE FUNCTION touched('secret_argument');
CREATE POLICY secret_policy ON hidden USING (code <> 'secret_qual') WITH CHECK (code <> 'secret_check_qual');
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
CREATE RULE secret_rule AS ON DELETE TO hidden WHERE OLD.code = 'secret_rule_qual' DO INSTEAD NOTHING;
ALTER TABLE hidden SET (fillfactor = 42);
ALTER TABLE hidden ALTER code SET STATISTICS 424;
CREATE VIEW over_hidden AS SELECT id, code FROM hidden WHERE code <> 'secret_view_constant';
CREATE MATERIALIZED VIEW kept_hidden AS SELECT id, code FROM hidden WHERE code <> 'secret_matview_constant';
CREATE INDEX secret_kept ON kept_hidden (code) WHERE code <> 'secret_kept_constant';
CREATE VIEW vouched WITH (security_barrier) AS SELECT id FROM hidden WHERE code <> 'secret_vouched_constant';
CREATE POLICY asks_hidden ON badges USING (EXISTS (SELECT FROM hidden WHERE code = 'secret_subquery'));
CREATE SEQUENCE hidden_amounts INCREMENT 424242 OWNED BY hidden.amount;
CREATE FUNCTION grabs() RETURNS text LANGUAGE sql STABLE SET work_mem = '4242kB' AS 'SELECT code || ''secret_source'' FROM hidden';
CREATE PUBLICATION told FOR TABLE people, hidden WHERE (id > 0);
INSERT INTO teams (name) VALUES ('red'), ('blue');
INSERT INTO people (team_id, name, age) SELECT 1 + n % 2, 'p' || n, 10 + n FROM generate_series(1, 50) AS n;
INSERT INTO hidden (person_id, code) SELECT 1 + n % 50, 'secret_value_' || n FROM generate_series(1, 3000) AS n;
ALTER TABLE hidden ADD COLUMN late text DEFAULT 'secret_missing';
REFRESH MATERIALIZED VIEW app.counted;
ANALYZE;
CREATE TABLE takes (what text);
