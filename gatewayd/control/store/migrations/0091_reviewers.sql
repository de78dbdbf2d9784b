-- Who decides about which held writes: groups of reviewers, rules that name them by database and table, and the approvals that a
-- request has so far while others are still asked.
CREATE TABLE reviewer_groups (
  project_id uuid NOT NULL,
  group_id uuid NOT NULL,
  name text NOT NULL,
  name_key text NOT NULL,
  PRIMARY KEY (project_id, group_id),
  UNIQUE (project_id, name_key)
);

CREATE TABLE reviewer_group_members (
  project_id uuid NOT NULL,
  group_id uuid NOT NULL,
  person_id uuid NOT NULL,
  PRIMARY KEY (project_id, group_id, person_id)
);

CREATE TABLE reviewer_rules (
  project_id uuid NOT NULL,
  rule_id uuid NOT NULL,
  databases text NOT NULL,                -- a pattern with `*`
  tables text NOT NULL,                   -- a pattern with `*`, of schema.table
  group_id uuid NOT NULL,
  needed integer NOT NULL CHECK (needed BETWEEN 0 AND 20), -- how many of the group; 0: all of it
  PRIMARY KEY (project_id, rule_id)
);

CREATE TABLE approval_votes (
  project_id uuid NOT NULL,
  approval_id uuid NOT NULL,
  person_id uuid NOT NULL,
  vote_id uuid NOT NULL,                  -- of the decision that it came with
  person_name text NOT NULL,
  note text,
  rows_at_most bigint,
  voted_ms bigint NOT NULL,
  PRIMARY KEY (project_id, approval_id, person_id)
);
