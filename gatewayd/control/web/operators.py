"""/healthz, /readyz and /metrics: alive, useful, and how it fares."""

import hashlib
import hmac
from collections.abc import Callable, Iterator
from typing import Final

import trio
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from gatewayd import __version__
from gatewayd.control.console import Console
from gatewayd.control.store.failures import StoreUnavailable
from gatewayd.control.store.lease import NOW_MS
from gatewayd.control.web.answer import Answer, json
from gatewayd.http.server import ServerStatistics

PATHS: Final = ("/healthz", "/readyz", "/metrics")
READY_S: Final = 2.0


class Operators:
    """Ready: the store answers within READY_S, and no stop signal has come."""

    def __init__(self, console: Console, stop: trio.Event) -> None:
        self._console = console
        self._stop = stop
        self._server: Callable[[], ServerStatistics] | None = None
        self._registry = CollectorRegistry()
        self._registry.register(_State(console, lambda: self._server))

    def watch_server(self, statistics: Callable[[], ServerStatistics]) -> None:
        self._server = statistics

    async def answer(self, path: str, authorization: str | None) -> Answer:
        if path == "/healthz":
            return Answer(200, b"ok", "text/plain; charset=utf-8")
        if path == "/readyz":
            why = await self._not_ready()
            return Answer(503 if why else 200, (why or "ready").encode(), "text/plain; charset=utf-8")
        token = self._console.settings.metrics_token
        if token is None:
            return json({"error": "not found"}, 404)
        if not _is_bearer(authorization, token.reveal()):
            return json({"error": "expected Authorization: Bearer <CONTROL_METRICS_TOKEN>"}, 401).with_header(
                "WWW-Authenticate", "Bearer"
            )
        return Answer(200, generate_latest(self._registry), CONTENT_TYPE_LATEST)

    async def _not_ready(self) -> str | None:
        if self._stop.is_set():
            return "stopping"
        with trio.move_on_after(READY_S):
            try:
                await self._console.store.value(NOW_MS)
            except StoreUnavailable:
                return "store"
            return None
        return "store"


class _State(Collector):
    """Read when somebody asks."""

    def __init__(self, console: Console, server: Callable[[], Callable[[], ServerStatistics] | None]) -> None:
        self._console = console
        self._server = server

    def collect(self) -> Iterator[Metric]:
        build = GaugeMetricFamily("gatewayd_control_build_info", "Constant 1, labelled with the version", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        store = self._console.store.statistics()
        yield GaugeMetricFamily("gatewayd_control_store_connections_in_use", "Store connections in use", store.in_use)
        yield GaugeMetricFamily("gatewayd_control_store_waiting", "Tasks that wait for a store connection", store.waiting)
        yield CounterMetricFamily(
            "gatewayd_control_store_transactions_again", "Transactions that ran once more", store.runs_again
        )
        statistics = self._server()
        if statistics is not None:
            server = statistics()
            yield GaugeMetricFamily("gatewayd_control_connections", "Open connections", server.open)
            yield CounterMetricFamily("gatewayd_control_connections_accepted", "Connections since start", server.accepted)
            yield CounterMetricFamily("gatewayd_control_connections_refused", "Connections over the cap", server.refused)


def _is_bearer(authorization: str | None, token: str) -> bool:
    scheme, _, given = (authorization or "").partition(" ")
    same = hmac.compare_digest(
        hashlib.sha256(given.strip().encode("latin-1", "replace")).digest(), hashlib.sha256(token.encode()).digest()
    )
    return same and scheme.lower() == "bearer"
