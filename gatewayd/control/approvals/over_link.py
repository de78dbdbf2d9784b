"""Approvals over the link: the messages of docs/approvals.md as signed requests, answered by verdicts that name the request, the
query and the grant key (docs/link-protocol.md, Approvals)."""

from collections.abc import Awaitable
from typing import assert_never

from gatewayd.approvals.messages import (
    Approved,
    Expired,
    GateAnswer,
    GateAsk,
    GateDenied,
    Outcome,
    Pending,
    StatusAsked,
    Wait,
)
from gatewayd.approvals.rules import NotAsked, TooManyOpen
from gatewayd.control.approvals import answer as answers
from gatewayd.control.approvals.answer import GateClosed
from gatewayd.control.approvals.requests import LINK, Asker, grant_of
from gatewayd.control.approvals.waiting import waited
from gatewayd.control.console import Console
from gatewayd.control.gateways.exchanges import Presence
from gatewayd.control.gateways.reply import BAD, Reply, refused
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.trust.signing import signers
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.requests import ReadRequest, read_body
from gatewayd.link.formats.verdicts import ApprovalStatus, ApprovalVerdict, sign_verdict

_NOT_ASKED = refused(409, "no such request of this token, or the query_id stands for another write")


async def ask(console: Console, place: ProjectPlace, found: ReadRequest) -> Reply:
    try:
        body = read_body(found.request.body, GateAsk)
    except DocumentRefused:
        return BAD
    verdict = _Verdicts(console, place, found, body.query_id, grant_of(body))
    return await verdict.of(answers.answer(console, _asker(place), body))


async def wait(console: Console, place: ProjectPlace, found: ReadRequest, presence: Presence) -> Reply:
    try:
        body = read_body(found.request.body, Wait)
        asked = await answers.asked(console, _asker(place), body)
    except DocumentRefused:
        return BAD
    except NotAsked:
        return _NOT_ASKED
    verdict = _Verdicts(console, place, found, body.query_id, grant_of(asked))
    return await verdict.of(waited(console, _asker(place), body, presence))


async def status(console: Console, place: ProjectPlace, found: ReadRequest) -> Reply:
    try:
        body = read_body(found.request.body, StatusAsked)
    except DocumentRefused:
        return BAD
    told = await answers.status(console, _asker(place), body)
    verdict = _Verdicts(console, place, found, "", "")
    return verdict.signed(
        told.status, approval_id=body.approval_id, by=told.by, note=told.note, expires_at=told.expires_at
    )  # fmt: skip


async def outcome(console: Console, place: ProjectPlace, found: ReadRequest) -> Reply:
    try:
        body = read_body(found.request.body, Outcome)
    except DocumentRefused:
        return BAD
    await answers.note_outcome(console, _asker(place), body)
    return _Verdicts(console, place, found, body.query_id, "").signed("noted")


def _asker(place: ProjectPlace) -> Asker:
    return Asker(place.org_id, place.project_id, LINK, place.id)


class _Verdicts:
    """Verdicts about one request of a gateway."""

    def __init__(self, console: Console, place: ProjectPlace, found: ReadRequest, query_id: str, grant: str) -> None:
        self._console = console
        self._about = (place.id, found.digest, query_id, grant)

    async def of(self, asking: Awaitable[GateAnswer]) -> Reply:
        """The verdict that this answer is told as."""
        try:
            found = await asking
        except NotAsked:
            return _NOT_ASKED
        except GateClosed as closed:
            return self.signed("unavailable", note=str(closed))
        except TooManyOpen as full:
            retry_at = self._console.now_ms() + full.retry_after_s * 1000
            return self.signed("unavailable", note=str(full), expires_at=retry_at)
        match found:
            case Approved(by=by, note=note, rows_at_most=rows, approval_id=approval_id):
                return self.signed("approved", by=by, note=note, rows_at_most=rows, approval_id=approval_id)
            case GateDenied(by=by, note=note, approval_id=approval_id):
                return self.signed("denied", by=by, note=note, approval_id=approval_id)
            case Expired(approval_id=approval_id):
                return self.signed("expired", approval_id=approval_id)
            case Pending(approval_id=approval_id, expires_at=expires_at, review_url=url):
                return self.signed("pending", approval_id=approval_id, expires_at=expires_at, review_url=url)
            case _ as unreachable:
                assert_never(unreachable)

    def signed(
        self,
        status: ApprovalStatus,
        *,
        approval_id: str | None = None,
        by: str | None = None,
        note: str | None = None,
        rows_at_most: int | None = None,
        expires_at: int | None = None,
        review_url: str | None = None,
    ) -> Reply:
        now_ms = self._console.now_ms()
        told = ApprovalVerdict(*self._about, status, now_ms, approval_id, by, note, rows_at_most, expires_at, review_url)
        return Reply(200, sign_verdict(told, signers(self._console.secrets.signing)))
