"""The link put together: what it has on its disk, enrolment, the poll and what else runs beside it. Made once by the daemon."""

import secrets
import sqlite3
from functools import partial
from pathlib import Path
from typing import Final

import trio

from gatewayd import __version__, log
from gatewayd.audit.ids import new_ulid
from gatewayd.audit.meta import Linked
from gatewayd.audit.service import AuditUnavailable
from gatewayd.config.settings import Settings
from gatewayd.corridor.gateway import Gateway
from gatewayd.corridor.reload import Reloader
from gatewayd.keys.ed25519 import SigningKey
from gatewayd.link.batches import has_rows_from
from gatewayd.link.client import ControlPlane, LinkClock
from gatewayd.link.enforcement import Enforcement
from gatewayd.link.enrol import EnrolmentFailed, enrol
from gatewayd.link.formats import trust as trusts
from gatewayd.link.formats.agent_tokens import AgentTable
from gatewayd.link.formats.bundle import AuditTerms, Seen
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.enrolment import read_token
from gatewayd.link.formats.trust import Trust
from gatewayd.link.gate import LinkGate
from gatewayd.link.kept import CLIENTS, Enrolled, Kept, KeptUnreadable
from gatewayd.link.poll import Poll
from gatewayd.link.push import Push
from gatewayd.link.simulation import send_catalogs
from gatewayd.link.standing import Standing
from gatewayd.link.statistics import LinkStatistics
from gatewayd.link.taints import LinkTaints

ENROL_AGAIN_S: Final = (5.0, 10.0, 20.0, 40.0, 60.0)
UNREADABLE: Final = "the state folder cannot be trusted: {}; `gatewayd link leave` and enrol again, or restore it"


class Link:
    """`begin` before anybody is served, `run` for the daemon's life."""

    def __init__(self, settings: Settings, gateway: Gateway, reloader: Reloader, identity: SigningKey) -> None:
        assert settings.link is not None
        self.standing = Standing()
        self.clock = LinkClock()
        self.clients_file = Path(settings.state_dir) / CLIENTS
        self._settings = settings
        self._gateway = gateway
        self._reloader = reloader
        self._identity = identity
        self._kept = Kept(settings.state_dir)
        run = new_ulid(self.clock.now_ms(), secrets.token_bytes)
        self._control = ControlPlane(settings.link, identity, self.clock, run, __version__)
        self._enforcement = Enforcement(settings, gateway, reloader, self._kept, self.standing, Seen("", ""))
        self._enrolled: Enrolled | None = None
        self._trust: Trust | None = None
        self._poll: Poll | None = None
        self._pusher: Push | None = None
        self._is_broken = False
        self.gate = LinkGate(self._control, self._present_trust)
        gateway.containing.taints = LinkTaints(self._control, self._present_trust)
        gateway.refusing = self.standing.refusing

    def agents(self) -> AgentTable | None:
        """Those who may come in, None where nobody needs a token."""
        return self._enforcement.agents

    def person_of(self, token_id: str | None) -> str | None:
        """The person who made the agent's token with this id; None if there is none."""
        return self._enforcement.agents.person_of(token_id) if self._enforcement.agents is not None else None

    def _present_trust(self) -> Trust | None:
        return self._poll.trust if self._poll is not None else self._trust

    def statistics(self) -> LinkStatistics:
        """The counts now."""
        bundle, poll, push = self._enforcement.bundle, self._poll, self._pusher
        return LinkStatistics(
            state=self.standing.name,
            is_cut=self.standing.is_cut,
            version=bundle.version if bundle is not None else 0,
            fresh_age_s=poll.fresh_age_s if poll is not None else 0.0,
            refused=self.standing.refused_calls,
            rejected=dict(self._enforcement.rejected),
            pushed=push.acknowledged if push is not None else 0,
            pushed_at_s=push.last_success_s if push is not None else 0.0,
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Enforces the cached bundle before it reports itself started; no network is needed for that."""
        async with self._control, trio.open_nursery() as nursery:
            await nursery.start(self._enforcement.run)
            try:
                await self._resume()
            except KeptUnreadable as unreadable:
                self.standing.cannot_enforce(UNREADABLE.format(unreadable), "ratchet")
            self.standing.begun()
            task_status.started()
            if self._is_broken:
                await trio.sleep_forever()
            is_new = self._enrolled is None
            if is_new:
                await self._enrol()
            await self._begin_instance(is_new=is_new)
            await self._linked(nursery)

    async def _resume(self) -> None:
        """What is on the disk: whom this gateway belongs to, whom it trusts, what it enforced. Raises KeptUnreadable."""
        self._is_broken = True
        enrolled = self._kept.enrolled()
        if enrolled is None:
            self._is_broken = False
            return
        if enrolled.identity != self._identity.key_id:
            raise KeptUnreadable("link.json belongs to another identity")
        kept, seen = self._kept.trust(), self._kept.ratchet()
        if kept is None or seen is None:
            raise KeptUnreadable("trust.json is missing" if kept is None else "ratchet.json is missing")
        if (seen.issuer, seen.project) != (enrolled.issuer, enrolled.project):
            raise KeptUnreadable("ratchet.json belongs to another project")
        try:
            trust = trusts.again(kept.envelope.encode(), kept.root)
        except (DocumentRefused, UnicodeEncodeError):
            raise KeptUnreadable("trust.json does not verify") from None
        self._is_broken = False
        self._take(enrolled, trust, seen)
        await self._enforcement.resume(trust)

    def _take(self, enrolled: Enrolled, trust: Trust, seen: Seen) -> None:
        self._enrolled, self._trust = enrolled, trust
        self._control.issuer, self._control.gateway = enrolled.issuer, enrolled.gateway
        self._enforcement.seen = seen

    async def _enrol(self) -> None:
        """With the token, again and again while that may help; without one, waits for a restart."""
        link = self._settings.link
        assert link is not None
        if link.enrol_token is None:
            log.error(
                log.ENROLMENT_FAILED, error="GATEWAY_ENROL_TOKEN: is unset; expected the token that the control plane shows"
            )
            await trio.sleep_forever()
            return
        try:
            token = read_token(link.enrol_token.reveal())
        except ValueError as wrong:
            log.error(log.ENROLMENT_FAILED, error=f"GATEWAY_ENROL_TOKEN: {wrong}")
            await trio.sleep_forever()
            return
        told = ""
        for failures in range(1_000_000):
            try:
                enrolled = await enrol(self._control, token, self._identity, self._kept, __version__, link.control_url)
                break
            except EnrolmentFailed as failed:
                text, is_final = str(failed), failed.is_final
            except OSError as failure:
                text, is_final = f"the state folder cannot be written ({failure.strerror})", False
            if text != told:
                told = text
                log.error(log.ENROLMENT_FAILED, error=text)
            if is_final:
                await trio.sleep_forever()
            await trio.sleep(ENROL_AGAIN_S[min(failures, len(ENROL_AGAIN_S) - 1)])
        log.info(log.LINKED, gateway=enrolled.gateway, project=enrolled.project)
        await self._resume()

    async def _begin_instance(self, *, is_new: bool) -> None:
        """What was recorded before the link is not the control plane's: its rows begin an instance of their own."""
        audit = self._gateway.audit
        while True:
            try:
                meta = await audit.meta()
                ran_linked = meta.linked is not None and meta.linked.linked
                has_rows = await audit.ask(partial(has_rows_from, seq=meta.first_seq)) or meta.pruned_to > 0
                if has_rows and (is_new or not ran_linked):
                    await audit.begin_instance("linked")
                if not ran_linked:
                    await audit.note_linked(Linked(True, 0.0))
                return
            except (AuditUnavailable, sqlite3.Error, OSError):
                await trio.sleep(1)

    async def _linked(self, nursery: trio.Nursery) -> None:
        trust = self._trust
        assert trust is not None
        audit, enforcement = self._gateway.audit, self._enforcement
        push = self._pusher = Push(
            self._control, audit, lambda: poll.trust, lambda: enforcement.bundle.audit if enforcement.bundle else AuditTerms()
        )
        poll = self._poll = Poll(self._control, self._gateway, enforcement, self._kept, self.standing, trust, push.heads)
        nursery.start_soon(poll.watch)
        nursery.start_soon(
            send_catalogs,
            self._control,
            self._gateway,
            lambda: poll.trust,
            lambda: enforcement.bundle is None or enforcement.bundle.view_definitions,
        )
        nursery.start_soon(self._push, poll, push)
        await poll.run()

    async def _push(self, poll: Poll, push: Push) -> None:
        """From the first answer on: it says what the control plane holds, unless it knows less than this gateway reports."""
        await poll.known.wait()
        await push.run(lambda: poll.held)
