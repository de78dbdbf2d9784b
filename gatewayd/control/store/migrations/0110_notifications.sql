-- Notifications anew, before anything was stored in them: what waits to be sent is a row with the time of its next try.

DROP TABLE notification_channels;
DROP TABLE notification_deliveries;
DROP TABLE notification_due;

CREATE TABLE notification_channels (
  org_id uuid NOT NULL,
  channel_id uuid NOT NULL,
  project_id uuid,                        -- NULL: all projects, and what belongs to none
  shape text NOT NULL CHECK (shape IN ('standard', 'slack')),
  name text NOT NULL,
  host_shown text NOT NULL,               -- of the address, whose path may hold a key
  sealed_url bytea NOT NULL,              -- bound to organisation and channel
  sealed_secrets bytea NOT NULL,          -- JSON, the newest first; the earlier one with the time at which it ends
  kinds text NOT NULL,                    -- JSON list
  made_ms bigint NOT NULL,
  made_by uuid,
  disabled_ms bigint,
  disabled_why text,                      -- person, failing, gone
  failing_since_ms bigint,                -- of the first failure after the last delivery
  PRIMARY KEY (org_id, channel_id)
);

CREATE TABLE notification_deliveries (
  org_id uuid NOT NULL,
  delivery_id uuid NOT NULL,              -- made of event, kind and channel: one event is never queued twice
  channel_id uuid NOT NULL,
  project_id uuid,
  kind text NOT NULL,
  body text NOT NULL,                     -- JSON: ids, names of database and token, and a link
  made_ms bigint NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  next_ms bigint,                         -- no try before this time; NULL: delivered or given up
  state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'failed')),
  answer text,                            -- of the last try: a status, or why there was none
  tried_ms bigint,
  PRIMARY KEY (org_id, delivery_id)
);
CREATE INDEX notification_deliveries_due ON notification_deliveries (org_id, channel_id, next_ms);
CREATE INDEX notification_deliveries_of_channel ON notification_deliveries (org_id, channel_id, delivery_id);

-- Which organisations have something to send, so that a sender need not look through all of them. `version` rises with each
-- delivery that is added: who moves `next_ms` on after a look changes nothing when one has come meanwhile.
CREATE TABLE notification_due (
  org_id uuid PRIMARY KEY,
  next_ms bigint NOT NULL,
  version bigint NOT NULL
);

-- Since when a gateway is silent and was told to be.
CREATE TABLE gateway_silences (
  project_id uuid NOT NULL,
  gateway_id uuid NOT NULL,
  seen_ms bigint NOT NULL,                -- its last poll before the silence that was told
  PRIMARY KEY (project_id, gateway_id)
);
