"""The control plane's nursery tree, drawn once: what starts, in which order, and how it drains.

    signals
      embedded PostgreSQL (self-host without CONTROL_DATABASE_URL)
        store: pool, migrations
          services: engines; days of the audit and what else runs for the whole control plane, each under a lease
            listener: pages, API, gateways, agents

First signal: readiness off; engines end their calls and leave, and push the last of their audit to the listener, which is
closed after them; requests in progress get their grace. Second: all of it is cancelled. A service that crashes takes the tree
down with it: exit 1, the service manager restarts.
"""

import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import trio

from gatewayd import __version__, log
from gatewayd import process_memory as memory
from gatewayd.config.crash import Foreseen, end_of
from gatewayd.config.exit_codes import UNAVAILABLE
from gatewayd.control.bounds import CONTROL_BOUNDS, ControlBounds
from gatewayd.control.changed_secrets import take_up, with_all_peppers
from gatewayd.control.console import Console
from gatewayd.control.database import store_address
from gatewayd.control.people.first_owner import first_owner_link
from gatewayd.control.services import SERVICES
from gatewayd.control.settings import ControlSettings
from gatewayd.control.store.failures import StoreUnavailable
from gatewayd.control.store.migrate import MigrationProblem, migrate
from gatewayd.control.store.store import Store
from gatewayd.control.trust.documents import TrustProblem
from gatewayd.control.web.surface import Surface
from gatewayd.http.listeners import why_not
from gatewayd.http.server import HttpServer
from gatewayd.notify.systemd import ServiceManager, feed_watchdog
from gatewayd.postgres.embedded import EmbeddedUnavailable

AGENTS_CALLS: Final = b"POST /mcp"
"""How the requests begin that come in floods: pages and gateways are not held up by them."""
STOP_BEYOND_GRACE_S: Final = 45.0
"""For engines, which are ended after the calls in progress, and for the embedded PostgreSQL after them."""

FORESEEN: Final = tuple(
    Foreseen(failure, is_configuration=failure is TrustProblem)
    for failure in (EmbeddedUnavailable, StoreUnavailable, MigrationProblem, TrustProblem)
)

MakeStore = Callable[[str], Store]
OnReady = Callable[[str, str | None], None]
"""Is given the console's address, and the first sign-in link while there is no owner yet."""
Prepare = Callable[[Console], Awaitable[None]]
"""Awaited once the store is of this version, before anybody is served."""


async def nothing_more(_console: Console) -> None:
    """The usual preparation."""


async def serve(
    settings: ControlSettings, *, on_ready: OnReady | None = None, prepare: Prepare = nothing_more, hangup_stops: bool = False
) -> int:
    """Run until stopped by a signal; the exit code. `settings` have their secrets (`with_secrets`).

    With `hangup_stops` SIGHUP is a signal to stop.
    """
    log.set_level(settings.log_level)
    for warning in settings.warnings:
        log.warning(log.CONFIGURATION_DOUBTFUL, detail=warning)
    plane = ControlPlane(settings, on_ready, prepare=prepare, hangup_stops=hangup_stops)
    try:
        await plane.run()
    except* Exception as crash:
        plane.exit_code = end_of(crash, FORESEEN)
    log.info(log.STOPPED, exit_code=plane.exit_code)
    return plane.exit_code


class ControlPlane:
    """One run. `stop` is the first signal; a test sets it itself."""

    def __init__(
        self,
        settings: ControlSettings,
        on_ready: OnReady | None = None,
        make_store: MakeStore = Store,
        *,
        prepare: Prepare = nothing_more,
        hangup_stops: bool = False,
        bounds: ControlBounds = CONTROL_BOUNDS,
    ) -> None:
        self.exit_code = 0
        self.stop = trio.Event()
        self._settings = settings
        self._on_ready = on_ready
        self._make_store = make_store
        self._prepare = prepare
        self._bounds = bounds
        self._signals = (signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hangup_stops else []))
        self._serving = trio.CancelScope()
        self._manager = ServiceManager(os.environ)

    async def run(self) -> None:
        """Serves until it is stopped."""
        async with trio.open_nursery() as watching:
            await watching.start(self._heed_signals)
            async with store_address(self._settings) as address:
                store = self._make_store(address)
                try:
                    await self._over(store)
                finally:
                    store.close()
            watching.cancel_scope.cancel()

    async def _over(self, store: Store) -> None:
        bare = Console(self._settings, store)
        await migrate(store, bare.replica, bare.now_ms())
        console = Console(await with_all_peppers(bare), store, bounds=self._bounds)
        await take_up(console)
        await self._prepare(console)
        link = await first_owner_link(console)
        with self._serving:
            async with trio.open_nursery() as services:
                for service in SERVICES:
                    services.start_soon(service, console)
                services.start_soon(feed_watchdog, self._manager, trio.lowlevel.checkpoint)
                await self._listen(console, link)
                services.cancel_scope.cancel()

    async def _listen(self, console: Console, link: str | None) -> None:
        settings = self._settings
        closing = trio.Event()
        surface = Surface(console, self.stop, closing)
        server = HttpServer(surface.handle, grace_s=settings.shutdown_grace_s, in_turns=AGENTS_CALLS)
        surface.watch_server(server.statistics)
        async with trio.open_nursery() as listener:
            try:
                await listener.start(partial(server.serve, settings.host, settings.port, stop=closing))
            except OSError as failure:
                why = why_not(failure, settings.host, settings.port, host_setting="CONTROL_HOST", port_setting="CONTROL_PORT")
                log.error(log.SERVICE_UNAVAILABLE, error=why)
                self.exit_code = UNAVAILABLE
                return
            memory.settle()
            log.info(log.CONTROL_STARTED, version=__version__, address=settings.public_url)
            if not self.stop.is_set():
                self._manager.ready(f"serving {settings.public_url}")
            if self._on_ready is not None:
                self._on_ready(settings.public_url, link)
            await self.stop.wait()
            console.engines.leave.set()
            await console.engines.ended.wait()
            closing.set()

    async def _heed_signals(self, *, task_status: trio.TaskStatus[None]) -> None:
        with trio.open_signal_receiver(*self._signals) as signals:
            task_status.started()
            async for number in signals:
                if self.stop.is_set():
                    self._serving.cancel()
                    continue
                log.info(log.STOPPING, signal=signal.Signals(number).name)
                self._manager.stopping(self._settings.shutdown_grace_s + STOP_BEYOND_GRACE_S)
                self.stop.set()
