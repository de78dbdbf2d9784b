"""Times for people: in the reader's zone, with UTC on hover; or how long ago. Digits and fixed words only. Pure."""

from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from gatewayd.control.web.shown_text import Shown

_STEPS: Final = ((60, "second", 1), (3600, "minute", 60), (86_400, "hour", 3600), (90 * 86_400, "day", 86_400))


def is_zone(name: str) -> bool:
    return name in available_timezones()


def in_zone(ms: int, zone: str) -> datetime:
    """UTC where the zone is none that this machine has."""
    utc = datetime.fromtimestamp(ms / 1000, UTC)
    try:
        return utc.astimezone(ZoneInfo(zone))
    except (ValueError, OSError, KeyError):
        return utc


def time_shown(ms: int | None, zone: str) -> Shown:
    """`2026-11-22 14:05` in one piece, or `never`."""
    return Shown("never") if ms is None else _element(ms, f"{in_zone(ms, zone):%Y-%m-%d\u00a0%H:%M}", "whole")


def distance_shown(ms: int | None, now_ms: int, zone: str) -> Shown:
    """`3 minutes ago`, `in 2 hours`; a date where it is more than 90 days; `never`."""
    if ms is None:
        return Shown("never")
    seconds = abs(now_ms - ms) // 1000
    for below, unit, size in _STEPS:
        if seconds < below:
            number = seconds // size if ms <= now_ms else -(-seconds // size)
            words = f"{number} {unit}{'' if number == 1 else 's'}"
            return _element(ms, "now" if seconds < 1 else f"{words} ago" if ms <= now_ms else f"in {words}")
    return _element(ms, f"{in_zone(ms, zone):%Y-%m-%d}")


def _element(ms: int, words: str, kind: str = "apart") -> Shown:
    utc = datetime.fromtimestamp(ms / 1000, UTC)
    exact, shown = utc.isoformat(timespec="seconds"), f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    return Shown(f'<time class="{kind}" datetime="{exact}" title="{shown}">{words}</time>')
