"""What agents did in a project in the last 24 hours, by the hour: figures and a chart."""

from typing import Final

import msgspec

from gatewayd.control.audit.rollup import BY_HOUR, HourCount
from gatewayd.control.store.store import Store
from gatewayd.control.web.chart import Calls, Chart, chart
from gatewayd.control.web.times import in_zone

_HOUR_MS: Final = 3600 * 1000
_HOURS: Final = 24


class Activity(msgspec.Struct, frozen=True):
    chart: Chart
    rows_read: int


async def last_day(store: Store, project_id: str, now_ms: int, zone: str) -> Activity:
    """The hour that has begun, and the 23 before it."""
    newest = now_ms // _HOUR_MS
    first = newest - _HOURS + 1
    found = await store.rows(HourCount, BY_HOUR, project_id, "all", first // _HOURS, newest // _HOURS)
    by_hour = {each.day * _HOURS + each.hour: each for each in found}
    within = [each for hour, each in by_hour.items() if first <= hour <= newest]
    hours = [_column(hour, by_hour.get(hour), zone) for hour in range(first, newest + 1)]
    return Activity(chart(hours), sum(each.rows_read for each in within))


def _column(hour: int, count: HourCount | None, zone: str) -> Calls:
    label = f"{in_zone(hour * _HOUR_MS, zone):%H:%M}"
    calls, denied, failed = (count.calls, count.denied, count.failed) if count is not None else (0, 0, 0)
    return Calls(label, f"from {label}", calls, denied, failed)
