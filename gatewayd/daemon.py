"""The nursery tree, drawn once: what starts, in which order, and how it drains (docs/architecture.md).

    signals
      audit file, its writer and its heads
        services: databases (a pool and a catalog refresher each), senders, watchdog, status
          listener: HTTP or stdio, each request's own tasks; reloads by SIGHUP

Everything closes in the reverse order. A service that crashes takes the tree down with it: exit 1, the service manager restarts.
"""

import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from gatewayd import __version__, log
from gatewayd import process_memory as memory
from gatewayd.audit.events import DEFAULT_DATABASE
from gatewayd.audit.service import Audit, AuditFileLocked, AuditFileUnusable, AuditUnavailable, IdentityRefused, open_audit
from gatewayd.config.crash import Foreseen, end_of
from gatewayd.config.exit_codes import UNAVAILABLE
from gatewayd.config.settings import Settings
from gatewayd.corridor.databases import Databases, check_masks
from gatewayd.corridor.gateway import Database, Gateway, Masking
from gatewayd.corridor.hold import HeldWrites
from gatewayd.corridor.kept_taints import TAINTS, KeptTaints
from gatewayd.corridor.reload import Reloader
from gatewayd.keys.identity import ensure_identity
from gatewayd.link.local_mode import keep_what_the_link_owed
from gatewayd.mcp.dispatch import Dispatch
from gatewayd.mcp.known_clients import KnownClients
from gatewayd.mcp.tools.surface import tools_of
from gatewayd.notify.completed_calls import to_telemetry, to_webhook
from gatewayd.notify.systemd import ServiceManager, feed_watchdog, keep_status
from gatewayd.notify.telemetry import Telemetry
from gatewayd.notify.webhook import DenyWebhook
from gatewayd.policy.file.problem import PolicyErrors

if TYPE_CHECKING:
    from gatewayd.link.service import Link

STOP_BEYOND_GRACE_S: Final = 45.0
"""How long stopping may take after the grace: confirming cancelled statements, closing rows, the senders' last second."""

FORESEEN: Final = (
    Foreseen(AuditFileLocked, is_configuration=False),
    Foreseen(AuditFileUnusable, is_configuration=True, setting="DB_PATH"),
    Foreseen(IdentityRefused, is_configuration=True, setting="GATEWAY_STATE_DIR"),
    Foreseen(PolicyErrors, is_configuration=True),
)

OnReady = Callable[[str], None]
Announce = Callable[[str], Awaitable[None]]


async def serve(
    settings: Settings, *, on_ready: OnReady | None = None, hangup_stops: bool = False, stop_at_eof: bool = False
) -> int:
    """Run until stopped by a signal or by the client of stdio; the exit code (decision 13).

    `on_ready` is called once with the address that answers: `http://host:port/mcp`, or `stdio`. With `hangup_stops` SIGHUP is a
    signal to stop, else it reads the policy file again. With `stop_at_eof` the end of standard input is one, too.
    """
    log.set_level(settings.log_level)
    for warning in settings.warnings:
        log.warning(log.CONFIGURATION_DOUBTFUL, detail=warning)
    daemon = _Daemon(settings, on_ready, hangup_stops, stop_at_eof)
    try:
        await daemon.run()
    except* Exception as crash:
        daemon.exit_code = end_of(crash, FORESEEN)
    log.info(log.STOPPED, exit_code=daemon.exit_code)
    return daemon.exit_code


class _Daemon:
    """One run of the daemon. `_stop` is the first signal, `_serving` what the second cancels."""

    def __init__(self, settings: Settings, on_ready: OnReady | None, hangup_stops: bool, stop_at_eof: bool) -> None:
        self.exit_code = 0
        self._settings = settings
        self._on_ready = on_ready
        self._hangup_stops = hangup_stops
        self._stop_at_eof = stop_at_eof
        self._stop = trio.Event()
        self._serving = trio.CancelScope()
        self._manager = ServiceManager(os.environ)
        self._webhook: DenyWebhook | None = None
        self._link: Link | None = None
        # One is enough: a reload that has not begun yet serves the later signals too.
        self._hung_up, self._hangups = trio.open_memory_channel[None](1)

    async def run(self) -> None:
        settings = self._settings
        async with trio.open_nursery() as watching:
            await watching.start(self._heed_signals)
            await watching.start(self._heed_hangups)
            if self._stop_at_eof:
                watching.start_soon(self._heed_eof)
            async with (
                open_audit(
                    settings.db_path,
                    settings.audit_synchronous,
                    state_dir=settings.state_dir,
                    credentials_dir=settings.credentials_dir,
                ) as audit,
                trio.open_nursery() as services,
            ):
                databases = Databases()
                await services.start(databases.run)
                approvals = await services.start(self._approvals) if settings.approval_url is not None else None
                gateway = await self._gateway(audit, databases, approvals)
                self._webhook = await self._start_senders(gateway, services)
                await services.start(feed_watchdog, self._manager, audit.answers)
                reloader = Reloader(settings, gateway, databases)
                if settings.link is not None:
                    self._link = await services.start(self._linked, gateway, reloader)
                else:
                    services.start_soon(keep_what_the_link_owed, audit)
                with self._serving:
                    await self._listen(gateway, reloader, services)
                services.cancel_scope.cancel()
            watching.cancel_scope.cancel()

    async def _approvals(self, *, task_status: trio.TaskStatus[HeldWrites]) -> None:
        """The approval gate and what tells it of outcomes. When cancelled that gets a last second."""
        from gatewayd.approvals.http_gate import HttpGate  # imports httpx, which is needed only where a gate is configured

        settings = self._settings
        assert settings.approval_url is not None
        assert settings.approval_token is not None
        async with HttpGate(settings.approval_url, settings.approval_token, __version__) as gate, trio.open_nursery() as nursery:
            approvals = HeldWrites(gate)
            await nursery.start(approvals.reporter.run)
            task_status.started(approvals)

    async def _linked(self, gateway: Gateway, reloader: Reloader, *, task_status: trio.TaskStatus["Link"]) -> None:
        """The link. It is started once the cached bundle is in force, where there is one."""
        from gatewayd.link.formats.states import Enforcing, LinkState
        from gatewayd.link.service import Link

        settings = self._settings
        identity = ensure_identity(settings.state_dir, settings.credentials_dir)
        link = Link(settings, gateway, reloader, identity)
        approvals = gateway.approvals = HeldWrites(link.gate)

        def end_holds(state: LinkState) -> None:
            if not isinstance(state, Enforcing):
                approvals.end_all()

        link.standing.on_change.append(end_holds)
        async with trio.open_nursery() as nursery:
            await nursery.start(approvals.reporter.run)
            await nursery.start(link.run)
            task_status.started(link)

    async def _gateway(self, audit: Audit, databases: Databases, approvals: HeldWrites | None) -> Gateway:
        settings = self._settings
        policies = settings.policies
        served: dict[str, Database] = {}
        if policies.databases is not None:
            for named in policies.databases:
                served[named.name] = await databases.open(named.name, named.url, named.policy)
        else:
            assert policies.single is not None
            assert settings.database_url is not None
            url = settings.database_url.reveal()
            served[DEFAULT_DATABASE] = await databases.open(DEFAULT_DATABASE, url, policies.single)
        await check_masks((database, database.enforced.policy) for database in served.values())
        masking = Masking(settings.mask_salt, settings.mask_source_rewrite)
        gateway = Gateway(audit, served, masking=masking, approvals=approvals)
        if settings.link is None:
            gateway.containing.taints = await self._kept_taints(audit)
        return gateway

    async def _kept_taints(self, audit: Audit) -> KeptTaints:
        settings = self._settings
        try:
            was_kept = (await audit.meta()).taints_kept is True
        except AuditUnavailable:
            was_kept = True  # not known: a file that is missing then counts as removed
        taints = KeptTaints(
            Path(settings.state_dir) / TAINTS,
            by_token=settings.proxy_secret is not None,
            was_kept=was_kept,
            note=audit.note_taints_kept,
        )
        await taints.begin()
        return taints

    async def _start_senders(self, gateway: Gateway, services: trio.Nursery) -> DenyWebhook | None:
        """The deny webhook and telemetry, each only where it is configured. When cancelled they get a last second."""
        settings = self._settings
        webhook = None
        if settings.telemetry != "off":
            telemetry = Telemetry(
                settings.db_path,
                settings.telemetry_endpoint.reveal() if settings.telemetry_endpoint is not None else None,
                settings.telemetry_heartbeat_ms,
                settings.transport,
                __version__,
                debug=settings.telemetry == "debug",
            )
            await services.start(telemetry.run)
            gateway.observers += (to_telemetry(telemetry),)
        if settings.deny_webhook is not None:
            webhook = DenyWebhook(settings.deny_webhook.reveal(), settings.deny_webhook_rules, __version__)
            await services.start(webhook.run)
            gateway.observers += (to_webhook(webhook),)
        return webhook

    async def _listen(self, gateway: Gateway, reloader: Reloader, services: trio.Nursery) -> None:
        """Serve until the stop signal, and until the calls in flight have ended or had their grace."""
        link = self._link
        clients = KnownClients(link.clients_file, link.person_of) if link is not None else KnownClients()
        dispatch = Dispatch("gatewayd", __version__, tools_of(gateway), refusing=gateway.refusing, clients=clients)
        if gateway.approvals is not None:
            services.start_soon(self._drain, gateway.approvals.drain)

        def status() -> str:
            return _status(gateway, link)

        async def announce(address: str) -> None:
            self._announce(gateway, address)
            await services.start(keep_status, self._manager, status)

        async with trio.open_nursery() as listener:
            listener.start_soon(self._reload_on_hangup, reloader, status)
            if self._settings.transport == "stdio":
                await self._listen_stdio(dispatch, announce, listener)
            else:
                await self._listen_http(dispatch, gateway, reloader, announce, listener)
            self._stop.set()  # the client of stdio has closed its end: stop as after a signal
            listener.cancel_scope.cancel()

    async def _listen_stdio(self, dispatch: Dispatch, announce: Announce, listener: trio.Nursery) -> None:
        from gatewayd.mcp.stdio import serve_stdio  # each transport imports only what it uses: start-up time

        listener.start_soon(self._drain, dispatch.drain)
        await announce("stdio")
        await serve_stdio(dispatch, stop=self._stop, grace_s=self._settings.shutdown_grace_s)

    async def _listen_http(
        self, dispatch: Dispatch, gateway: Gateway, reloader: Reloader, announce: Announce, listener: trio.Nursery
    ) -> None:
        from gatewayd.http.listeners import why_not
        from gatewayd.operators.http_service import HttpService

        settings = self._settings
        service = HttpService(settings, dispatch, gateway, reloader, self._webhook, self._link)
        try:
            port = await listener.start(partial(service.serve, stop=self._stop))
        except OSError as failure:
            why = why_not(failure, settings.host, settings.port, host_setting="GATEWAY_HOST", port_setting="PORT")
            log.error(log.SERVICE_UNAVAILABLE, error=why)
            self.exit_code = UNAVAILABLE
            return
        listener.start_soon(self._drain, service.drain)
        await announce(_address(settings.host, port, passed_on=service.is_passed_on))
        await service.ended.wait()

    def _announce(self, gateway: Gateway, address: str) -> None:
        policy = "file" if self._settings.policy_file else "none: reads allowed, writes denied"
        if self._link is not None:
            policy = "control plane"
        memory.settle()
        log.info(log.STARTED, version=__version__, address=address, databases=len(gateway.databases), policy=policy)
        if not self._stop.is_set():
            self._manager.ready(_status(gateway, self._link))
        if self._on_ready is not None:
            self._on_ready(address)

    async def _drain(self, drain: Callable[[], None]) -> None:
        """From the first signal on, new calls are refused."""
        await self._stop.wait()
        drain()

    async def _heed_signals(self, *, task_status: trio.TaskStatus[None]) -> None:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            task_status.started()
            async for number in signals:
                self._heed(number)

    def _heed(self, number: int) -> None:
        """First signal: drain. Second: cancel at once, in the same order."""
        if not self._stop.is_set():
            log.info(log.STOPPING, signal=signal.Signals(number).name)
            self._manager.stopping(self._settings.shutdown_grace_s + STOP_BEYOND_GRACE_S)
            self._stop.set()
        else:
            self._serving.cancel()

    async def _heed_eof(self) -> None:
        """Standard input is a pipe that whoever started this process holds: its end says that they are gone, however they ended.

        Not PR_SET_PDEATHSIG: it tells of the end of the thread that started us, is Linux's alone, and misses a parent that was
        gone before it was set.
        """
        with contextlib.suppress(OSError):  # what cannot be waited for, such as a file, holds nobody's end
            while True:
                await trio.lowlevel.wait_readable(0)
                if not os.read(0, 4096):
                    break
        if not self._stop.is_set():
            self._heed(signal.SIGTERM)

    async def _heed_hangups(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Receives SIGHUP for the whole life of the process, so that it never ends it."""
        with trio.open_signal_receiver(signal.SIGHUP) as signals, self._hung_up:
            task_status.started()
            async for number in signals:
                if self._hangup_stops:
                    self._heed(number)
                    continue
                with contextlib.suppress(trio.WouldBlock, trio.BrokenResourceError):
                    self._hung_up.send_nowait(None)

    async def _reload_on_hangup(self, reloader: Reloader, status: Callable[[], str]) -> None:
        """SIGHUP reads the policy file again, through the same code as POST /admin/policy."""
        async with self._hangups:
            async for _ in self._hangups:
                if self._stop.is_set():
                    return
                self._manager.reloading()
                worked = await reloader.reload_file()
                if not self._stop.is_set():  # READY=1 in any case, or `systemctl reload` would wait for it
                    self._manager.ready(status() if worked else f"policy file refused, the old policy holds; {status()}")


def _status(gateway: Gateway, link: "Link | None") -> str:
    """The line that `systemctl status` shows."""
    if not gateway.audit.statistics().available:
        return "audit file cannot be written: nothing runs"
    databases = gateway.databases.values()
    answering = sum(database.refresher.statistics().answers for database in databases)
    state = "serving" if link is None else str(link.standing)
    return f"{state}, {answering}/{len(databases)} databases answer"


def _address(host: str, port: int, *, passed_on: bool) -> str:
    """The address that answers, in a form a client on this machine can use."""
    if not port:
        return "a Unix socket of the service manager" if passed_on else f"{host}:/mcp"
    if passed_on or host in ("0.0.0.0", "::"):  # which address was passed on is the service manager's matter
        return f"http://127.0.0.1:{port}/mcp"
    return f"http://[{host}]:{port}/mcp" if ":" in host else f"http://{host}:{port}/mcp"
