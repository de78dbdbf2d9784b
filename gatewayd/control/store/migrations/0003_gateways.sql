-- Gateways: enrolment, what they report, trust documents, engines that are spawned here.

CREATE TABLE enrol_tokens (
  project_id uuid NOT NULL,
  token_id uuid NOT NULL,
  lookup bytea NOT NULL,
  name text NOT NULL,
  made_by uuid,
  made_ms bigint NOT NULL,
  ends_ms bigint NOT NULL,
  used_ms bigint,
  gateway_id uuid,
  PRIMARY KEY (project_id, token_id)
);

CREATE TABLE gateways (
  project_id uuid NOT NULL,
  gateway_id uuid NOT NULL,
  name text NOT NULL,
  public_key bytea NOT NULL,
  key_id text NOT NULL,
  engine_replica uuid,                    -- of the replica that spawned it; NULL: linked from elsewhere
  enrolled_ms bigint NOT NULL,
  standing text NOT NULL DEFAULT 'active' CHECK (standing IN ('active', 'cut', 'duplicated', 'retired')),
  standing_note text,
  run uuid,                               -- the newest run that called, its last number and the digest of that request
  run_ts_ms bigint NOT NULL DEFAULT 0,
  run_n bigint NOT NULL DEFAULT 0,
  run_digest bytea,
  seen_ms bigint,
  state text,                             -- waiting, enforcing, paused, halted
  state_reason text,
  version text,
  bundle_version bigint,
  bundle_since_ms bigint,
  features text NOT NULL DEFAULT '[]',    -- JSON
  reported_databases text NOT NULL DEFAULT '[]', -- JSON
  public_urls text NOT NULL DEFAULT '[]', -- JSON
  PRIMARY KEY (project_id, gateway_id)
);

-- What a gateway's state was, for the fleet over time.
CREATE TABLE gateway_states (
  project_id uuid NOT NULL,
  gateway_id uuid NOT NULL,
  since_ms bigint NOT NULL,
  state text NOT NULL,
  bundle_version bigint,
  reason text,
  PRIMARY KEY (project_id, gateway_id, since_ms)
);

CREATE TABLE trust_documents (
  version integer PRIMARY KEY,            -- of the whole control plane
  envelope bytea NOT NULL,
  made_ms bigint NOT NULL
);

CREATE TABLE engines (
  project_id uuid NOT NULL,
  replica uuid NOT NULL,
  gateway_id uuid,
  state text NOT NULL,                    -- stopped, starting, serving, backing_off
  address text,
  started_ms bigint,
  used_ms bigint,
  failures integer NOT NULL DEFAULT 0,
  next_try_ms bigint,
  PRIMARY KEY (project_id, replica)
);

CREATE TABLE replicas (
  replica uuid PRIMARY KEY,
  address text NOT NULL,                  -- where the others forward to
  version text NOT NULL,
  started_ms bigint NOT NULL,
  seen_ms bigint NOT NULL
);

CREATE TABLE mcp_clients (
  project_id uuid NOT NULL,
  client_key bytea NOT NULL,
  client text NOT NULL,
  person_id uuid,
  protocol text NOT NULL,
  seen_ms bigint NOT NULL,
  PRIMARY KEY (project_id, client_key)
);

CREATE TABLE taints (
  project_id uuid NOT NULL,
  grant_key bytea NOT NULL,               -- SHA-256 of the token, or of the gateway where agents have none
  shown text NOT NULL,
  source text NOT NULL,
  query_id uuid NOT NULL,
  gateway_id uuid NOT NULL,
  tainted_ms bigint NOT NULL,
  cleared_ms bigint,
  cleared_by uuid,
  note text,
  PRIMARY KEY (project_id, grant_key, source)
);
CREATE TABLE taint_history (
  project_id uuid NOT NULL,
  event_id uuid NOT NULL,
  grant_key bytea NOT NULL,
  source text NOT NULL,
  what text NOT NULL,
  person_id uuid,
  ts_ms bigint NOT NULL,
  PRIMARY KEY (project_id, event_id)
);
