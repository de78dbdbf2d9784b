-- What the policy hides, in the second database: other rows, other sizes, other statistics, another state of the sequence.
BEGIN;
INSERT INTO secrets SELECT n, 'other ' || n % 7 || repeat('y', 100), -n, '2025-01-01 00:00+00', NULL, NULL, NULL FROM generate_series(100, 900) n;
INSERT INTO hr.people (name, salary, born, m) SELECT 'q' || n, NULL, '1970-01-01', 'sad' FROM generate_series(1, 300) n;
INSERT INTO hr.reviews SELECT n % 12, -n, NULL FROM generate_series(1, 200) n;
INSERT INTO events_2023 SELECT -n, date '2023-03-01' + n % 90, 'older', NULL FROM generate_series(1, 400) n;
INSERT INTO animals_rare SELECT n, 'rare', n FROM generate_series(1, 300) n;
COMMIT;
REFRESH MATERIALIZED VIEW spy_kept;
SELECT setval('secrets_number', 4711);
ANALYZE;
