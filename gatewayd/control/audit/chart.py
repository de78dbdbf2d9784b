"""Bars of a chart of calls by day: numbers for an SVG, so that a page draws it without a style or a script. Pure."""

from collections.abc import Mapping
from datetime import date
from typing import Final

import msgspec

from gatewayd.control.audit.rollup import DayCount
from gatewayd.control.store.days import day_from

WIDTH: Final = 720
HEIGHT: Final = 120
_TOP: Final = 6
_BOTTOM: Final = 20
_GAP: Final = 0.25  # of a bar's room


class Bar(msgspec.Struct, frozen=True):
    """One day. Sizes are in the chart's own units; `denied` and `failed` stand inside of `calls`, from below."""

    day: date
    calls: int
    denied: int
    failed: int
    x: float
    width: float
    calls_y: float
    denied_y: float
    failed_y: float
    middle: float
    has_label: bool


class Chart(msgspec.Struct, frozen=True):
    width: int
    height: int
    base: int
    most: int
    calls: int
    denied: int
    failed: int
    bars: list[Bar]


def chart_of(counts: Mapping[int, DayCount], first: int, last: int) -> Chart:
    """Of the days `first` to `last` (since 1970); days without a count are empty."""
    days = range(first, last + 1)
    most = max((each.calls for each in counts.values()), default=0)
    base = HEIGHT - _BOTTOM
    room = WIDTH / len(days)
    every = -(-len(days) // 8)
    bars = []
    for place, day in enumerate(days):
        found = counts.get(day)
        calls, denied, failed = (found.calls, found.denied, found.failed) if found is not None else (0, 0, 0)
        x = place * room + room * _GAP / 2

        def y(count: int) -> float:
            return round(base - (base - _TOP) * count / most, 1) if most else float(base)

        bars.append(
            Bar(
                day_from(day), calls, denied, failed, round(x, 1), round(room * (1 - _GAP), 1), y(calls), y(denied),
                y(min(calls, denied + failed)), round(x + room * (1 - _GAP) / 2, 1), (len(days) - 1 - place) % every == 0,
            )
        )  # fmt: skip
    whole = counts.values()
    return Chart(
        WIDTH, HEIGHT, base, most, sum(each.calls for each in whole), sum(each.denied for each in whole),
        sum(each.failed for each in whole), bars,
    )  # fmt: skip
