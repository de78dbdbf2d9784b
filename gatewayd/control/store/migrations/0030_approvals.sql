-- Approvals anew, before anything was stored in them: requests keep the whole question as it came, and who asked as one value.

DROP TABLE approvals;
DROP TABLE approvals_pending;
DROP TABLE approval_votes;
DROP TABLE approval_claims;
DROP TABLE shape_grants;

-- Rises with each request and decision of a project; its row is the lock under which a request is opened.
CREATE TABLE approval_heads (
  project_id uuid NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (project_id)
);

CREATE TABLE approvals (
  project_id uuid NOT NULL,
  approval_id uuid NOT NULL,
  number bigint NOT NULL,                 -- rises within the project, whatever the clocks of replicas say
  grant_key bytea NOT NULL,               -- SHA-256 over origin, statement, intent, database, token
  origin text NOT NULL,                   -- `link`, or the id of the bearer that a standalone engine has
  asker text NOT NULL,                    -- origin and token
  gateway_id uuid,                        -- the linked gateway that asked first
  database_name text NOT NULL,
  token_id uuid,                          -- an agent token of the project
  requester uuid,                         -- the person whose token it is
  fingerprint text NOT NULL,
  ask text NOT NULL,                      -- JSON: the question as it came
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'approved', 'denied')),
  asked_ms bigint NOT NULL,
  expires_ms bigint NOT NULL,
  decided_by uuid,
  decided_name text,                      -- as agents and the audit are told it
  decided_ms bigint,
  note text,
  rows_at_most bigint,
  claimed_by uuid,                        -- the query_id that spent it
  claimed_ms bigint,
  outcome text,
  outcome_rows bigint,
  expiry_told_to uuid,                    -- the query_id that heard of the expiry
  PRIMARY KEY (project_id, approval_id)
);
CREATE INDEX approvals_by_key ON approvals (project_id, grant_key, number);
CREATE INDEX approvals_by_claim ON approvals (project_id, claimed_by);
CREATE INDEX approvals_by_fingerprint ON approvals (project_id, fingerprint, approval_id);

-- One pending request a key, held by the key. Gone when it is decided; an expired one goes with the next question or the sweeper.
CREATE TABLE approvals_pending (
  project_id uuid NOT NULL,
  grant_key bytea NOT NULL,
  approval_id uuid NOT NULL,
  asker text NOT NULL,
  expires_ms bigint NOT NULL,
  PRIMARY KEY (project_id, grant_key)
);

-- What a query was approved by: asking again with one query_id gets the same answer and spends nothing.
CREATE TABLE approval_claims (
  project_id uuid NOT NULL,
  query_id uuid NOT NULL,
  grant_key bytea NOT NULL,
  approval_id uuid,
  shape_grant_id uuid,
  answer text NOT NULL,                   -- JSON, as it was given
  claimed_ms bigint NOT NULL,
  PRIMARY KEY (project_id, query_id)
);

CREATE TABLE shape_grants (
  project_id uuid NOT NULL,
  shape_grant_id uuid NOT NULL,
  shape bytea NOT NULL,                   -- SHA-256 of the whole normal form
  asker text NOT NULL,
  database_name text NOT NULL,
  policy_hash text NOT NULL,              -- holds only while the policy is the same
  approval_id uuid NOT NULL,              -- the request that it was made with: its text is the example
  rows_at_most bigint NOT NULL,
  times bigint NOT NULL,
  used bigint NOT NULL DEFAULT 0,
  ends_ms bigint NOT NULL,
  made_by uuid NOT NULL,
  made_name text NOT NULL,
  made_ms bigint NOT NULL,
  note text,
  revoked_ms bigint,
  revoked_by uuid,
  PRIMARY KEY (project_id, shape_grant_id)
);
CREATE INDEX shape_grants_by_shape ON shape_grants (project_id, shape);

-- How long a request may be decided, where a database has another time than its project.
CREATE TABLE approval_times (
  project_id uuid NOT NULL,
  database_name text NOT NULL,
  minutes integer NOT NULL CHECK (minutes BETWEEN 1 AND 1440),
  PRIMARY KEY (project_id, database_name)
);
