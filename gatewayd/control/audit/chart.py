"""Calls by day as a chart; each day leads to its calls. Pure."""

from collections.abc import Iterable

from gatewayd.control.audit.rollup import DayCount
from gatewayd.control.store.days import day_from
from gatewayd.control.web.chart import Calls, Chart, chart


def by_day(home: str, counts: Iterable[DayCount], first: int, last: int) -> Chart:
    """Of the days `first` to `last` (since 1970, UTC); days without a count are empty. `home`: the project's path."""
    found = {each.day: each for each in counts}
    return chart([_column(home, day, found.get(day)) for day in range(first, last + 1)], labels=7)


def _column(home: str, day: int, count: DayCount | None) -> Calls:
    begin, end = day_from(day), day_from(day + 1)
    link = f"{home}/audit?since={begin}T00:00Z&until={end}T00:00Z"
    calls, denied, failed = (count.calls, count.denied, count.failed) if count is not None else (0, 0, 0)
    return Calls(f"{begin:%m-%d}", str(begin), calls, denied, failed, link)
