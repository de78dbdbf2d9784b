-- What the policy hides, in the first database.
BEGIN;
INSERT INTO secrets SELECT n, 'code ' || n, n * 5, '2024-01-01 00:00+00', jsonb_build_object('k', n), ROW('s', 'c', n)::addr, ARRAY['x'] FROM generate_series(1, 5) n;
INSERT INTO hr.people (name, salary, born, m) SELECT 'p' || n, n * 1000, '1990-01-01', 'ok' FROM generate_series(1, 5) n;
INSERT INTO hr.reviews SELECT n, n, 'words ' || n FROM generate_series(1, 4) n;
INSERT INTO events_2023 SELECT n, date '2023-02-01' + n, 'old', n FROM generate_series(1, 3) n;
INSERT INTO animals_rare VALUES (10, 'yeti', 1000);
COMMIT;
REFRESH MATERIALIZED VIEW spy_kept;
ANALYZE;
