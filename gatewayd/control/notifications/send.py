"""The sender: one replica at a time, under a lease, posts what is due. Slow receivers hold up nobody but themselves.

A channel whose deliveries fail for days is disabled, which is an act in the trail and so a notice to the others.
"""

import random
from contextlib import suppress
from typing import Final, final

import msgspec
import trio

from gatewayd.audit.ids import new_ulid
from gatewayd.control.console import Console
from gatewayd.control.keyring.sealing import Unsealable
from gatewayd.control.moment import moment
from gatewayd.control.notifications import channel as channels
from gatewayd.control.notifications import deliveries
from gatewayd.control.notifications.bodies import body_of
from gatewayd.control.notifications.channel import Channel, DisabledWhy, secrets_of, url_of
from gatewayd.control.notifications.deliveries import Delivery
from gatewayd.control.notifications.outbox import Told
from gatewayd.control.notifications.signing import headers
from gatewayd.control.organisation.every import every_organisation
from gatewayd.control.outbound.ask import Outbound, Unreachable
from gatewayd.control.store.failures import StoreUnavailable
from gatewayd.control.store.lease import run_leased
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act

TICK_S: Final = 1.0
FAILING_MS: Final = 3 * 86_400_000
"""A channel that delivered nothing for so long is disabled when one more delivery is given up."""
_AT_ONCE: Final = 32
_OF_ONE: Final = 4
"""Channels of one organisation that are served at once: its slow receivers leave room for others."""
_GONE: Final = 410


class _Due(msgspec.Struct, frozen=True):
    org_id: str


async def send_notifications(console: Console) -> None:
    """The service."""
    outbound = Outbound(console.settings.outbound_networks)

    async def work(_fence: int) -> None:
        await Sender(console, outbound).run()

    await run_leased(console.store, "notifications", console.replica, work)


@final
class Sender:
    def __init__(self, console: Console, outbound: Outbound) -> None:
        self._console: Final = console
        self._outbound: Final = outbound
        self._busy: Final[dict[str, str]] = {}
        """Channels that are being served, with their organisation."""

    async def run(self) -> None:
        """For ever."""
        async with trio.open_nursery() as nursery:
            while True:
                with suppress(StoreUnavailable):  # told by readiness; the next round asks again
                    await self.start_due(nursery)
                await trio.sleep(TICK_S)

    async def send_due(self) -> None:
        """Once, to the end: what is due now is tried."""
        async with trio.open_nursery() as nursery:
            await self.start_due(nursery)

    async def start_due(self, nursery: trio.Nursery) -> None:
        """Starts a task for each channel that has something due."""
        for due in await self._console.store.rows(_Due, deliveries.DUE, self._console.now_ms()):
            for found, claimed in await self._claimed(due.org_id):
                self._busy[found.channel_id] = due.org_id
                nursery.start_soon(self._serve, due.org_id, found, claimed)

    async def _claimed(self, org_id: str) -> list[tuple[Channel, list[Delivery]]]:
        now_ms = self._console.now_ms()
        room = min(_AT_ONCE - len(self._busy), _OF_ONE - sum(each == org_id for each in self._busy.values()))

        async def work(tx: Transaction) -> list[tuple[Channel, list[Delivery]]]:
            version = int(await tx.value(deliveries.VERSION, org_id) or 0)
            found: list[tuple[Channel, list[Delivery]]] = []
            await tx.run(deliveries.DROP_ORPHANS, org_id, now_ms)
            for each in await tx.rows(Channel, channels.OF_ORGANISATION, org_id):
                if each.disabled_ms is not None:  # queued while it was being disabled
                    await tx.run(deliveries.GIVE_UP, org_id, each.channel_id, deliveries.DISABLED)
                elif len(found) < room and each.channel_id not in self._busy:
                    claimed = await deliveries.claim(tx, org_id, each.channel_id, now_ms)
                    found += [(each, claimed)] if claimed else []
            await deliveries.move_on(tx, org_id, version)
            return found

        return await self._console.store.transaction(work)

    async def _serve(self, org_id: str, channel: Channel, claimed: list[Delivery]) -> None:
        """One after the other. After a failure the rest waits for the end of its claim: the receiver is probably down."""
        try:
            for each in claimed:
                if not await self._send(org_id, channel, each):
                    return
        except StoreUnavailable:
            return  # the claims end by themselves, and then it is tried again
        finally:
            del self._busy[channel.channel_id]

    async def _send(self, org_id: str, channel: Channel, delivery: Delivery) -> bool:
        answer, status = "", 0
        try:
            url, secrets = url_of(self._console, org_id, channel), secrets_of(self._console, org_id, channel)
            told = msgspec.json.decode(delivery.body, type=Told)
            body = body_of(told, channel.shape, self._console.settings.public_url)
            signed = headers(secrets, delivery.message_id, self._console.now_ms(), body)
            answered = await self._outbound.ask("POST", url, body, signed | {"content-type": "application/json"})
            status, answer = answered.status, str(answered.status)
        except Unreachable as unreachable:
            answer = str(unreachable)
        except Unsealable:
            answer = "the address cannot be opened: CONTROL_KMS_KEY lacks its key"
        works = 200 <= status < 300
        await self._settle(org_id, channel, delivery, works=works, answer=answer, is_gone=status == _GONE)
        return works

    async def _settle(
        self, org_id: str, channel: Channel, delivery: Delivery, *, works: bool, answer: str, is_gone: bool
    ) -> None:
        now, jitter = moment(self._console), random.random()

        async def work(tx: Transaction) -> None:
            state = await deliveries.settle(
                tx, org_id, delivery, works=works, answer=answer, now_ms=now.now_ms, jitter=jitter
            )  # fmt: skip
            if works:
                await tx.run(channels.WORKS, org_id, channel.channel_id)
                return
            await tx.run(channels.FAILS, org_id, channel.channel_id, now.now_ms)
            held = await tx.row(Channel, channels.FIND, org_id, channel.channel_id)
            since = held.failing_since_ms if held is not None else None
            is_over = state == "failed" and since is not None and now.now_ms - since >= FAILING_MS
            why: DisabledWhy = "gone" if is_gone else "failing"
            if (is_gone or is_over) and await tx.run(channels.DISABLE, org_id, channel.channel_id, now.now_ms, why):
                await tx.run(deliveries.GIVE_UP, org_id, channel.channel_id, deliveries.DISABLED)
                details = {"name": channel.name, "answer": answer, "why": why}
                await now.record(tx, org_id, Act("notification.disabled", None, channel.project_id, channel.channel_id, details))

        await self._console.store.transaction(work)


async def forget_deliveries(console: Console) -> None:
    """The service that removes what is older than KEPT_MS, by one replica at a time."""

    async def work(_fence: int) -> None:
        before = new_ulid(max(0, console.now_ms() - deliveries.KEPT_MS), bytes)
        for org_id in await every_organisation(console.store):
            await console.store.run(deliveries.FORGET, org_id, before)
        await trio.sleep(3600)

    await run_leased(console.store, "old notifications", console.replica, work)
