CREATE TABLE vault (id int PRIMARY KEY, value text NOT NULL, state text NOT NULL);
INSERT INTO vault VALUES (1, '11', 'Open'), (2, 'a secret', 'shut'), (3, '33', 'Open'), (4, '0', 'shut');
CREATE TABLE notes (id int PRIMARY KEY, body text NOT NULL);
INSERT INTO notes VALUES (1, 'one'), (2, 'two'), (3, 'three');
CREATE TABLE links (id int PRIMARY KEY, vault_id int REFERENCES vault (id), note_id int REFERENCES notes (id));
CREATE VIEW v AS SELECT id, value FROM vault WHERE lower(state) || '!' = 'open!';
CREATE VIEW v_barrier WITH (security_barrier) AS SELECT id, value FROM vault WHERE lower(state) || '!' = 'open!';
CREATE VIEW v_of_v AS SELECT id AS number, value AS word FROM v WHERE id < 10;
CREATE VIEW v_joined AS SELECT n.id, s.value FROM notes AS n JOIN vault AS s ON s.id = n.id AND n.body <> 'two';
CREATE VIEW v_unkeyed AS SELECT * FROM v;
CREATE VIEW v_notes AS SELECT id, body FROM notes WHERE id < 3;
-- Cheaper than any operator, so that PostgreSQL would run it before the view's own conditions. It tells by failing.
CREATE FUNCTION tells(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$
BEGIN
    IF $1 NOT IN ('11', '33') THEN RAISE EXCEPTION 'seen: %', $1; END IF;
    RETURN true;
END $$;
