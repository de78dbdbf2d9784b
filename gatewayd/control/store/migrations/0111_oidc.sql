-- Whether a provider may sign in to an account that was there before it, where the address is verified and of its domains.

DROP TABLE oidc_providers;

CREATE TABLE oidc_providers (
  provider_id uuid PRIMARY KEY,
  org_id uuid NOT NULL,
  name text NOT NULL,
  issuer text NOT NULL,
  client_id text NOT NULL,
  sealed_secret bytea NOT NULL,           -- bound to organisation and provider
  new_role text,                          -- role of somebody who signs in for the first time; NULL: nobody new
  email_domains text NOT NULL,            -- JSON: the domains whose verified addresses it is believed for
  links_accounts boolean NOT NULL,
  created_ms bigint NOT NULL
);
CREATE INDEX oidc_providers_by_organisation ON oidc_providers (org_id);
