-- The audit of all gateways. The events themselves are in tables of a day, audit_YYYYMMDD and audit_details_YYYYMMDD, made ahead and
-- dropped by the control plane (gatewayd/control/store/days.py).

CREATE TABLE audit_heads (
  project_id uuid NOT NULL,
  gateway_id uuid NOT NULL,
  instance uuid NOT NULL,
  first_seq bigint NOT NULL,
  size bigint NOT NULL,
  root bytea NOT NULL,
  frontier bytea NOT NULL,                -- compact range at size
  ack bytea,                              -- the last one given
  received_ms bigint NOT NULL,
  verified_ms bigint,
  superseded_ms bigint,                   -- a newer instance has begun
  fork_seen_by uuid,
  PRIMARY KEY (project_id, gateway_id, instance)
);

-- Leaf hashes, 256 a tile: later proofs need them after the events are gone.
CREATE TABLE audit_tiles (
  project_id uuid NOT NULL,
  gateway_id uuid NOT NULL,
  instance uuid NOT NULL,
  tile bigint NOT NULL,
  leaves bytea NOT NULL,                  -- 32 bytes a leaf
  PRIMARY KEY (project_id, gateway_id, instance, tile)
);

CREATE TABLE audit_checkpoints (
  project_id uuid NOT NULL,
  gateway_id uuid NOT NULL,
  instance uuid NOT NULL,
  size bigint NOT NULL,
  note text NOT NULL,
  received_ms bigint NOT NULL,
  PRIMARY KEY (project_id, gateway_id, instance, size)
);

-- Forks, losses and other findings that stay red until a person has seen them.
CREATE TABLE audit_findings (
  project_id uuid NOT NULL,
  finding_id uuid NOT NULL,
  gateway_id uuid NOT NULL,
  kind text NOT NULL,
  body text NOT NULL,                     -- JSON
  found_ms bigint NOT NULL,
  seen_by uuid,
  seen_ms bigint,
  PRIMARY KEY (project_id, finding_id)
);

CREATE TABLE statements (
  project_id uuid NOT NULL,
  fingerprint text NOT NULL,
  text text NOT NULL,                     -- constants replaced
  statement_type text,
  first_ms bigint NOT NULL,
  last_ms bigint NOT NULL,
  PRIMARY KEY (project_id, fingerprint)
);

CREATE TABLE rollups (
  project_id uuid NOT NULL,
  day integer NOT NULL,                   -- days since 1970, UTC
  hour integer NOT NULL,
  kind text NOT NULL,                     -- decision, rule, table, agent, token …
  value text NOT NULL,
  calls bigint NOT NULL,
  denied bigint NOT NULL,
  failed bigint NOT NULL,
  rows_read bigint NOT NULL,
  exec_ms bigint NOT NULL,
  PRIMARY KEY (project_id, day, hour, kind, value)
);

-- The days for which tables exist; of the whole control plane.
CREATE TABLE audit_days (
  day integer PRIMARY KEY,
  made_ms bigint NOT NULL,
  dropped_ms bigint
);
