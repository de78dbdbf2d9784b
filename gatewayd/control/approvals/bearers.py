"""Bearers of engines without a link: each is an origin of requests in its project, also after its text was changed."""

import base64
from typing import Final

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.store import directory
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction

PREFIX: Final = "ga_"
MOST: Final = 50
"""Bearers that one project may have, revoked ones among them."""
_KIND: Final = "approval_token"
_SHOWN: Final = 9
_USED_EVERY_MS: Final = 60_000

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


class NewText(msgspec.Struct, frozen=True):
    """The text of a bearer, shown once, and what the store keeps of it."""

    text: str
    lookup: bytes
    shown: str


def new_bearer(console: Console) -> NewText:
    text = PREFIX + base64.urlsafe_b64encode(console.entropy(32)).rstrip(b"=").decode()
    return NewText(text, directory.secret_hash(console.secrets.pepper.current, _KIND, text), text[:_SHOWN])


async def find_bearer(console: Console, text: str) -> ProjectPlace | None:
    """Where the bearer of this text belongs; None for one that is unknown, was revoked or has another text now."""
    if not text.startswith(PREFIX) or len(text) > 100 or not text.isascii():
        return None
    now_ms = console.now_ms()

    async def work(tx: Transaction) -> ProjectPlace | None:
        place = await directory.find_secret(tx, ProjectPlace, console.secrets.pepper, _KIND, text)
        bearer = await tx.row(Bearer, FIND, place.project_id, place.id) if place is not None else None
        if place is None or bearer is None or bearer.revoked_ms is not None or not _is_of(console, bearer, text):
            return None
        if now_ms - (bearer.used_ms or 0) >= _USED_EVERY_MS:
            await tx.run(USED, place.project_id, place.id, now_ms)
        return place

    return await console.store.transaction(work)


def _is_of(console: Console, bearer: Bearer, text: str) -> bool:
    """Whether it is the bearer's text now; the directory has its earlier ones, too."""
    return any(bearer.lookup == directory.secret_hash(key, _KIND, text) for key in console.secrets.pepper.keys)
