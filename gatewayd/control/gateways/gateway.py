"""Gateways as the store has them."""

from typing import Final, Literal

import msgspec

from gatewayd.control.store.statement import Statement
from gatewayd.keys.ed25519 import PublicKey

Standing = Literal["active", "cut", "duplicated", "retired"]
"""`cut` by a person, `duplicated` by two processes with one identity until a person decides, `retired` for good."""

FIND: Final = Statement(
    "SELECT project_id, gateway_id, name, public_key, key_id, engine_replica, enrolled_ms, standing, standing_note,"
    " run, run_ts_ms,"
    " run_n, run_digest, seen_ms, state, state_reason, version, bundle_version, bundle_since_ms, features, reported_databases,"
    " public_urls FROM gateways WHERE project_id = $1 AND gateway_id = $2"
)
FIND_LOCKED: Final = Statement(
    "SELECT project_id, gateway_id, name, public_key, key_id, engine_replica, enrolled_ms, standing, standing_note,"
    " run, run_ts_ms,"
    " run_n, run_digest, seen_ms, state, state_reason, version, bundle_version, bundle_since_ms, features, reported_databases,"
    " public_urls FROM gateways WHERE project_id = $1 AND gateway_id = $2 FOR UPDATE"
)
OF_PROJECT: Final = Statement(
    "SELECT project_id, gateway_id, name, public_key, key_id, engine_replica, enrolled_ms, standing, standing_note,"
    " run, run_ts_ms,"
    " run_n, run_digest, seen_ms, state, state_reason, version, bundle_version, bundle_since_ms, features, reported_databases,"
    " public_urls FROM gateways WHERE project_id = $1 AND gateway_id > $2 ORDER BY gateway_id LIMIT $3"
)
ADD: Final = Statement(
    "INSERT INTO gateways (project_id, gateway_id, name, public_key, key_id, engine_replica, enrolled_ms)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7)"
)
COUNT: Final = Statement(
    "SELECT count(*) FROM (SELECT 1 FROM gateways WHERE project_id = $1 AND standing <> 'retired' LIMIT $2) AS few"
)
SET_STANDING: Final = Statement(
    "UPDATE gateways SET standing = $3, standing_note = $4 WHERE project_id = $1 AND gateway_id = $2 AND standing <> 'retired'"
)
SET_URLS: Final = Statement("UPDATE gateways SET public_urls = $3 WHERE project_id = $1 AND gateway_id = $2")
SET_NAME: Final = Statement("UPDATE gateways SET name = $3 WHERE project_id = $1 AND gateway_id = $2")


class Gateway(msgspec.Struct, frozen=True):
    project_id: str
    gateway_id: str
    name: str
    public_key: bytes
    key_id: str
    engine_replica: str | None  # the replica that spawned it; None: linked from elsewhere
    enrolled_ms: int
    standing: Standing
    standing_note: str | None
    run: str | None
    run_ts_ms: int
    run_n: int
    run_digest: bytes | None
    seen_ms: int | None
    state: str | None
    state_reason: str | None
    version: str | None
    bundle_version: int | None
    bundle_since_ms: int | None
    features: str
    reported_databases: str
    public_urls: str

    @property
    def key(self) -> PublicKey:
        return PublicKey(self.public_key)

    @property
    def urls(self) -> tuple[str, ...]:
        return msgspec.json.decode(self.public_urls, type=tuple[str, ...])
