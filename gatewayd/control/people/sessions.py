"""Sessions: a cookie with a random id, of which the store has the hash. They end when idle, at their last time, or revoked."""

import base64
import hashlib
from typing import Final

import msgspec

from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store, Transaction

COOKIE: Final = "gatewayd"
IDLE_MS: Final = 12 * 3_600_000
WHOLE_MS: Final = 7 * 24 * 3_600_000
FRESH_MS: Final = 10 * 60_000
"""How long a sign-in counts as fresh for what changes keys, people and roles."""
_SEEN_EVERY_MS: Final = 60_000
_ID_BYTES: Final = 32
_AGENT_CHARACTERS: Final = 200

ADD: Final = Statement(
    "INSERT INTO sessions (session_hash, session_id, person_id, org_id, created_ms, seen_ms, ends_ms, proved_ms, method, address,"
    " agent) VALUES ($1, $2, $3, $4, $5, $5, $6, $5, $7, $8, $9)"
)
FIND: Final = Statement(
    "SELECT session_hash, session_id, person_id, org_id, created_ms, seen_ms, ends_ms, proved_ms, method, address, agent"
    " FROM sessions WHERE session_hash = $1"
)
OF_PERSON: Final = Statement(
    "SELECT session_hash, session_id, person_id, org_id, created_ms, seen_ms, ends_ms, proved_ms, method, address, agent"
    " FROM sessions WHERE person_id = $1 AND ends_ms > $2 AND seen_ms > $3 ORDER BY seen_ms DESC LIMIT 200"
)
SEEN: Final = Statement("UPDATE sessions SET seen_ms = $2 WHERE session_hash = $1 AND seen_ms < $2")
PROVED: Final = Statement("UPDATE sessions SET proved_ms = $2 WHERE session_hash = $1")
CHOOSE_ORGANISATION: Final = Statement("UPDATE sessions SET org_id = $2 WHERE session_hash = $1")
END: Final = Statement("DELETE FROM sessions WHERE session_hash = $1")
END_ONE: Final = Statement("DELETE FROM sessions WHERE person_id = $1 AND session_id = $2")
END_OTHERS: Final = Statement("DELETE FROM sessions WHERE person_id = $1 AND session_hash <> $2")
END_ALL: Final = Statement("DELETE FROM sessions WHERE person_id = $1")
SWEEP: Final = Statement("DELETE FROM sessions WHERE ends_ms <= $1 OR seen_ms <= $2")


class Session(msgspec.Struct, frozen=True):
    session_hash: bytes
    session_id: str
    person_id: str
    org_id: str | None
    created_ms: int
    seen_ms: int
    ends_ms: int
    proved_ms: int
    method: str
    address: str
    agent: str

    def is_alive(self, now_ms: int) -> bool:
        return now_ms < self.ends_ms and now_ms - self.seen_ms < IDLE_MS

    def is_fresh(self, now_ms: int) -> bool:
        return now_ms - self.proved_ms < FRESH_MS


class Visitor(msgspec.Struct, frozen=True):
    """Who begins a session, as its list shows it."""

    address: str
    agent: str


def hash_of(cookie: str) -> bytes:
    """256 random bits need no slow hash and no key."""
    return hashlib.sha256(b"gatewayd session\n" + cookie.encode()).digest()


def new_cookie(random: bytes) -> str:
    assert len(random) == _ID_BYTES
    return base64.urlsafe_b64encode(random).rstrip(b"=").decode()


async def begin(
    tx: Transaction, cookie: str, session_id: str, person_id: str, org_id: str | None, now_ms: int, method: str, visitor: Visitor
) -> None:
    """A new session, always under a new id: one that was there before signing in is worth nothing after it."""
    agent = visitor.agent[:_AGENT_CHARACTERS]
    ends_ms = now_ms + WHOLE_MS
    await tx.run(ADD, hash_of(cookie), session_id, person_id, org_id, now_ms, ends_ms, method, visitor.address, agent)


async def find(store: Store, cookie: str, now_ms: int) -> Session | None:
    """The living session of a cookie. Notes that it was seen, at most once a minute."""

    async def work(tx: Transaction) -> Session | None:
        session = await tx.row(Session, FIND, hash_of(cookie))
        if session is None or not session.is_alive(now_ms):
            return None
        if now_ms - session.seen_ms >= _SEEN_EVERY_MS:
            await tx.run(SEEN, session.session_hash, now_ms)
        return session

    return await store.transaction(work)
