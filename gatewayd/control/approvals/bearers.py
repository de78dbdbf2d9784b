"""Bearers of engines without a link: each is an origin of requests in its project, also after its text was changed."""

import base64
from typing import Final

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction

PREFIX: Final = "ga_"
MOST: Final = 50
"""Bearers that one project may have, revoked ones among them."""
_SHOWN: Final = 9
_USED_EVERY_MS: Final = 60_000

FIND_PLACE: Final = Statement("SELECT org_id, project_id, id FROM directory WHERE kind = 'approval_token' AND lookup = $1")
ADD_PLACE: Final = Statement(
    "INSERT INTO directory (kind, lookup, org_id, project_id, id) VALUES ('approval_token', $1, $2, $3, $4)"
)
FIND: Final = Statement(
    "SELECT token_id, name, lookup, shown, created_ms, used_ms, revoked_ms FROM approval_tokens"
    " WHERE project_id = $1 AND token_id = $2"
)
OF_PROJECT: Final = Statement(
    "SELECT token_id, name, lookup, shown, created_ms, used_ms, revoked_ms FROM approval_tokens WHERE project_id = $1"
    " ORDER BY token_id LIMIT $2"
)
ADD: Final = Statement(
    "INSERT INTO approval_tokens (project_id, token_id, name, lookup, shown, created_ms) VALUES ($1, $2, $3, $4, $5, $6)"
)
ROTATE: Final = Statement(
    "UPDATE approval_tokens SET lookup = $3, shown = $4 WHERE project_id = $1 AND token_id = $2 AND revoked_ms IS NULL"
)
REVOKE: Final = Statement(
    "UPDATE approval_tokens SET revoked_ms = $3 WHERE project_id = $1 AND token_id = $2 AND revoked_ms IS NULL"
)
USED: Final = Statement("UPDATE approval_tokens SET used_ms = $3 WHERE project_id = $1 AND token_id = $2")


class Bearer(msgspec.Struct, frozen=True):
    """`shown`: how its text begins; the text itself is not kept."""

    token_id: str
    name: str
    lookup: bytes
    shown: str
    created_ms: int
    used_ms: int | None
    revoked_ms: int | None


class BearerPlace(msgspec.Struct, frozen=True):
    """Where a bearer belongs, as `directory` has it."""

    org_id: str
    project_id: str
    id: str


class NewText(msgspec.Struct, frozen=True):
    """The text of a bearer, shown once, and what the store keeps of it."""

    text: str
    lookup: bytes
    shown: str


def new_bearer(console: Console) -> NewText:
    text = PREFIX + base64.urlsafe_b64encode(console.entropy(32)).rstrip(b"=").decode()
    return NewText(text, console.secrets.pepper.current.mac("approval token", text.encode()), text[:_SHOWN])


async def find_bearer(console: Console, text: str) -> BearerPlace | None:
    """Where the bearer of this text belongs; None for one that is unknown, was revoked or has another text now."""
    if not text.startswith(PREFIX) or len(text) > 100 or not text.isascii():
        return None
    now_ms = console.now_ms()

    async def work(tx: Transaction) -> BearerPlace | None:
        for pepper in console.secrets.pepper.keys:
            lookup = pepper.mac("approval token", text.encode())
            place = await tx.row(BearerPlace, FIND_PLACE, lookup)
            if place is None:
                continue
            bearer = await tx.row(Bearer, FIND, place.project_id, place.id)
            if bearer is None or bearer.revoked_ms is not None or bearer.lookup != lookup:
                return None
            if now_ms - (bearer.used_ms or 0) >= _USED_EVERY_MS:
                await tx.run(USED, place.project_id, place.id, now_ms)
            return place
        return None

    return await console.store.transaction(work)
