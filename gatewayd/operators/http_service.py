"""The HTTP service: /mcp, the operators' routes where a token is set, metrics, and the server under them."""

import os
from typing import TYPE_CHECKING, final

import trio
from quart import Blueprint

from gatewayd.config.settings import Settings
from gatewayd.corridor.gateway import Gateway
from gatewayd.corridor.reload import Reloader
from gatewayd.http.listeners import passed_on
from gatewayd.http.server import HttpServer
from gatewayd.mcp.dispatch import Dispatch
from gatewayd.mcp.door import Door
from gatewayd.mcp.eras.session_ids import SessionIds
from gatewayd.mcp.eras.sessions import Sessions
from gatewayd.mcp.header_rules import Callers
from gatewayd.mcp.http import McpHttp
from gatewayd.notify.webhook import DenyWebhook
from gatewayd.operators.admin import admin_routes
from gatewayd.operators.app import AGENTS_REQUESTS, create_app
from gatewayd.operators.audit_pull import audit_routes
from gatewayd.operators.guard import Guard
from gatewayd.operators.ready import ready_routes
from gatewayd.operators.tainted_grants import taint_routes

if TYPE_CHECKING:
    from gatewayd.link.service import Link


@final
class HttpService:
    """Made once by the daemon. `ended` is set when the last connection is closed."""

    def __init__(
        self,
        settings: Settings,
        dispatch: Dispatch,
        gateway: Gateway,
        reloader: Reloader,
        webhook: DenyWebhook | None,
        link: "Link | None" = None,
    ) -> None:
        self.ended = trio.Event()
        self.is_passed_on = False
        """Whether it serves on sockets of the service manager."""
        self._settings = settings
        self._gateway = gateway
        callers, sessions = Callers(settings.allowed_hosts, settings.allowed_origins), Sessions(ids=_session_ids(link))
        self._mcp = McpHttp(dispatch, callers, sessions=sessions, door=_door(settings, link))
        self._webhook = webhook
        self._link = link
        guard = Guard(settings.indexer_token.reveal() if settings.indexer_token else None)
        routes = self._operators(reloader, guard) if guard.is_enabled else []
        if link is not None:
            routes.append(ready_routes(gateway, lambda: link.standing.name))
        self._server = HttpServer(create_app(self._mcp, routes), grace_s=settings.shutdown_grace_s, in_turns=AGENTS_REQUESTS)

    async def serve(self, *, stop: trio.Event, task_status: trio.TaskStatus[int]) -> None:
        """Serves until `stop` and the grace after it. Reports the bound port; OSError when it cannot be bound."""
        settings = self._settings
        try:
            inherited = passed_on(os.environ, os.getpid())
            self.is_passed_on = bool(inherited)
            await self._server.serve(settings.host, settings.port, stop=stop, inherited=inherited, task_status=task_status)
        finally:
            self.ended.set()

    def drain(self) -> None:
        """New calls are refused from now on."""
        self._mcp.drain()

    def _operators(self, reloader: Reloader, guard: Guard) -> list[Blueprint]:
        from gatewayd.operators.metrics import GatewayState, Metrics, metrics_route  # 20 ms of imports that only operators need

        metrics = Metrics()
        webhook = self._webhook.statistics if self._webhook is not None else None
        if self._link is not None:
            from gatewayd.operators.link_metrics import LinkGauges

            metrics.registry.register(LinkGauges(self._link.statistics))
        metrics.registry.register(GatewayState(self._gateway, self._mcp.statistics, lambda: self._server.statistics(), webhook))
        self._gateway.observers += (metrics.observe,)
        self._gateway.audit.on_commit(metrics.committed)
        if self._gateway.approvals is not None:
            self._gateway.approvals.on_end = metrics.held
        return [
            audit_routes(self._gateway.audit, guard, erasable=self._settings.audit_erasable),
            admin_routes(self._gateway, reloader, guard),
            taint_routes(self._gateway, reloader, guard),
            metrics_route(metrics, self._gateway, guard),
        ]


def _door(settings: Settings, link: "Link | None") -> Door:
    secret = settings.proxy_secret.reveal() if settings.proxy_secret is not None else None
    if link is None:
        return Door(proxy_secret=secret)
    return Door(link.agents, lambda: link.standing.name == "waiting", proxy_secret=secret, is_linked=True)


def _session_ids(link: "Link | None") -> SessionIds:
    """Ids that every engine of the project understands, where there is a project."""

    def key() -> bytes | None:
        agents = link.agents() if link is not None else None
        return agents.session_key if agents is not None else None

    return SessionIds(key)
