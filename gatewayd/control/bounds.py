"""Deadlines of the control plane's services, as a frozen value that is handed to them (see `gatewayd.config.bounds`)."""

from typing import Final

import msgspec


class ControlBounds(msgspec.Struct, frozen=True, kw_only=True):
    beat_s: float = 15.0
    """Between two comments on the stream of a live page, so that proxies keep it; and the session is looked at again."""
    judge_s: float = 5.0
    """Of a worker thread, for one look at what a new policy would change."""
    trail_rows: int = 5000
    """Of one page of an organisation's trail as an export."""


CONTROL_BOUNDS: Final = ControlBounds()
