"""Metrics of a linked gateway: its state, its bundle, its push."""

from collections.abc import Callable, Iterator
from typing import Final, get_args

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from gatewayd.link.formats.documents import BundleCheck
from gatewayd.link.formats.status import StateName
from gatewayd.link.statistics import LinkStatistics

_STATES: Final = get_args(StateName)
_CHECKS: Final = get_args(BundleCheck)


class LinkGauges(Collector):
    """The metrics, read from the link's statistics at each request."""

    def __init__(self, link: Callable[[], LinkStatistics]) -> None:
        self._link = link

    def collect(self) -> Iterator[Metric]:
        found = self._link()
        state = GaugeMetricFamily("gatewayd_link_state", "Which state the gateway is in: 1 for the one", labels=["state"])
        for name in _STATES:
            state.add_metric([name], name == found.state)
        rejected = CounterMetricFamily("gatewayd_bundle_rejected", "Bundles refused since start, by check", labels=["check"])
        for check in _CHECKS:
            rejected.add_metric([check], found.rejected.get(check, 0))
        yield from (state, rejected)
        yield _gauge("gatewayd_halted", "Whether everything is refused", found.state == "halted")
        yield _gauge("gatewayd_link_cut", "Whether the control plane refuses this gateway", found.is_cut)
        yield _gauge("gatewayd_bundle_version", "The bundle in force, 0 before the first", found.version)
        yield _gauge("gatewayd_bundle_confirmed_age_seconds", "Since the control plane last confirmed it", found.fresh_age_s)
        yield _counter("gatewayd_link_calls_refused", "Calls that a paused or halted gateway refused since start", found.refused)
        yield _counter("gatewayd_audit_pushed", "Audit rows acknowledged by the control plane since start", found.pushed)
        yield _gauge("gatewayd_audit_push_last_success_timestamp_seconds", "When rows were last acknowledged", found.pushed_at_s)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)
