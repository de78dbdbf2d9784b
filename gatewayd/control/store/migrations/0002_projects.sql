-- Projects and what they are made of. Every table of a project has project_id first in its key.

CREATE TABLE projects (
  org_id uuid NOT NULL,
  project_id uuid NOT NULL,
  name text NOT NULL,
  name_key text NOT NULL,
  created_ms bigint NOT NULL,
  state text NOT NULL DEFAULT 'enforced' CHECK (state IN ('enforced', 'paused')),
  state_note text,
  retention_days integer NOT NULL DEFAULT 90,
  settings text NOT NULL DEFAULT '{}',    -- JSON: approvals (self_approval, reviewers, expiry), second publisher, stale rules …
  deleted_ms bigint,
  PRIMARY KEY (org_id, project_id),
  UNIQUE (org_id, name_key)
);

CREATE TABLE project_roles (
  project_id uuid NOT NULL,
  person_id uuid NOT NULL,
  role text NOT NULL CHECK (role IN ('admin', 'reviewer', 'auditor', 'member')),
  reviewer_group text,
  since_ms bigint NOT NULL,
  PRIMARY KEY (project_id, person_id)
);

CREATE TABLE databases (
  project_id uuid NOT NULL,
  database_id uuid NOT NULL,
  name text NOT NULL,                     -- the name in the policy
  sealed_url bytea,                       -- NULL: a linked gateway holds the address; else AES-256-GCM, bound to project and database
  host_shown text,                        -- host and database name for people; no user, no password
  checked_ms bigint,
  check_result text,                      -- JSON: what the connection test found
  created_ms bigint NOT NULL,
  PRIMARY KEY (project_id, database_id),
  UNIQUE (project_id, name)
);

CREATE TABLE policy_drafts (
  project_id uuid NOT NULL,
  person_id uuid NOT NULL,
  yaml text NOT NULL,
  based_on integer,                       -- the version that it was begun from
  changed_ms bigint NOT NULL,
  PRIMARY KEY (project_id, person_id)
);

CREATE TABLE policy_versions (
  project_id uuid NOT NULL,
  version integer NOT NULL,
  yaml text NOT NULL,
  sha256 bytea NOT NULL,
  note text NOT NULL,
  source text NOT NULL,                   -- console, api, adopted, restored
  person_id uuid,
  seconded_by uuid,
  flips text,                             -- JSON: what would have changed, as it was shown
  published_ms bigint NOT NULL,
  PRIMARY KEY (project_id, version)
);

-- Where a second person is asked for: a publication that waits.
CREATE TABLE policy_proposals (
  project_id uuid NOT NULL,
  proposal_id uuid NOT NULL,
  yaml text NOT NULL,
  note text NOT NULL,
  flips text,
  person_id uuid NOT NULL,
  made_ms bigint NOT NULL,
  status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'published', 'refused', 'withdrawn')),
  decided_by uuid,
  decided_ms bigint,
  PRIMARY KEY (project_id, proposal_id)
);

-- Signed bundles: rises also when state, agents or settings change. previous_sha256 chains them.
CREATE TABLE bundles (
  project_id uuid NOT NULL,
  version bigint NOT NULL,
  policy_version integer,
  envelope bytea NOT NULL,                -- DSSE, as gateways get it
  sha256 bytea NOT NULL,
  reason text NOT NULL,
  issued_ms bigint NOT NULL,
  PRIMARY KEY (project_id, version)
);
CREATE TABLE bundle_heads (
  project_id uuid NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (project_id)
);

CREATE TABLE agent_tokens (
  project_id uuid NOT NULL,
  token_id uuid NOT NULL,
  kind text NOT NULL CHECK (kind IN ('live', 'test')),
  name text NOT NULL,
  person_id uuid NOT NULL,
  mac bytea NOT NULL,                     -- HMAC under the project's token key
  shown text NOT NULL,
  created_ms bigint NOT NULL,
  ends_ms bigint,
  used_ms bigint,
  revoked_ms bigint,
  calls_a_day bigint,
  rows_a_day bigint,
  PRIMARY KEY (project_id, token_id)
);

-- What a token used, a row a day.
CREATE TABLE token_use (
  project_id uuid NOT NULL,
  token_id uuid NOT NULL,
  day integer NOT NULL,                   -- days since 1970, UTC
  calls bigint NOT NULL,
  rows_read bigint NOT NULL,
  PRIMARY KEY (project_id, token_id, day)
);

CREATE TABLE catalogs (
  project_id uuid NOT NULL,
  database_name text NOT NULL,
  sha256 bytea NOT NULL,
  gateway_id uuid NOT NULL,
  format integer NOT NULL,
  body bytea NOT NULL,                    -- as the gateway sent it
  taken_ms bigint NOT NULL,
  PRIMARY KEY (project_id, database_name, sha256)
);
CREATE TABLE catalog_heads (
  project_id uuid NOT NULL,
  database_name text NOT NULL,
  sha256 bytea NOT NULL,
  changed_ms bigint NOT NULL,
  PRIMARY KEY (project_id, database_name)
);

-- Bearer tokens of engines that speak the approval protocol without a link.
CREATE TABLE approval_tokens (
  project_id uuid NOT NULL,
  token_id uuid NOT NULL,
  name text NOT NULL,
  lookup bytea NOT NULL,
  shown text NOT NULL,
  created_ms bigint NOT NULL,
  used_ms bigint,
  revoked_ms bigint,
  PRIMARY KEY (project_id, token_id)
);
