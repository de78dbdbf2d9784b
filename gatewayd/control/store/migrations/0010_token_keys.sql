-- Which value of CONTROL_TOKEN_PEPPER a project's token key is made of: it must stay the same while the project has tokens.
CREATE TABLE token_keys (
  project_id uuid NOT NULL,
  pepper text NOT NULL,                   -- the key id of the value
  PRIMARY KEY (project_id)
);
