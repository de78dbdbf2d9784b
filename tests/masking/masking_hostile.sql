-- Tables whose masked columns hold one canary a row, of every family of types, and everything that could carry one out of there.
-- masking_canaries.py fills them. Masks: HIDING in the same file.

CREATE TYPE address AS (street text, number int);
CREATE TABLE jobs (id int PRIMARY KEY, title text);
CREATE TABLE people (
    id int PRIMARY KEY, name text NOT NULL, city text, active boolean NOT NULL DEFAULT true, job int REFERENCES jobs,
    mail text NOT NULL, phone varchar(60), code char(40), pin int NOT NULL, salary numeric(20,2), score float8, born date, seen timestamptz,
    profile jsonb, doc json, raw bytea, tags text[], home address, span numrange, token uuid, ip inet, spot point, note money, words tsvector,
    shout text GENERATED ALWAYS AS (upper(mail)) STORED,
    CHECK (city <> 'forbidden'), CHECK (pin > 0)
);
ALTER TABLE people ADD COLUMN old text DEFAULT '{old}';
ALTER TABLE people ALTER COLUMN old DROP DEFAULT;
CREATE UNIQUE INDEX people_mail ON people (mail);
CREATE INDEX people_lower ON people (lower(phone));
CREATE INDEX people_pin ON people (pin) INCLUDE (city);
CREATE INDEX people_some ON people (city) WHERE pin > {pin};
CREATE UNIQUE INDEX people_name_of_pin ON people (name) WHERE pin > {pin};
CREATE STATISTICS people_pairs (dependencies, mcv, ndistinct) ON city, mail FROM people;

-- writes to `jobs` reach these by foreign keys, writes to `desks` by a trigger, writes to `inbox` by a rule
CREATE TABLE posts (id int PRIMARY KEY, job int NOT NULL REFERENCES jobs ON UPDATE CASCADE ON DELETE SET NULL, secret text, CHECK (job < 1000));
CREATE TABLE desks (id int PRIMARY KEY, owner int);
CREATE FUNCTION about_owner() RETURNS trigger LANGUAGE plpgsql AS $$DECLARE found text; BEGIN
    SELECT mail INTO found FROM people WHERE id = NEW.owner;
    RAISE NOTICE 'owner is %', found;
    IF NEW.id > 100 THEN RAISE EXCEPTION 'no desk for %', found; END IF;
    IF NEW.id > 50 THEN RAISE insufficient_privilege USING MESSAGE = 'no desk for ' || found, HINT = 'ask ' || found; END IF;
    IF NEW.id > 40 THEN EXECUTE 'SELECT ' || quote_ident(found); END IF;
    IF NEW.id > 30 THEN PERFORM found::regclass; END IF;
    IF NEW.id > 20 THEN PERFORM found::int; END IF;
    RETURN NEW;
END$$;
CREATE TRIGGER about_owner BEFORE INSERT OR UPDATE ON desks FOR EACH ROW EXECUTE FUNCTION about_owner();
CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    IF NEW.city = 'nowhere' THEN RAISE EXCEPTION 'cannot move %', OLD.mail; END IF;
    IF NEW.city = 'closed' THEN RAISE insufficient_privilege USING MESSAGE = 'cannot move ' || OLD.mail, HINT = OLD.mail; END IF;
    IF NEW.city = 'run' THEN EXECUTE 'SELECT ' || quote_ident(OLD.mail); END IF;
    RETURN NEW;
END$$;
CREATE TRIGGER guard BEFORE UPDATE ON people FOR EACH ROW EXECUTE FUNCTION guard();
CREATE TABLE inbox (id int, body text);
CREATE RULE inbox_also AS ON INSERT TO inbox DO ALSO UPDATE people SET city = new.body WHERE id = new.id;

-- other ways to the same values
CREATE TABLE letters (id int PRIMARY KEY, person int, body text);
CREATE VIEW contacts AS SELECT id, name, mail AS address, pin FROM people;
CREATE VIEW contacts_again AS SELECT * FROM contacts;
CREATE VIEW rich AS SELECT id, name FROM people WHERE salary > {salary};
CREATE VIEW loud AS SELECT id, upper(mail) AS mail FROM people;
CREATE VIEW whole AS SELECT id, to_jsonb(people) AS j FROM people;
CREATE VIEW as_number AS SELECT id, mail::int AS n FROM people;
CREATE VIEW cities AS SELECT city, count(*) AS n, max(pin) AS top FROM people GROUP BY city;
CREATE VIEW barrier WITH (security_barrier) AS SELECT id, mail FROM people WHERE active;
CREATE VIEW joined AS SELECT p.id, p.mail, l.body FROM people p JOIN letters l ON l.body = p.mail;
CREATE VIEW by_with AS WITH q AS (SELECT id, mail AS m, city FROM people WHERE active) SELECT q.id, q.m, l.body FROM q JOIN letters l ON l.person = q.id;
CREATE VIEW one_kind AS SELECT id, mail FROM people UNION SELECT id, body FROM letters;
CREATE VIEW same_name AS SELECT p.id, q.mail, upper(q.mail) AS loud FROM people p JOIN (SELECT id, title AS mail FROM jobs) q ON q.id = p.job;
CREATE VIEW sorted AS SELECT id, name FROM people ORDER BY pin, mail;
CREATE MATERIALIZED VIEW kept AS SELECT id, name, mail, pin FROM people;
CREATE VIEW both_kinds AS SELECT id, mail FROM people UNION ALL SELECT id, mail FROM kept;
CREATE INDEX kept_pin ON kept (pin);
CREATE FUNCTION mail_of(int) RETURNS text LANGUAGE sql STABLE AS 'SELECT mail FROM people WHERE id = $1';
CREATE FUNCTION all_people() RETURNS SETOF people LANGUAGE sql STABLE AS 'SELECT * FROM people';
CREATE FUNCTION raised(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE COST 0.0001 AS $$BEGIN RAISE EXCEPTION 'seen: %', $1; END$$;
CREATE FUNCTION label(people) RETURNS text LANGUAGE sql STABLE AS 'SELECT $1.mail';
CREATE TABLE visits (id int NOT NULL, day date NOT NULL, who text) PARTITION BY RANGE (day);
CREATE TABLE visits_2024 PARTITION OF visits FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE beings (id int, label text); CREATE TABLE robots (serial text) INHERITS (beings);
