-- Approvals: requests, what pends, claims, grants for a shape of statement, decisions of several reviewers.

CREATE TABLE approvals (
  project_id uuid NOT NULL,
  approval_id uuid NOT NULL,
  grant_key bytea NOT NULL,               -- SHA-256 over sql, intent, database, token
  query_id uuid NOT NULL,                 -- the first that asked
  gateway_id uuid,
  database_name text NOT NULL,
  token_id uuid,
  requester uuid,                         -- the token's person
  agent_name text,
  agent_version text,
  sql text NOT NULL,
  intent text,
  statement_type text,
  write_class text,
  fingerprint text,
  tables_touched text NOT NULL DEFAULT '[]', -- JSON
  policy_hash text,
  preview text,                           -- JSON
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'approved', 'denied', 'expired', 'consumed', 'executed')),
  asked_ms bigint NOT NULL,
  expires_ms bigint NOT NULL,
  decided_by uuid,
  decided_ms bigint,
  note text,
  rows_at_most bigint,
  claimed_by uuid,                        -- the query_id that spent it
  claimed_ms bigint,
  outcome text,
  outcome_rows bigint,
  expiry_told boolean NOT NULL DEFAULT false,
  PRIMARY KEY (project_id, approval_id)
);
CREATE INDEX approvals_by_key ON approvals (project_id, grant_key, approval_id);
CREATE INDEX approvals_by_status ON approvals (project_id, status, approval_id);
CREATE INDEX approvals_by_claim ON approvals (project_id, claimed_by);

-- One pending request a key, held by the key. Gone when it is decided or has expired.
CREATE TABLE approvals_pending (
  project_id uuid NOT NULL,
  grant_key bytea NOT NULL,
  approval_id uuid NOT NULL,
  token_id uuid,
  expires_ms bigint NOT NULL,
  PRIMARY KEY (project_id, grant_key)
);

CREATE TABLE approval_votes (
  project_id uuid NOT NULL,
  approval_id uuid NOT NULL,
  person_id uuid NOT NULL,
  vote text NOT NULL CHECK (vote IN ('approve', 'deny')),
  reviewer_group text,
  note text,
  voted_ms bigint NOT NULL,
  PRIMARY KEY (project_id, approval_id, person_id)
);

-- Which answer a query got: asking again with one query_id gets it again and spends nothing.
CREATE TABLE approval_claims (
  project_id uuid NOT NULL,
  query_id uuid NOT NULL,
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
  database_name text NOT NULL,
  token_id uuid,
  policy_hash text NOT NULL,              -- holds only while the policy is the same
  example_sql text NOT NULL,
  rows_at_most bigint NOT NULL,
  times_left bigint NOT NULL,
  ends_ms bigint NOT NULL,
  made_by uuid NOT NULL,
  made_ms bigint NOT NULL,
  note text,
  revoked_ms bigint,
  PRIMARY KEY (project_id, shape_grant_id)
);
CREATE INDEX shape_grants_by_shape ON shape_grants (project_id, shape);
