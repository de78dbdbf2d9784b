-- Which enrolment tokens are for engines that run here, and on which replica: enrolment then knows the gateway as one of ours.
CREATE TABLE engine_tokens (
  project_id uuid NOT NULL,
  token_id uuid NOT NULL,
  replica uuid NOT NULL,
  PRIMARY KEY (project_id, token_id)
);
