"""Requests for people: what waits for a decision, one with all that there is to say about it, and what became of earlier ones.

Names of people, tokens and gateways are looked up here, so that a page only draws. Statements, intents and agents' names are
other people's text.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from gatewayd.approvals.messages import GateAsk, GrantState
from gatewayd.approvals.rules import RequestStanding, status_of
from gatewayd.audit.ids import is_ulid
from gatewayd.control.approvals.answer import read_ask
from gatewayd.control.console import Console
from gatewayd.control.projects.find import FIRST_ID
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.taint.grants import OF_GRANT, Taint, grant_key

PAGE: Final = 50
COUNTED: Final = 100
LAST_ID: Final = "7" + "Z" * 25
"""Above every ULID: where a list of the newest begins."""

PENDING: Final = Statement(
    "SELECT a.approval_id, a.state, a.expires_ms, a.decided_name AS decided_by, a.note, a.rows_at_most, a.claimed_by,"
    " a.expiry_told_to, a.outcome, a.origin, a.asker, a.gateway_id, a.token_id, a.requester, a.fingerprint, a.ask, a.asked_ms,"
    " a.decided_by AS decider, a.decided_ms, a.claimed_ms, a.outcome_rows"
    " FROM approvals_pending AS p JOIN approvals AS a ON a.project_id = p.project_id AND a.approval_id = p.approval_id"
    " WHERE p.project_id = $1 AND p.approval_id > $2 AND p.expires_ms > $3 ORDER BY p.approval_id LIMIT $4"
)
PENDING_COUNT: Final = Statement(
    "SELECT count(*) FROM (SELECT 1 FROM approvals_pending WHERE project_id = $1 AND expires_ms > $2 LIMIT $3) AS few"
)
ONE: Final = Statement(
    "SELECT approval_id, state, expires_ms, decided_name AS decided_by, note, rows_at_most, claimed_by, expiry_told_to, outcome,"
    " origin, asker, gateway_id, token_id, requester, fingerprint, ask, asked_ms, decided_by AS decider, decided_ms, claimed_ms,"
    " outcome_rows FROM approvals WHERE project_id = $1 AND approval_id = $2"
)
OVER: Final = Statement(
    "SELECT approval_id, state, expires_ms, decided_name AS decided_by, note, rows_at_most, claimed_by, expiry_told_to, outcome,"
    " origin, asker, gateway_id, token_id, requester, fingerprint, ask, asked_ms, decided_by AS decider, decided_ms, claimed_ms,"
    " outcome_rows FROM approvals WHERE project_id = $1 AND approval_id < $2 AND (state <> 'pending' OR expires_ms <= $3)"
    " ORDER BY approval_id DESC LIMIT $4"
)
APPROVED_BEFORE: Final = Statement(
    "SELECT approval_id, state, expires_ms, decided_name AS decided_by, note, rows_at_most, claimed_by, expiry_told_to, outcome,"
    " origin, asker, gateway_id, token_id, requester, fingerprint, ask, asked_ms, decided_by AS decider, decided_ms, claimed_ms,"
    " outcome_rows FROM approvals WHERE project_id = $1 AND fingerprint = $2 AND approval_id < $3 AND state = 'approved'"
    " ORDER BY approval_id DESC LIMIT 1"
)
PEOPLE: Final = Statement("SELECT person_id AS id, name FROM people WHERE person_id = ANY($1)")
TOKENS: Final = Statement("SELECT token_id AS id, name FROM agent_tokens WHERE project_id = $1 AND token_id = ANY($2)")
GATEWAYS: Final = Statement("SELECT gateway_id AS id, name FROM gateways WHERE project_id = $1 AND gateway_id = ANY($2)")
BEARERS: Final = Statement("SELECT token_id AS id, name FROM approval_tokens WHERE project_id = $1 AND token_id = ANY($2)")


class StoredRequest(RequestStanding, frozen=True):
    """A request with what people are shown of it; `decider` and `requester` are person ids."""

    origin: str
    asker: str
    gateway_id: str | None
    token_id: str | None
    requester: str | None
    fingerprint: str
    ask: str
    asked_ms: int
    decider: str | None
    decided_ms: int | None
    claimed_ms: int | None
    outcome_rows: int | None


class ShownRequest(msgspec.Struct, frozen=True):
    """One request. `ask` is the question as the gateway sent it: statement, tables, preview, agent and its claimed intent.

    `gateway` is the name of a linked gateway or of a standalone one's bearer, `token` that of the agent's token, `requester` that
    of its person. `status` is `pending` while it can be decided. `ran_as` is the query_id that spent the approval.
    """

    id: str
    status: GrantState
    ask: GateAsk
    gateway: str | None
    token: str | None
    requester: str | None
    requester_id: str | None
    asked_ms: int
    expires_ms: int
    decided_by: str | None
    decided_ms: int | None
    note: str | None
    rows_at_most: int | None
    ran_as: str | None
    outcome: str | None
    outcome_rows: int | None


class ShownRequests(msgspec.Struct, frozen=True):
    """`next` is what the following page begins after, None at the end."""

    requests: list[ShownRequest]
    next: str | None


class ReadSource(msgspec.Struct, frozen=True):
    """What taints whoever asks: `source` is `<database>:<table>`, whose rows hold other people's text."""

    source: str
    since_ms: int


class OneRequest(msgspec.Struct, frozen=True):
    """`approved_before`: the last request of the same fingerprint that was approved, to compare with. `tainted_by`: the agent
    has read it and nobody has cleared that, so the write may be what the text asked for."""

    request: ShownRequest
    approved_before: ShownRequest | None
    tainted_by: ReadSource | None


class Named(msgspec.Struct, frozen=True):
    id: str
    name: str


async def pending(console: Console, project_id: str, after: str = FIRST_ID, most: int = PAGE) -> ShownRequests:
    """What waits for a decision, the oldest first, at most `most`."""
    now_ms = console.now_ms()

    async def work(tx: Transaction) -> ShownRequests:
        found = await tx.rows(StoredRequest, PENDING, project_id, after, now_ms, most + 1)
        return await _page(tx, project_id, found, now_ms, most)

    return await console.store.transaction(work)


async def over(console: Console, project_id: str, before: str = LAST_ID) -> ShownRequests:
    """What was decided or has expired, the newest first."""
    now_ms = console.now_ms()

    async def work(tx: Transaction) -> ShownRequests:
        found = await tx.rows(StoredRequest, OVER, project_id, before, now_ms, PAGE + 1)
        return await _page(tx, project_id, found, now_ms, PAGE)

    return await console.store.transaction(work)


async def pending_count(console: Console, project_id: str) -> int:
    """How many wait for a decision; COUNTED: so many or more."""
    return int(await console.store.value(PENDING_COUNT, project_id, console.now_ms(), COUNTED))


async def one(console: Console, project_id: str, approval_id: str) -> OneRequest | None:
    """None: there is no such request in the project."""
    if not is_ulid(approval_id):
        return None
    now_ms = console.now_ms()

    async def work(tx: Transaction) -> OneRequest | None:
        found = await tx.row(StoredRequest, ONE, project_id, approval_id)
        if found is None:
            return None
        before = await tx.row(StoredRequest, APPROVED_BEFORE, project_id, found.fingerprint, found.approval_id)
        shown = await _shown(tx, project_id, [found] if before is None else [found, before], now_ms)
        return OneRequest(shown[0], shown[1] if before is not None else None, await _tainted_by(tx, project_id, found))

    return await console.store.transaction(work)


async def _tainted_by(tx: Transaction, project_id: str, found: StoredRequest) -> ReadSource | None:
    """Gateways that are not linked keep their taints to themselves."""
    if found.gateway_id is None:
        return None
    taint = await tx.row(Taint, OF_GRANT, project_id, grant_key(found.token_id or "", found.gateway_id))
    return None if taint is None else ReadSource(taint.source, taint.tainted_ms)


async def _page(tx: Transaction, project_id: str, found: Sequence[StoredRequest], now_ms: int, most: int) -> ShownRequests:
    shown = await _shown(tx, project_id, found[:most], now_ms)
    return ShownRequests(shown, shown[-1].id if len(found) > most else None)


async def _shown(tx: Transaction, project_id: str, found: Sequence[StoredRequest], now_ms: int) -> list[ShownRequest]:
    people = await tx.rows(Named, PEOPLE, _ids(each.requester for each in found))
    names = {each.id: each.name for each in people}
    for statement, ids in (
        (TOKENS, _ids(each.token_id for each in found)),
        (GATEWAYS, _ids(each.gateway_id for each in found)),
        (BEARERS, _ids(each.origin for each in found)),
    ):
        if ids:
            names |= {each.id: each.name for each in await tx.rows(Named, statement, project_id, ids)}
    return [
        ShownRequest(
            each.approval_id, status_of(each, now_ms).status, read_ask(each.ask), names.get(each.gateway_id or each.origin),
            names.get(each.token_id or ""), names.get(each.requester or ""), each.requester, each.asked_ms, each.expires_ms,
            each.decided_by, each.decided_ms, each.note, each.rows_at_most, each.claimed_by, each.outcome, each.outcome_rows,
        )
        for each in found
    ]  # fmt: skip


def _ids(found: Iterable[str | None]) -> list[str]:
    return sorted({each for each in found if each is not None and is_ulid(each)})
