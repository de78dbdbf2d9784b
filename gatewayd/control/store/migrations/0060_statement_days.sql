-- What was asked on a day, one row for each kind of statement, agent and answer: what a new policy is tried on. Days of receipt.

CREATE TABLE statement_days (
  project_id uuid NOT NULL,
  day integer NOT NULL,                   -- days since 1970, UTC
  kind bytea NOT NULL,                    -- digest of the five columns after it
  database_name text NOT NULL,
  fingerprint text NOT NULL,              -- '': not known
  agent_name text NOT NULL,
  decision text NOT NULL,                 -- ALLOW, DENY; WITHHELD: allowed, and then refused by a mask
  rule text NOT NULL,
  approved boolean NOT NULL,              -- a person let it run
  tables text NOT NULL,                   -- JSON, of the last one
  query_id uuid NOT NULL,                 -- the last one
  last_ms bigint NOT NULL,
  calls bigint NOT NULL,
  PRIMARY KEY (project_id, day, kind)
);
