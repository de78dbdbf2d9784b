"""How a link stands at one moment, for /metrics."""

from collections.abc import Mapping

import msgspec

from gatewayd.link.formats.status import StateName


class LinkStatistics(msgspec.Struct, frozen=True):
    """Counts are since the start. `rejected` is by check; `pushed_at_s` in seconds since the epoch, 0 before the first."""

    state: StateName
    is_cut: bool
    version: int
    fresh_age_s: float
    refused: int
    rejected: Mapping[str, int]
    pushed: int
    pushed_at_s: float
