-- Webhooks and mail. A delivery names what happened by ids; its text holds no SQL, table or value.

CREATE TABLE notification_channels (
  org_id uuid NOT NULL,
  channel_id uuid NOT NULL,
  project_id uuid,                        -- NULL: all projects
  kind text NOT NULL CHECK (kind IN ('webhook', 'slack', 'mail')),
  name text NOT NULL,
  sealed_target bytea NOT NULL,           -- address, and the webhook's secret; bound to organisation and channel
  events text NOT NULL,                   -- JSON list
  created_ms bigint NOT NULL,
  paused_ms bigint,
  failing_since_ms bigint,
  PRIMARY KEY (org_id, channel_id)
);

CREATE TABLE notification_deliveries (
  org_id uuid NOT NULL,
  delivery_id uuid NOT NULL,
  channel_id uuid NOT NULL,
  event text NOT NULL,
  body text NOT NULL,
  made_ms bigint NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  next_ms bigint,                         -- NULL: delivered or given up
  delivered_ms bigint,
  last_error text,
  PRIMARY KEY (org_id, delivery_id)
);
CREATE INDEX notification_deliveries_due ON notification_deliveries (org_id, next_ms);
CREATE INDEX notification_deliveries_by_channel ON notification_deliveries (org_id, channel_id, delivery_id);

-- Which organisations have something due, so that a sender need not look through all of them.
CREATE TABLE notification_due (
  org_id uuid NOT NULL,
  next_ms bigint NOT NULL,
  PRIMARY KEY (org_id)
);
