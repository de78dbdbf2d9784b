"""The demo: an embedded PostgreSQL with a small shop in it, and the policy that shows what gatewayd does."""
