"""What a held write is answered: the rules in their order, in one transaction (docs/control-plane.md, Approvals).

What this query claimed before; an approval to claim; a grant for its shape; a denial that holds; an expiry, once; the request
that is open; else a new one. Whoever opens a request holds the project's lock, so two questions at once open one.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import msgspec

from gatewayd.approvals.messages import Approved, Expired, GateAnswer, GateAsk, Outcome, Pending, Status, StatusAsked, Wait
from gatewayd.approvals.rules import OPEN_OF_ONE, NotAsked, RequestStanding, TooManyOpen, newest_says, status_of
from gatewayd.audit.ids import is_ulid
from gatewayd.control.approvals import attempts, requests
from gatewayd.control.approvals.grants import claim_grant
from gatewayd.control.approvals.requests import Answered, Asker, begin_change, drop_expired, key_of, request_of, token_of
from gatewayd.control.console import Console
from gatewayd.control.notifications.sources import tell_waiting
from gatewayd.control.projects.find import FIND as FIND_PROJECT
from gatewayd.control.projects.find import Project
from gatewayd.control.projects.terms import ProjectTerms, terms_of
from gatewayd.control.store.failures import OutcomeUnknown
from gatewayd.control.store.store import Store, Transaction

_RUNS: Final = 3
T = TypeVar("T")


class GateClosed(Exception):
    """The project gives no approvals now; the text says why."""


class _Asked(msgspec.Struct, frozen=True):
    ask: str


async def answer(console: Console, asker: Asker, ask: GateAsk) -> GateAnswer:
    """Claims what there is to claim, else joins or opens a request. Raises NotAsked, TooManyOpen, GateClosed.

    Cancelled: the claim may have happened. It is kept by the query_id, so the same question gets the same answer.
    """
    if not is_ulid(ask.query_id) or any("\0" in each for each in (ask.database, ask.mcp_token_id or "", ask.fingerprint)):
        raise NotAsked
    asking = _Asking(asker, ask, key_of(asker, ask), console.now_ms(), console.new_id(), console.settings.public_url)
    return await until_known(console.store, asking.answer)


async def wait_answer(console: Console, asker: Asker, wait: Wait) -> GateAnswer:
    """As `answer`, for the write that the request is about. Raises as it."""
    return await answer(console, asker, await asked(console, asker, wait))


async def asked(console: Console, asker: Asker, wait: Wait) -> GateAsk:
    """The question of a request, as asked by `wait.query_id`. Raises NotAsked."""
    named = asker.named(wait.mcp_token_id)
    found = None
    if is_ulid(wait.approval_id):
        found = await console.store.row(_Asked, requests.ASKED, asker.project_id, wait.approval_id, named)
    if found is None:
        raise NotAsked
    return msgspec.structs.replace(read_ask(found.ask), query_id=wait.query_id)


async def status(console: Console, asker: Asker, wanted: StatusAsked) -> Status:
    """How a request stands; another token's is not found. Claims nothing."""
    if not is_ulid(wanted.approval_id):
        return Status("not_found")
    now_ms = console.now_ms()
    found = await console.store.transaction(lambda tx: request_of(tx, asker, wanted.approval_id, wanted.mcp_token_id))
    return status_of(found, now_ms)


async def note_outcome(console: Console, asker: Asker, outcome: Outcome) -> None:
    """What became of a claim. The first word stands; of a query that claimed nothing, nothing is noted."""
    if is_ulid(outcome.query_id):
        told = (outcome.outcome, outcome.rows, asker.origin)
        await console.store.run(requests.NOTE_OUTCOME, asker.project_id, outcome.query_id, *told)


async def until_known(store: Store, work: Callable[[Transaction], Awaitable[T]]) -> T:
    """A transaction that may be done twice: it runs again when the connection was lost in COMMIT."""
    for _ in range(_RUNS - 1):
        try:
            return await store.transaction(work)
        except OutcomeUnknown:
            continue
    return await store.transaction(work)


def read_ask(text: str) -> GateAsk:
    """A question as the store keeps it."""
    return msgspec.json.decode(text, type=GateAsk)


class _Asking:
    """One question, with all that its transaction needs of the outside."""

    def __init__(self, asker: Asker, ask: GateAsk, key: bytes, now_ms: int, fresh_id: str, public_url: str) -> None:
        self._asker: Final = asker
        self._ask: Final = ask
        self._key: Final = key
        self._now_ms: Final = now_ms
        self._fresh_id: Final = fresh_id
        self._public_url: Final = public_url

    async def answer(self, tx: Transaction) -> GateAnswer:
        asker = self._asker
        project = await tx.row(Project, FIND_PROJECT, asker.org_id, asker.project_id)
        if project is None:
            raise NotAsked
        if project.state == "paused":
            raise GateClosed("the project is paused")
        found = await self._found(tx, project)
        if found is None:
            number = await begin_change(tx, asker.project_id)
            found = await self._found(tx, project) or await self._opened(tx, terms_of(project.settings), number)
        if isinstance(found, Pending):
            await tx.run(attempts.KEEP, asker.project_id, self._ask.query_id, found.approval_id)
            url = f"{self._public_url}/projects/{asker.project_id}/approvals/{found.approval_id}"
            return msgspec.structs.replace(found, review_url=url)
        return found

    async def _found(self, tx: Transaction, project: Project) -> GateAnswer | None:
        project_id, query_id = self._asker.project_id, self._ask.query_id
        before = await tx.row(Answered, requests.ANSWERED, project_id, query_id)
        if before is not None:
            if before.grant_key != self._key:
                raise NotAsked
            return msgspec.json.decode(before.answer, type=Approved)
        claimable = await tx.row(RequestStanding, requests.CLAIMABLE, project_id, self._key, self._now_ms)
        if claimable is not None and await self._claimed(tx, claimable):
            return claimable.approved()
        granted = await claim_grant(tx, project, self._asker, self._ask, self._key, self._now_ms)
        if granted is not None:
            return granted
        newest = await tx.row(RequestStanding, requests.NEWEST, project_id, self._key)
        found = newest_says(newest, query_id, self._now_ms)
        if isinstance(found, Expired) and newest is not None:
            is_told = await tx.run(requests.TELL_EXPIRY, project_id, newest.approval_id, query_id)
            return found if is_told else None
        return found

    async def _claimed(self, tx: Transaction, claimable: RequestStanding) -> bool:
        """Whether it is ours: another query may have been quicker."""
        project_id, query_id = self._asker.project_id, self._ask.query_id
        if not await tx.run(requests.CLAIM, project_id, claimable.approval_id, query_id, self._now_ms):
            return False
        text = msgspec.json.encode(claimable.approved()).decode()
        kept = (self._key, claimable.approval_id, None, text, self._now_ms)
        await tx.run(requests.KEEP_ANSWER, project_id, query_id, *kept)
        return True

    async def _opened(self, tx: Transaction, terms: ProjectTerms, number: int) -> Pending:
        """A new request. The project's lock is held."""
        asker, ask, now_ms, approval_id = self._asker, self._ask, self._now_ms, self._fresh_id
        project_id, named = asker.project_id, asker.named(ask.mcp_token_id)
        await drop_expired(tx, asker.org_id, project_id, now_ms)
        opened = await tx.rows(_Open, requests.OPEN_OF_ASKER, project_id, named, OPEN_OF_ONE)
        if len(opened) >= OPEN_OF_ONE:
            raise TooManyOpen(opened[0].expires_ms, now_ms)
        minutes = await tx.value(requests.MINUTES, project_id, ask.database) or terms.approval_minutes
        expires_ms = now_ms + int(minutes) * 60_000
        token = await token_of(tx, asker, ask.mcp_token_id)
        await tx.run(
            requests.ADD, project_id, approval_id, number, self._key, asker.origin, named, asker.gateway_id, ask.database,
            token.token_id if token else None, token.person_id if token else None, ask.fingerprint,
            msgspec.json.encode(ask).decode(), now_ms, expires_ms,
        )  # fmt: skip
        await tx.run(requests.ADD_PENDING, project_id, self._key, approval_id, named, expires_ms)
        await tell_waiting(
            tx, asker.org_id, project_id, approval_id, database=ask.database, token=token.name if token else None,
            agent=ask.agent_name, now_ms=now_ms,
        )  # fmt: skip
        return Pending(approval_id=approval_id, expires_at=expires_ms)


class _Open(msgspec.Struct, frozen=True):
    expires_ms: int
