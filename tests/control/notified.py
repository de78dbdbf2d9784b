"""An organisation with webhooks before a receiver of the tests, and a sender whose clock the test moves."""

import ipaddress

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.notifications import channel as channels
from gatewayd.control.notifications import deliveries, manage
from gatewayd.control.notifications.channel import Channel
from gatewayd.control.notifications.deliveries import Delivery
from gatewayd.control.notifications.kinds import CHOICES
from gatewayd.control.notifications.manage import NewWebhook
from gatewayd.control.notifications.send import Sender
from gatewayd.control.outbound.ask import Outbound
from gatewayd.control.settings import ControlSettings
from gatewayd.control.store.store import Store
from tests.control.approval_world import World, make_world

HERE = (ipaddress.ip_network("127.0.0.0/8"),)
LAST = "7" + "Z" * 25
DAY_MS = 86_400_000


class Clock:
    """Begins at the time of the machine's start of the world, so that ids and rows agree, and is moved by hand."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


class Notified:
    def __init__(self, world: World, clock: Clock) -> None:
        self.world = world
        self.clock = clock
        self.console = world.console
        self.outbound = Outbound(HERE, ask_s=5)

    async def add(
        self, url: str, *kinds: str, shape: str = "standard", project: str = "", name: str = "Pager"
    ) -> tuple[str, str]:
        """Its id and secret. Without kinds: all."""
        new = msgspec.convert(
            {"name": name, "url": url, "kinds": kinds or CHOICES, "shape": shape, "project": project}, NewWebhook
        )  # fmt: skip
        added = await manage.add(await self.world.call("Agnes"), new)
        await self.send()  # others are told of this one: before the test begins
        return added

    async def send(self) -> None:
        await Sender(self.console, self.outbound).send_due()

    async def channel(self, channel_id: str) -> Channel:
        found = await self.console.store.row(Channel, channels.FIND, self.world.org, channel_id)
        assert found is not None
        return found

    async def deliveries(self, channel_id: str) -> list[Delivery]:
        """The newest first."""
        return await self.console.store.rows(Delivery, deliveries.OF_CHANNEL, self.world.org, channel_id, LAST, 50)


async def notified(settings: ControlSettings, store: Store, start_ms: int = 1_763_800_000_000) -> Notified:
    clock = Clock(start_ms)
    settings = msgspec.structs.replace(settings, outbound_networks=HERE)
    return Notified(await make_world(Console(settings, store, clock=clock)), clock)
