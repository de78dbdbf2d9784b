"""GET /metrics in Prometheus' text format (decision 7). Names are `gatewayd_*`, labels come from closed sets only.

`observe` counts what happens in each call; states are read at each request. Every series of a database exists, at 0, before its
first call, so that a rate over it has a beginning."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from quart import Blueprint, Response

from gatewayd import __version__
from gatewayd.corridor.gateway import Completed, Gateway, ToolName
from gatewayd.corridor.hold import HeldOutcome
from gatewayd.http.server import ServerStatistics
from gatewayd.mcp.http import McpStatistics
from gatewayd.notify.usage import SQLSTATE_CLASSES, sqlstate_class
from gatewayd.notify.webhook import WebhookStatistics
from gatewayd.operators.guard import Guard
from gatewayd.policy.decide.outcomes import PolicyRule

_FAST_S = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
_QUERY_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_BATCH_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)

_HELD_S = (0.01, 0.05, 0.25, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 50.0)

OUTCOMES: Final = ("executed", "failed", "denied", "held", "unaudited")
PHASES: Final = ("parse", "decide", "audit", "mask")
DELIVERIES: Final = ("delivered", "failed", "dropped")

# Otherwise every counter has a second series, with the time of its creation.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library gives this one no types


class Metrics:
    """The counters of one gateway, in a registry of its own: a second gateway in the process shares nothing."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        build = Gauge("gatewayd_build_info", "Constant 1, labelled with the version", ["version"], registry=self.registry)
        build.labels(__version__).set(1)
        self._decisions = Counter(
            "gatewayd_decisions",
            "Decisions, as the audit's DECIDED rows",
            ["database", "decision", "rule"],
            registry=self.registry,
        )
        self._calls = Counter(
            "gatewayd_calls",
            "Calls that reached the pipeline, by how they ended",
            ["database", "tool", "outcome"],
            registry=self.registry,
        )
        self._errors = Counter(
            "gatewayd_query_errors",
            "Allowed statements that failed, by class of SQLSTATE",
            ["database", "sqlstate_class"],
            registry=self.registry,
        )
        self._query_s = Histogram(
            "gatewayd_query_duration_seconds", "Time in the database", ["database"], buckets=_QUERY_S, registry=self.registry
        )
        self._phase_s = Histogram(
            "gatewayd_gateway_overhead_seconds", "Time in the gateway itself", ["phase"], buckets=_FAST_S, registry=self.registry
        )
        self._phases = {phase: self._phase_s.labels(phase) for phase in PHASES}
        self._rows = Counter("gatewayd_result_rows", "Rows given to agents", ["database"], registry=self.registry)
        self._bytes = Counter("gatewayd_result_bytes", "Bytes of row text given to agents", ["database"], registry=self.registry)
        self._truncated = Counter("gatewayd_result_truncated", "Answers cut by a limit", ["database"], registry=self.registry)
        self._commit_s = Histogram(
            "gatewayd_audit_write_seconds", "Time of one audit commit", buckets=_FAST_S, registry=self.registry
        )
        self._approvals = Counter(
            "gatewayd_approvals", "Held writes, by how their wait ended", ["outcome"], registry=self.registry
        )
        for ended in get_args(HeldOutcome):
            self._approvals.labels(ended)
        self._approval_s = Histogram(
            "gatewayd_approval_wait_seconds", "Time a call was held", buckets=_HELD_S, registry=self.registry
        )
        self._batch_rows = Histogram(
            "gatewayd_audit_batch_rows", "Rows of one audit commit", buckets=_BATCH_ROWS, registry=self.registry
        )

    def observe(self, completed: Completed) -> None:
        """An Observer: counts one call."""
        database = completed.query.database
        if completed.decision in ("ALLOW", "DENY"):
            rule = completed.denied.policy_rule if completed.denied else ""
            self._decisions.labels(database, completed.decision, rule).inc()
        self._calls.labels(database, completed.tool, _outcome(completed)).inc()
        self._phases["parse"].observe(completed.parse_s)
        self._phases["decide"].observe(completed.decide_s)
        self._phases["audit"].observe(completed.audit_s)
        if completed.mask_s:
            self._phases["mask"].observe(completed.mask_s)
        if completed.error_class is not None:
            self._errors.labels(database, sqlstate_class(completed.error_class)).inc()
        if completed.exec_s is not None:
            self._query_s.labels(database).observe(completed.exec_s)
            self._rows.labels(database).inc(completed.rows)
            self._bytes.labels(database).inc(completed.rows_bytes)
            if completed.truncated:
                self._truncated.labels(database).inc()

    def committed(self, seconds: float, rows: int) -> None:
        """For `Audit.on_commit`."""
        self._commit_s.observe(seconds)
        self._batch_rows.observe(rows)

    def held(self, outcome: HeldOutcome, seconds: float) -> None:
        """For `HeldWrites.on_end`."""
        self._approvals.labels(outcome).inc()
        self._approval_s.observe(seconds)

    def text(self, databases: Iterable[str]) -> bytes:
        """Everything, with all series of `databases`, those that are served now."""
        for database in databases:
            self._begin(database)
        return generate_latest(self.registry)

    def _begin(self, database: str) -> None:
        self._decisions.labels(database, "ALLOW", "")
        for rule in get_args(PolicyRule):
            self._decisions.labels(database, "DENY", rule)
        for tool in get_args(ToolName):
            for outcome in OUTCOMES:
                self._calls.labels(database, tool, outcome)
        for sqlstate in SQLSTATE_CLASSES:
            self._errors.labels(database, sqlstate)
        for metric in (self._query_s, self._rows, self._bytes, self._truncated):
            metric.labels(database)


def _outcome(completed: Completed) -> str:
    match completed.decision:
        case "ALLOW":
            return "executed" if completed.error_class is None else "failed"
        case "DENY":
            return "denied"
        case "HELD":
            return "held"
        case "UNAUDITED":
            return "unaudited"


class GatewayState(Collector):
    """The states of the moment: pools, catalogs, policies, audit queue, sessions, connections, webhook."""

    def __init__(
        self,
        gateway: Gateway,
        mcp: Callable[[], McpStatistics],
        server: Callable[[], ServerStatistics],
        webhook: Callable[[], WebhookStatistics] | None,
    ) -> None:
        self._gateway = gateway
        self._mcp = mcp
        self._server = server
        self._webhook = webhook

    def collect(self) -> Iterator[Metric]:
        yield from self._databases()
        yield from self._audit()
        yield from self._agents()
        yield from self._containment()
        approvals = self._gateway.approvals
        held = approvals.statistics().held if approvals is not None else 0
        yield _gauge("gatewayd_approvals_held", "Calls that wait for a person's approval", held)
        if self._webhook is not None:
            sent = self._webhook()
            yield _gauge("gatewayd_webhook_queued", "Denials that wait to be sent", sent.queued)
            posts = CounterMetricFamily("gatewayd_webhook_deliveries", "Denials, by what became of them", labels=["outcome"])
            for outcome in DELIVERIES:
                posts.add_metric([outcome], getattr(sent, outcome))
            yield posts

    def _databases(self) -> Iterator[Metric]:
        connections = GaugeMetricFamily("gatewayd_pool_connections", "Sessions with the database", labels=["database", "state"])
        waiters = GaugeMetricFamily("gatewayd_pool_waiters", "Calls that wait for a session", labels=["database"])
        version = GaugeMetricFamily(
            "gatewayd_policy_version", "The policies since the database was opened, from 1", labels=["database"]
        )
        loaded = GaugeMetricFamily(
            "gatewayd_policy_loaded_timestamp_seconds", "When the policy in force was taken", labels=["database"]
        )
        relations = GaugeMetricFamily("gatewayd_catalog_relations", "Relations in the catalog's snapshot", labels=["database"])
        reachable = GaugeMetricFamily(
            "gatewayd_database_reachable", "Whether the last catalog read succeeded", labels=["database"]
        )
        for name, database in self._gateway.databases.items():
            pool = database.pool.statistics()
            connections.add_metric([name, "in_use"], pool.in_use)
            connections.add_metric([name, "idle"], pool.idle)
            connections.add_metric([name, "max"], pool.max)
            waiters.add_metric([name], pool.waiters)
            version.add_metric([name], database.enforced.revision)
            loaded.add_metric([name], database.enforced.since_s)
            refresh = database.refresher.statistics()
            relations.add_metric([name], refresh.relations)
            reachable.add_metric([name], refresh.answers)
        yield from (connections, waiters, version, loaded, relations, reachable)

    def _audit(self) -> Iterator[Metric]:
        audit = self._gateway.audit.statistics()
        yield _gauge("gatewayd_audit_available", "Whether the last audit commit succeeded", audit.available)
        yield _gauge("gatewayd_audit_queued_rows", "Audit rows handed over and not yet committed", audit.queued)
        yield _gauge("gatewayd_audit_wal_bytes", "Size of the audit file's write-ahead log", audit.wal_bytes)
        yield _gauge("gatewayd_audit_unsigned_seconds", "Age of the oldest audit row under no signed head", audit.unsigned_s)
        yield _counter("gatewayd_audit_rows", "Audit rows committed since start", audit.rows)
        yield _counter("gatewayd_audit_write_failures", "Audit commits that failed since start", audit.failures)

    def _containment(self) -> Iterator[Metric]:
        containing = self._gateway.containing
        events = CounterMetricFamily(
            "gatewayd_containment", "What containment did since start: contained actions, reads of sources", labels=["event"]
        )
        for event, count in containing.counts.items():
            events.add_metric([event], count)
        yield events
        yield _gauge("gatewayd_tainted_grants", "Grants that this gateway itself keeps as tainted", containing.taints.count)

    def _agents(self) -> Iterator[Metric]:
        mcp = self._mcp()
        calls = mcp.dispatch.calls
        yield _gauge("gatewayd_mcp_sessions", "Sessions of the handshake era", mcp.sessions.open)
        yield _gauge("gatewayd_mcp_calls_running", "Tool calls that run", calls.running)
        yield _gauge("gatewayd_mcp_calls_waiting", "Tool calls that wait for their turn", calls.waiting)
        yield _counter("gatewayd_mcp_calls_refused", "Tool calls refused for load or shutdown since start", calls.refused)
        requests = CounterMetricFamily(
            "gatewayd_mcp_requests", "Requests of agents, by how they ended", labels=["method", "outcome"]
        )
        for labels, count in mcp.dispatch.requests.items():
            requests.add_metric(labels, count)
        yield requests
        server = self._server()
        yield _gauge("gatewayd_http_connections", "Open connections", server.open)
        yield _counter("gatewayd_http_connections_refused", "Connections refused over the cap since start", server.refused)
        text = "Requests turned away unread, because too many were waiting to be read, since start"
        yield _counter("gatewayd_http_requests_turned_away", text, server.intake.refused)


def metrics_route(metrics: Metrics, gateway: Gateway, guard: Guard) -> Blueprint:
    """GET /metrics; register it only when `guard.is_enabled`."""
    routes = guard.blueprint("metrics", __name__)

    @routes.get("/metrics", provide_automatic_options=False)
    async def get() -> Response:
        return Response(metrics.text(gateway.databases), 200, {"cache-control": "no-store"}, content_type=CONTENT_TYPE_LATEST)

    return routes


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)
