-- Publications that wait for a second person, anew, before anything was stored in them. A text never changes: another one is another
-- proposal.
DROP TABLE policy_proposals;
CREATE TABLE policy_proposals (
  project_id uuid NOT NULL,
  proposal_id uuid NOT NULL,
  yaml text NOT NULL,
  sha256 bytea NOT NULL,
  note text NOT NULL,
  source text NOT NULL,                   -- console, api
  based_on integer NOT NULL,              -- the version in force then: once there is another one, this cannot be published
  person_id uuid NOT NULL,
  made_ms bigint NOT NULL,
  state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'published', 'refused', 'withdrawn')),
  decided_by uuid,
  decided_ms bigint,
  decided_note text,
  PRIMARY KEY (project_id, proposal_id)
);
CREATE INDEX policy_proposals_by_state ON policy_proposals (project_id, state, proposal_id);
