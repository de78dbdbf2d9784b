"""API keys: `gk_` and 32 random bytes; the store has a keyed hash. It may no more than its person may now."""

import base64
from typing import Final

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.people.rights import Right, scopes
from gatewayd.control.store import directory
from gatewayd.control.store.directory import Place
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction

PREFIX: Final = "gk_"
_SHOWN: Final = 9
_USED_EVERY_MS: Final = 60_000

FIND: Final = Statement(
    "SELECT org_id, key_id, project_id, person_id, name, scopes, shown, created_ms, ends_ms, used_ms, revoked_ms FROM api_keys"
    " WHERE org_id = $1 AND key_id = $2"
)
LISTED: Final = Statement(
    "SELECT org_id, key_id, project_id, person_id, name, scopes, shown, created_ms, ends_ms, used_ms, revoked_ms FROM api_keys"
    " WHERE org_id = $1 AND key_id < $2 AND ($3 OR person_id = $4) ORDER BY key_id DESC LIMIT $5"
)
ADD: Final = Statement(
    "INSERT INTO api_keys (org_id, key_id, project_id, person_id, name, scopes, shown, lookup, created_ms, ends_ms)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
)
USED: Final = Statement("UPDATE api_keys SET used_ms = $3 WHERE org_id = $1 AND key_id = $2")
REVOKE: Final = Statement("UPDATE api_keys SET revoked_ms = $3 WHERE org_id = $1 AND key_id = $2 AND revoked_ms IS NULL")


class ApiKey(msgspec.Struct, frozen=True):
    org_id: str
    key_id: str
    project_id: str | None
    person_id: str
    name: str
    scopes: str  # JSON list, as stored
    shown: str
    created_ms: int
    ends_ms: int | None
    used_ms: int | None
    revoked_ms: int | None

    @property
    def rights(self) -> frozenset[Right]:
        return scopes(msgspec.json.decode(self.scopes, type=list[str]))

    def is_valid(self, now_ms: int) -> bool:
        return self.revoked_ms is None and (self.ends_ms is None or now_ms < self.ends_ms)


def new_text(random: bytes) -> str:
    return PREFIX + base64.urlsafe_b64encode(random).rstrip(b"=").decode()


async def find_key(console: Console, text: str) -> ApiKey | None:
    """The valid key of a text. That it is used now is noted, once a minute."""
    if not text.startswith(PREFIX) or len(text) > 100 or not text.isascii():
        return None
    now_ms = console.now_ms()

    async def work(tx: Transaction) -> ApiKey | None:
        place = await directory.find_secret(tx, Place, console.secrets.pepper, "api_key", text)
        key = await tx.row(ApiKey, FIND, place.org_id, place.id) if place is not None else None
        if key is None or not key.is_valid(now_ms):
            return None
        if now_ms - (key.used_ms or 0) >= _USED_EVERY_MS:
            await tx.run(USED, key.org_id, key.key_id, now_ms)
        return key

    return await console.store.transaction(work)


async def add_key(
    tx: Transaction,
    console: Console,
    text: str,
    key_id: str,
    *,
    org_id: str,
    project_id: str | None,
    person_id: str,
    name: str,
    rights: frozenset[Right],
    now_ms: int,
    ends_ms: int | None,
) -> None:
    pepper = console.secrets.pepper
    lookup = directory.secret_hash(pepper.current, "api_key", text)
    scopes_text = msgspec.json.encode(sorted(rights)).decode()
    await tx.run(ADD, org_id, key_id, project_id, person_id, name, scopes_text, text[:_SHOWN], lookup, now_ms, ends_ms)
    await directory.add_secret(tx, pepper, "api_key", text, Place(org_id, project_id, key_id))
