-- Values of CONTROL_TOKEN_PEPPER that were current once. What was hashed with one cannot be hashed anew, because nobody has the
-- text, so a value that has been replaced is kept here, sealed with the one that followed.

CREATE TABLE former_peppers (
  key_id text PRIMARY KEY,
  sealed bytea,                           -- NULL: not replaced yet
  used_ms bigint NOT NULL                 -- since when it was current
);
