-- Organisations and people. Times are milliseconds since 1970, ids are ULIDs kept as uuid. No foreign keys: rows of an organisation
-- or a project may live on another node than what they point at, so the code that removes something removes all of it.

CREATE TABLE organisations (
  org_id uuid PRIMARY KEY,
  name text NOT NULL,
  created_ms bigint NOT NULL,
  paused_ms bigint,                       -- the stop-everything button of the organisation
  plan text NOT NULL DEFAULT 'default'    -- names the caps in the caps file
);

CREATE TABLE people (
  person_id uuid PRIMARY KEY,
  email text NOT NULL,
  email_key text NOT NULL UNIQUE,         -- casefolded
  name text NOT NULL,
  password text,                          -- argon2id; NULL: signs in another way
  password_ms bigint,
  zone text NOT NULL DEFAULT 'UTC',       -- IANA name: dates are shown in it
  created_ms bigint NOT NULL,
  disabled_ms bigint
);

CREATE TABLE memberships (
  person_id uuid NOT NULL,
  org_id uuid NOT NULL,
  role text NOT NULL CHECK (role IN ('owner', 'admin', 'reviewer', 'auditor', 'member')),
  since_ms bigint NOT NULL,
  PRIMARY KEY (person_id, org_id)
);
CREATE INDEX memberships_by_organisation ON memberships (org_id, person_id);

CREATE TABLE sessions (
  session_hash bytea PRIMARY KEY,         -- SHA-256 of the cookie's random id
  session_id uuid NOT NULL,               -- names it in the list, opens nothing
  person_id uuid NOT NULL,
  org_id uuid,                            -- the organisation that is looked at
  created_ms bigint NOT NULL,
  seen_ms bigint NOT NULL,
  ends_ms bigint NOT NULL,                -- absolute end
  proved_ms bigint NOT NULL,              -- last sign-in: keys, people and roles want a fresh one
  method text NOT NULL,
  address text NOT NULL,
  agent text NOT NULL
);
CREATE INDEX sessions_by_person ON sessions (person_id);

-- Links that work once: the first owner's, recovery of an account, invitations. A used one is deleted.
CREATE TABLE one_time_links (
  link_hash bytea PRIMARY KEY,
  link_id uuid NOT NULL,
  kind text NOT NULL CHECK (kind IN ('first_owner', 'recovery', 'invitation')),
  org_id uuid,
  person_id uuid,
  email text,
  role text,
  project_roles text NOT NULL DEFAULT '[]', -- JSON: [{"project": id, "role": …}]
  made_by uuid,
  made_ms bigint NOT NULL,
  ends_ms bigint NOT NULL
);
CREATE INDEX one_time_links_by_organisation ON one_time_links (org_id);

CREATE TABLE throttles (
  throttle_key bytea PRIMARY KEY,         -- SHA-256 of what is slowed: an account, an address
  failures integer NOT NULL,
  free_ms bigint NOT NULL,                -- no try before this time
  seen_ms bigint NOT NULL
);

CREATE TABLE passkeys (
  credential_id bytea PRIMARY KEY,
  passkey_id uuid NOT NULL,
  person_id uuid NOT NULL,
  public_key bytea NOT NULL,
  sign_count bigint NOT NULL,
  name text NOT NULL,
  created_ms bigint NOT NULL,
  used_ms bigint
);
CREATE INDEX passkeys_by_person ON passkeys (person_id);

-- What a browser must answer once: challenges of passkeys.
CREATE TABLE challenges (
  challenge bytea PRIMARY KEY,
  kind text NOT NULL,
  person_id uuid,
  ends_ms bigint NOT NULL
);

CREATE TABLE oidc_providers (
  provider_id uuid PRIMARY KEY,
  org_id uuid NOT NULL,
  name text NOT NULL,
  issuer text NOT NULL,
  client_id text NOT NULL,
  sealed_secret bytea NOT NULL,           -- bound to organisation and provider
  new_role text,                          -- role of somebody who signs in for the first time; NULL: invitation first
  email_domains text NOT NULL DEFAULT '[]', -- JSON
  created_ms bigint NOT NULL
);
CREATE INDEX oidc_providers_by_organisation ON oidc_providers (org_id);

CREATE TABLE oidc_identities (
  provider_id uuid NOT NULL,
  subject text NOT NULL,
  person_id uuid NOT NULL,
  created_ms bigint NOT NULL,
  PRIMARY KEY (provider_id, subject)
);
CREATE INDEX oidc_identities_by_person ON oidc_identities (person_id);

-- From something that arrives without its organisation or project (a token, a key, a gateway's id) to where its row is.
CREATE TABLE directory (
  kind text NOT NULL CHECK (kind IN ('api_key', 'agent_token', 'enrol_token', 'gateway', 'approval_token', 'project')),
  lookup bytea NOT NULL,                  -- a keyed or plain SHA-256, or the 16 bytes of an id
  org_id uuid NOT NULL,
  project_id uuid,
  id uuid NOT NULL,
  PRIMARY KEY (kind, lookup)
);

CREATE TABLE api_keys (
  org_id uuid NOT NULL,
  key_id uuid NOT NULL,
  project_id uuid,                        -- NULL: every project that the person may reach
  person_id uuid NOT NULL,                -- whose key it is: it never may more than its person
  name text NOT NULL,
  scopes text NOT NULL,                   -- JSON list of rights
  shown text NOT NULL,                    -- the first characters, to recognise it
  lookup bytea NOT NULL,
  created_ms bigint NOT NULL,
  ends_ms bigint,
  used_ms bigint,
  revoked_ms bigint,
  PRIMARY KEY (org_id, key_id)
);

-- What people did, as a tree of its own (docs/control-plane.md, What people did).
CREATE TABLE org_events (
  org_id uuid NOT NULL,
  seq bigint NOT NULL,
  event_id uuid NOT NULL,
  ts_ms bigint NOT NULL,
  action text NOT NULL,
  person_id uuid,
  project_id uuid,
  envelope text NOT NULL,                 -- canonical JSON, stays
  details text,                           -- canonical JSON, can be erased
  salt bytea,                             -- NULL once the details are erased
  leaf bytea NOT NULL,
  PRIMARY KEY (org_id, seq)
);
CREATE TABLE org_heads (
  org_id uuid NOT NULL,
  instance uuid NOT NULL,
  size bigint NOT NULL,
  frontier bytea NOT NULL,                -- compact range: 32 bytes for each set bit of size, largest subtree first
  PRIMARY KEY (org_id)
);
CREATE TABLE org_checkpoints (
  org_id uuid NOT NULL,
  size bigint NOT NULL,
  note text NOT NULL,
  made_ms bigint NOT NULL,
  PRIMARY KEY (org_id, size)
);
