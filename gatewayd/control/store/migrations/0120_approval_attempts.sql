-- Which request a query waits on, or waited on: what became of a query that was held and never decided under its own id.
CREATE TABLE approval_attempts (
  project_id uuid NOT NULL,
  query_id uuid NOT NULL,
  approval_id uuid NOT NULL,
  PRIMARY KEY (project_id, query_id)
);
