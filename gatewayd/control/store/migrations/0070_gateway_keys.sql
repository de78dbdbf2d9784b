-- Identities that a gateway had before the one of now: what they signed can still be verified, and none of them is taken again.
CREATE TABLE gateway_keys (
  project_id uuid NOT NULL,
  gateway_id uuid NOT NULL,
  key_id text NOT NULL,
  public_key bytea NOT NULL,
  ended_ms bigint NOT NULL,
  PRIMARY KEY (project_id, gateway_id, key_id)
);
