"""Requests for writes as the store has them: who asked, the question as it came, how it stands.

Who asked is an `Asker`: the linked gateways of a project are one origin, since any of them may serve an agent's next call; a
standalone engine is one by the bearer it has, since two of them may call different databases by one name.
"""

from hashlib import sha256
from typing import Final

import msgspec

from gatewayd.approvals.messages import GateAsk
from gatewayd.approvals.rules import RequestStanding
from gatewayd.audit.ids import is_ulid
from gatewayd.control.notifications.sources import tell_expired
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.tokens.token import FIND as FIND_TOKEN
from gatewayd.control.tokens.token import Token
from gatewayd.link.formats.verdicts import grant_sha256

LINK: Final = "link"
"""The origin of all linked gateways of a project."""

CLAIMABLE: Final = Statement(
    "SELECT approval_id, state, expires_ms, decided_name AS decided_by, note, rows_at_most, claimed_by, expiry_told_to, outcome"
    " FROM approvals WHERE project_id = $1 AND grant_key = $2 AND state = 'approved' AND claimed_by IS NULL AND expires_ms > $3"
    " ORDER BY number DESC LIMIT 1"
)
NEWEST: Final = Statement(
    "SELECT approval_id, state, expires_ms, decided_name AS decided_by, note, rows_at_most, claimed_by, expiry_told_to, outcome"
    " FROM approvals WHERE project_id = $1 AND grant_key = $2 ORDER BY number DESC LIMIT 1"
)
OF_ASKER: Final = Statement(
    "SELECT approval_id, state, expires_ms, decided_name AS decided_by, note, rows_at_most, claimed_by, expiry_told_to, outcome"
    " FROM approvals WHERE project_id = $1 AND approval_id = $2 AND asker = $3"
)
ASKED: Final = Statement("SELECT ask FROM approvals WHERE project_id = $1 AND approval_id = $2 AND asker = $3")
ADD: Final = Statement(
    "INSERT INTO approvals (project_id, approval_id, number, grant_key, origin, asker, gateway_id, database_name, token_id,"
    " requester, fingerprint, ask, asked_ms, expires_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
)
CLAIM: Final = Statement(
    "UPDATE approvals SET claimed_by = $3, claimed_ms = $4 WHERE project_id = $1 AND approval_id = $2 AND state = 'approved'"
    " AND claimed_by IS NULL AND expires_ms > $4"
)
TELL_EXPIRY: Final = Statement(
    "UPDATE approvals SET expiry_told_to = $3 WHERE project_id = $1 AND approval_id = $2 AND"
    " (expiry_told_to IS NULL OR expiry_told_to = $3)"
)
DECIDE: Final = Statement(
    "UPDATE approvals SET state = $3, decided_by = $4, decided_name = $5, decided_ms = $6, note = $7, rows_at_most = $8"
    " WHERE project_id = $1 AND approval_id = $2 AND state = 'pending' AND expires_ms > $6"
    " AND ($9 OR requester IS NULL OR requester <> $4)"
)
NOTE_OUTCOME: Final = Statement(
    "UPDATE approvals SET outcome = $3, outcome_rows = $4"
    " WHERE project_id = $1 AND claimed_by = $2 AND origin = $5 AND outcome IS NULL"
)
ADD_PENDING: Final = Statement(
    "INSERT INTO approvals_pending (project_id, grant_key, approval_id, asker, expires_ms) VALUES ($1, $2, $3, $4, $5)"
)
DROP_PENDING: Final = Statement("DELETE FROM approvals_pending WHERE project_id = $1 AND approval_id = $2")
DROP_EXPIRED: Final = Statement("DELETE FROM approvals_pending WHERE project_id = $1 AND expires_ms <= $2 RETURNING approval_id")
OPEN_OF_ASKER: Final = Statement(
    "SELECT expires_ms FROM approvals_pending WHERE project_id = $1 AND asker = $2 ORDER BY expires_ms LIMIT $3"
)
ANSWERED: Final = Statement("SELECT grant_key, answer FROM approval_claims WHERE project_id = $1 AND query_id = $2")
KEEP_ANSWER: Final = Statement(
    "INSERT INTO approval_claims (project_id, query_id, grant_key, approval_id, shape_grant_id, answer, claimed_ms)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7)"
)
BEGIN_HEAD: Final = Statement(
    "INSERT INTO approval_heads (project_id, version) VALUES ($1, 0) ON CONFLICT (project_id) DO NOTHING"
)
MOVE_HEAD: Final = Statement("UPDATE approval_heads SET version = version + 1 WHERE project_id = $1 RETURNING version")
MINUTES: Final = Statement("SELECT minutes FROM approval_times WHERE project_id = $1 AND database_name = $2")


class Asker(msgspec.Struct, frozen=True):
    """Who speaks: an origin of a project. `gateway_id` is there for linked gateways."""

    org_id: str
    project_id: str
    origin: str
    gateway_id: str | None = None

    def named(self, token_id: str | None) -> str:
        """The asker of a token: whose requests may be seen, waited for and counted together."""
        return f"{self.origin} {token_id or ''}"


class _Expired(msgspec.Struct, frozen=True):
    approval_id: str


class Answered(msgspec.Struct, frozen=True):
    """What a query_id was answered before."""

    grant_key: bytes
    answer: str


def grant_of(ask: GateAsk) -> str:
    """The name of the grant key, as verdicts carry it."""
    return grant_sha256(sql=ask.sql, intent=ask.intent or "", database=ask.database, token_id=ask.mcp_token_id)


def key_of(asker: Asker, ask: GateAsk) -> bytes:
    """What a grant belongs to."""
    return sha256(f"gatewayd approval 1\n{asker.origin}\n{grant_of(ask)}\n{ask.effect}".encode()).digest()


async def begin_change(tx: Transaction, project_id: str) -> int:
    """Take the project's lock for changing its list, held until the transaction ends. Its next version: a number that
    rises in the order of changes, as ids made by several replicas do not."""
    await tx.run(BEGIN_HEAD, project_id)
    return int(await tx.value(MOVE_HEAD, project_id))


async def token_of(tx: Transaction, asker: Asker, token_id: str | None) -> Token | None:
    """The agent token of the project that a linked gateway names. What a standalone engine calls a token is none of ours."""
    if asker.origin != LINK or token_id is None or not is_ulid(token_id):
        return None
    return await tx.row(Token, FIND_TOKEN, asker.project_id, token_id)


async def requester_of(tx: Transaction, asker: Asker, ask: GateAsk) -> str | None:
    """The person whose token asks."""
    token = await token_of(tx, asker, ask.mcp_token_id)
    return token.person_id if token is not None else None


async def drop_expired(tx: Transaction, org_id: str, project_id: str, now_ms: int) -> None:
    """Requests that nobody decided in time are open no more, and those who want to know are told."""
    for each in await tx.rows(_Expired, DROP_EXPIRED, project_id, now_ms):
        await tell_expired(tx, org_id, project_id, each.approval_id, now_ms)


async def request_of(tx: Transaction, asker: Asker, approval_id: str, token_id: str | None) -> RequestStanding | None:
    return await tx.row(RequestStanding, OF_ASKER, asker.project_id, approval_id, asker.named(token_id))
