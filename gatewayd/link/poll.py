"""The poll: status out, freshness and bundles in, over and over (docs/link-protocol.md, Poll).

The control plane holds a poll for up to `wait_s`, so a new bundle arrives at once. Everything in an answer that matters is signed
and names this very request; an answer without a good freshness statement is no answer of the control plane.
"""

import contextlib
import enum
import random
from collections.abc import Callable
from typing import Final

import msgspec
import trio

from gatewayd import __version__, log
from gatewayd.audit.service import AuditUnavailable
from gatewayd.corridor.gateway import Gateway
from gatewayd.link.client import ControlAnswer, ControlPlane, RequestRefused, Unreachable
from gatewayd.link.enforcement import Enforcement
from gatewayd.link.formats.answers import CUTTING, Freshness, PollAnswer, TreeHead, read_answer
from gatewayd.link.formats.bundle import FORMAT, SUPPORTED
from gatewayd.link.formats.documents import NO_ENVELOPE, DocumentRefused
from gatewayd.link.formats.status import DatabaseStatus, PollBody, Supports
from gatewayd.link.formats.trust import Trust, walked
from gatewayd.link.kept import ACCEPT_VERSION, FRESHNESS, TRUST, Kept, KeptFreshness, KeptTrust
from gatewayd.link.standing import Standing

WAIT_S: Final = 25.0
ANSWER_S: Final = 20.0
"""What an answer may take beyond the wait."""
LEAST_S: Final = 1.0
"""Between two polls, where the first brought nothing: a control plane that does not hold them must not be flooded."""
MOST_S: Final = 300.0
CUT_S: Final = 30.0
NOTE_WITHIN_S: Final = 2.0
LAST_S: Final = 1.0
"""How long the last word may take when the gateway stops."""
KEEP_FRESHNESS_MS: Final = 60_000
LOOK_S: Final = 1.0


class Untold(enum.Enum):
    """The control plane has not said what it holds of the audit."""

    UNTOLD = "untold"


UNTOLD: Final = Untold.UNTOLD


class AuditHeads(msgspec.Struct, frozen=True):
    """What the poll says of the audit: the file's own head, what was acknowledged, and the newest acks as they came."""

    head: TreeHead | None = None
    acked: TreeHead | None = None
    acks: tuple[bytes, ...] = ()


class Poll:
    """`trust` is the newest; `head` is what the control plane holds of the audit, as of the last poll."""

    def __init__(
        self,
        control: ControlPlane,
        gateway: Gateway,
        enforcement: Enforcement,
        kept: Kept,
        standing: Standing,
        trust: Trust,
        audit: Callable[[], AuditHeads] = AuditHeads,
        dice: random.Random | None = None,
    ) -> None:
        self.trust = trust
        self.held: TreeHead | Untold | None = UNTOLD
        self.answered = trio.Event()
        """Set by the first good answer."""
        self.known = trio.Event()
        """Set by that, or by the first refusal of what this gateway reports: the control plane takes its audit all the same."""
        self._control = control
        self._gateway = gateway
        self._enforcement = enforcement
        self._kept = kept
        self._standing = standing
        self._audit = audit
        self._dice = dice or random.Random()
        self._failures = 0
        self._behind = False
        self._note: str | None = None
        self._waiting: trio.CancelScope | None = None
        self._said: object = None
        self._urls_told: set[str] = set()
        self._fresh_at = trio.current_time()
        self._kept_fresh_ms = 0
        self._begin_freshness()

    @property
    def fresh_age_s(self) -> float:
        """Seconds since the control plane last confirmed the bundle in force."""
        return trio.current_time() - self._fresh_at

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Polls until cancelled."""
        task_status.started()
        try:
            while True:
                await self._accept_version()
                await self._enforcement.again()
                await trio.sleep(await self._once())
        except trio.Cancelled:
            await self._last_word()
            raise

    async def _last_word(self) -> None:
        """The head over what a stop leaves: else the proofs of the last minute would wait for the next start."""
        if self._failures or not self.answered.is_set():
            return
        with trio.move_on_after(LAST_S, shield=True), contextlib.suppress(AuditUnavailable, Unreachable, RequestRefused):
            note = await self._gateway.audit.head()
            if note is not None and note != self._note:
                await self._control.send(self._control.numbered("poll", self._body(0.0, note)), LAST_S, self.trust)

    async def watch(self) -> None:
        """What may change while a poll is held: the age of the bundle in force, whose clock starts with the last freshness
        statement that names it; and what was said of this gateway or signed by it, which is then said anew at once."""
        while True:
            if self._waiting is not None and self._said != self._news():
                self._waiting.cancel()
            bundle = self._enforcement.bundle
            if bundle is not None and self.fresh_age_s > bundle.fresh_for_s:
                self._standing.stale(bundle.version, round(self.fresh_age_s))
            await trio.sleep(LOOK_S)

    # -- one poll

    async def _once(self) -> float:
        """Seconds until the next."""
        wait_s = self._jittered(WAIT_S) if self.answered.is_set() else 0.0  # the first says how things stand, at once
        began = trio.current_time()
        try:
            taken = await self._ask(wait_s)
        except Unreachable as failure:
            self._standing.unreachable(failure.reason)
            return self._backoff(failure.retry_after_s)
        except RequestRefused as refused:
            return self._refused(refused)
        self._standing.reachable()
        self._standing.restored()
        if taken is False:  # it would be sent again at once
            return self._backoff(None)
        self._failures = 0
        took = trio.current_time() - began
        return max(0.0, self._jittered(LEAST_S) - took)

    async def _ask(self, wait_s: float) -> bool | None:
        """Whether the bundle of the answer was taken, None where there is none. Raises Unreachable, RequestRefused."""
        control = self._control
        self._note = await self._newest_note()
        sent = control.numbered("poll", self._body(wait_s, self._note))
        self._said = self._news()
        with trio.CancelScope() as self._waiting:  # nothing but the waiting: what an answer brought is taken whole
            answered = await control.send(sent, wait_s + ANSWER_S, self.trust)
        was_cut_off, self._waiting = self._waiting.cancelled_caught, None
        if was_cut_off:
            return None
        answer = _outside(answered)
        await self._walk(answer)
        try:
            freshness = read_answer(
                bytes(answer.freshness),
                Freshness,
                self.trust,
                control.clock.now_ms(),
                gateway=control.gateway,
                request=sent.digest,
            )
        except DocumentRefused as refused:
            raise Unreachable(f"its answer does not verify ({refused.check})") from None
        if (freshness.run, freshness.n) != (sent.request.run, sent.request.n):
            raise Unreachable("its answer does not verify (request)")
        self._standing.status_taken()
        taken = None
        if bytes(answer.bundle) != bytes(NO_ENVELOPE):
            taken = await self._enforcement.take(bytes(answer.bundle), self.trust, control.clock.now_ms())
        await self._heard(freshness)
        self.answered.set()
        self.known.set()
        return taken

    async def _walk(self, answer: PollAnswer) -> None:
        if not answer.trust:
            return
        try:
            trust, envelope = walked([bytes(each) for each in answer.trust], self.trust)
        except DocumentRefused as refused:
            log.error(log.TRUST_REJECTED, check=refused.check, reason=refused.reason)
            return
        if envelope is not None:
            try:
                await trio.to_thread.run_sync(self._keep_trust, trust, envelope)
            except OSError:
                return  # asked for again with the next poll, since our version did not rise
            self.trust = trust

    def _keep_trust(self, trust: Trust, envelope: bytes) -> None:
        self._kept.keep(TRUST, KeptTrust(trust.root_from_now_on, envelope.decode()))

    async def _heard(self, freshness: Freshness) -> None:
        self.held = freshness.head
        bundle = self._enforcement.bundle
        self._behind = freshness.version < self._enforcement.seen.version
        if bundle is not None and (freshness.version, freshness.sha256) == (bundle.version, self._enforcement.sha256):
            self._fresh_at = trio.current_time()
            self._standing.fresh(bundle.version)
            await self._keep_freshness(freshness)
        for url in bundle.public_urls if bundle is not None else ():
            if url not in freshness.public_urls and url not in self._urls_told:
                self._urls_told.add(url)
                log.warning(log.PUBLIC_URL_NOT_REGISTERED, url=url)
        self._urls_told -= set(freshness.public_urls)

    def _refused(self, refused: RequestRefused) -> float:
        """Only this cuts the link; the other reasons are the control plane's own trouble, or this machine's clock."""
        refusal = refused.refusal
        self._standing.reachable()
        if refusal.reason in CUTTING:
            self._standing.cut(refusal.reason, elsewhere=refusal.reason == "duplicated")
            return self._jittered(CUT_S)
        if refusal.reason == "clock":
            self._control.clock.learn(refusal.ts)
            return self._jittered(LEAST_S)
        if refusal.reason == "status":
            self._standing.status_refused(refusal.message)
            self.known.set()
            return self._jittered(CUT_S)
        return self._jittered(LEAST_S)

    # -- what is said, and kept

    def _news(self) -> object:
        """What the control plane is to hear of soon."""
        databases = self._gateway.databases.items()
        answers = tuple((name, database.refresher.statistics().answers, database.catalog.is_read) for name, database in databases)
        return self._standing.state, self._standing.problem, answers, self._gateway.audit.signed

    def _body(self, wait_s: float, note: str | None) -> PollBody:
        enforcement, standing = self._enforcement, self._standing
        bundle = enforcement.bundle
        audit = self._audit()
        return PollBody(
            state=standing.name,
            cut=standing.is_cut,
            version=bundle.version if bundle is not None else 0,
            sha256=enforcement.sha256,
            seen_version=enforcement.seen.version,
            trust_version=self.trust.version,
            supports=Supports(FORMAT, tuple(sorted(SUPPORTED)), __version__),
            wait_s=wait_s,
            databases=tuple(_statuses(self._gateway)),
            problem=standing.problem,
            head=audit.head,
            acked=audit.acked,
            newest=msgspec.Raw(enforcement.newest) if self._behind and enforcement.newest is not None else NO_ENVELOPE,
            acks=tuple(map(msgspec.Raw, audit.acks)) if self._behind else (),
            note=note,
        )

    async def _newest_note(self) -> str | None:
        """The newest signed head, for the control plane to keep; the audit makes them at its own pace. The first poll asks for
        one over what is there already; without one it goes all the same."""
        audit = self._gateway.audit
        if not self.answered.is_set():
            with trio.move_on_after(NOTE_WITHIN_S), contextlib.suppress(AuditUnavailable):
                return await audit.head()
        return audit.signed

    def _begin_freshness(self) -> None:
        """The clock goes on over a restart. Set back, it cannot make an old bundle younger than its last word."""
        kept = self._kept.freshness()
        if kept is None:
            return
        self._kept_fresh_ms = kept.fresh_ms
        self._fresh_at -= max(0, self._control.clock.now_ms() - kept.fresh_ms) / 1000

    async def _keep_freshness(self, freshness: Freshness) -> None:
        if abs(freshness.ts - self._kept_fresh_ms) < KEEP_FRESHNESS_MS:
            return
        self._kept_fresh_ms = freshness.ts
        try:
            await trio.to_thread.run_sync(self._kept.keep, FRESHNESS, KeptFreshness(freshness.ts, freshness.version))
        except OSError:
            self._kept_fresh_ms = 0

    async def _accept_version(self) -> None:
        """What somebody on this machine asked for with `gatewayd link accept-version`."""
        asked = self._kept.accept_version()
        if asked is None:
            return
        try:
            await self._enforcement.accepted(asked.version)
        except (AuditUnavailable, OSError):
            return  # asked again at the next poll
        await trio.to_thread.run_sync(self._kept.forget, ACCEPT_VERSION)

    def _jittered(self, seconds: float) -> float:
        return seconds * self._dice.uniform(0.8, 1.2)

    def _backoff(self, retry_after_s: float | None) -> float:
        self._failures += 1
        backoff = min(MOST_S, 2.0 ** min(self._failures - 1, 10))
        if retry_after_s is not None:
            backoff = max(backoff, min(retry_after_s, MOST_S))
        return min(MOST_S, self._jittered(backoff))


def _outside(answered: ControlAnswer) -> PollAnswer:
    try:
        if answered.status != 200:
            raise Unreachable(f"answered status {answered.status}", status=answered.status)
        return msgspec.json.decode(answered.data, type=PollAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Unreachable("what answers is no control plane") from None


def _statuses(gateway: Gateway) -> list[DatabaseStatus]:
    found = []
    for name, database in gateway.databases.items():
        read = database.refresher.statistics()
        found.append(DatabaseStatus(name, read.answers, read.revision, read.relations))
    return found
