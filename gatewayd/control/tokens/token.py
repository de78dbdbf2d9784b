"""Agent tokens as the store has them: a MAC under the project's token key, found through a keyed hash (`store/directory.py`).

The project's token key is HMAC of one value of the ring CONTROL_TOKEN_PEPPER and the project. Which value is kept (`token_keys`),
because gateways get one key for all its tokens: a new value of the ring serves projects that make their first token then.
"""

from typing import Final

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.keyring.ring import Ring
from gatewayd.control.store import directory
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.tokens.day_use import next_day_ms, used_up_of
from gatewayd.control.tokens.text import SHOWN, TokenKind, is_token
from gatewayd.link.formats.agent_tokens import token_mac
from gatewayd.link.formats.bundle import Agents, AgentToken

PEPPER_OF: Final = Statement("SELECT pepper FROM token_keys WHERE project_id = $1")
KEEP_PEPPER: Final = Statement("INSERT INTO token_keys (project_id, pepper) VALUES ($1, $2) ON CONFLICT (project_id) DO NOTHING")
OF_PROJECT: Final = Statement(
    "SELECT token_id, kind, name, person_id, mac, shown, created_ms, ends_ms, used_ms, revoked_ms, calls_a_day, rows_a_day"
    " FROM agent_tokens WHERE project_id = $1 AND token_id > $2 ORDER BY token_id LIMIT $3"
)
LIMITED: Final = Statement(
    "SELECT token_id, kind, name, person_id, mac, shown, created_ms, ends_ms, used_ms, revoked_ms, calls_a_day, rows_a_day"
    " FROM agent_tokens WHERE project_id = $1 AND token_id > $2 AND (calls_a_day IS NOT NULL OR rows_a_day IS NOT NULL)"
    " AND revoked_ms IS NULL ORDER BY token_id LIMIT $3"
)
FIND: Final = Statement(
    "SELECT token_id, kind, name, person_id, mac, shown, created_ms, ends_ms, used_ms, revoked_ms, calls_a_day, rows_a_day"
    " FROM agent_tokens WHERE project_id = $1 AND token_id = $2"
)
ADD: Final = Statement(
    "INSERT INTO agent_tokens"
    " (project_id, token_id, kind, name, person_id, mac, shown, created_ms, ends_ms, calls_a_day, rows_a_day)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
)
REVOKE: Final = Statement(
    "UPDATE agent_tokens SET revoked_ms = $3 WHERE project_id = $1 AND token_id = $2 AND revoked_ms IS NULL"
)
REVOKE_OF: Final = Statement(
    "UPDATE agent_tokens SET revoked_ms = $3 WHERE project_id = $1 AND person_id = $2 AND revoked_ms IS NULL"
)
USED: Final = Statement(
    "UPDATE agent_tokens SET used_ms = $3 WHERE project_id = $1 AND token_id = $2 AND COALESCE(used_ms, 0) < $3"
)
MOST: Final = 1000
"""Tokens that one project may have, revoked ones among them."""


class Token(msgspec.Struct, frozen=True):
    token_id: str
    kind: TokenKind
    name: str
    person_id: str
    mac: bytes
    shown: str
    created_ms: int
    ends_ms: int | None
    used_ms: int | None
    revoked_ms: int | None
    calls_a_day: int | None
    rows_a_day: int | None

    def is_valid(self, now_ms: int) -> bool:
        return self.revoked_ms is None and (self.ends_ms is None or now_ms < self.ends_ms)


class TokenKeyLost(Exception):
    """The ring CONTROL_TOKEN_PEPPER no longer has the value that the project's tokens were made with."""


async def token_key(tx: Transaction, pepper: Ring, project_id: str) -> bytes:
    """The project's token key, 32 bytes, settled when it is first asked for. Raises TokenKeyLost."""
    await tx.run(KEEP_PEPPER, project_id, pepper.current.key_id)
    key_id = str(await tx.value(PEPPER_OF, project_id))
    key = pepper.by_id(key_id)
    if key is None:
        raise TokenKeyLost(f"CONTROL_TOKEN_PEPPER has no value {key_id}, which the project's tokens were made with; put it back")
    return key.mac("token key", project_id.encode())


async def add_token(tx: Transaction, console: Console, place: ProjectPlace, text: str, token: Token) -> None:
    """Store a token whose text was just made; `token.mac` and `token.shown` are filled in here."""
    key = await token_key(tx, console.secrets.pepper, place.project_id)
    mac = bytes.fromhex(token_mac(key, text))
    await tx.run(
        ADD, place.project_id, token.token_id, token.kind, token.name, token.person_id, mac, text[:SHOWN], token.created_ms,
        token.ends_ms, token.calls_a_day, token.rows_a_day,
    )  # fmt: skip
    await directory.add_secret(tx, console.secrets.pepper, "agent_token", text, place)


async def find_token(tx: Transaction, console: Console, text: str, now_ms: int) -> tuple[ProjectPlace, Token] | None:
    """The valid token of a text, and where it belongs."""
    if not is_token(text):
        return None
    place = await directory.find_secret(tx, ProjectPlace, console.secrets.pepper, "agent_token", text)
    token = await tx.row(Token, FIND, place.project_id, place.id) if place is not None else None
    return (place, token) if place is not None and token is not None and token.is_valid(now_ms) else None


async def agents_of(tx: Transaction, console: Console, project_id: str, now_ms: int) -> Agents:
    """What a bundle says of agents: the project's token key and its valid tokens. A project without tokens lets no agent in."""
    key = await token_key(tx, console.secrets.pepper, project_id)
    valid = [token for token in await tx.rows(Token, OF_PROJECT, project_id, "0" * 26, MOST) if token.is_valid(now_ms)]
    used_up = await used_up_of(tx, project_id, valid, now_ms)
    return Agents(
        token_key=key.hex(),
        tokens=tuple(
            AgentToken(
                token.token_id,
                token.mac.hex(),
                token.name,
                token.person_id,
                token.ends_ms,
                next_day_ms(now_ms) if token.token_id in used_up else None,
            )
            for token in valid
        ),
    )
