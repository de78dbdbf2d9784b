-- The runs of a gateway that newer ones have superseded: one of them that goes on is a copy of its identity.
CREATE TABLE gateway_runs (
  project_id uuid NOT NULL,
  gateway_id uuid NOT NULL,
  run uuid NOT NULL,
  superseded_ms bigint NOT NULL,
  PRIMARY KEY (project_id, gateway_id, run)
);
