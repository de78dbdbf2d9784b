"""The previews of pending writes, so that a repeated request for the same write is not counted again. Bounded."""

import time
from collections import OrderedDict
from hashlib import sha256
from typing import Final

from gatewayd.approvals.messages import GateAsk, Preview

_KEPT: Final = 256
_KEPT_S: Final = 60.0  # without a deadline from the gate: after a repeated denial, or while the gate is unreachable


class CountedWrites:
    """Previews by write. Each is kept until its request expires; the next request is counted anew."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, tuple[Preview, float]] = OrderedDict()

    def get(self, ask: GateAsk) -> Preview | None:
        """The preview of the same write, if it is recent enough."""
        key = _key(ask)
        preview, until_s = self._kept.get(key, (None, 0.0))
        if preview is not None and until_s <= time.time():
            del self._kept[key]
            return None
        return preview

    def keep(self, ask: GateAsk, preview: Preview) -> None:
        """Keeps a new preview; the oldest one is dropped if there are too many."""
        self._kept[_key(ask)] = preview, time.time() + _KEPT_S
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    def pending(self, ask: GateAsk, expires_at_ms: int) -> None:
        """Keeps the preview until its request expires, in milliseconds since the epoch."""
        key = _key(ask)
        if key in self._kept:
            self._kept[key] = self._kept[key][0], expires_at_ms / 1000

    def forget(self, ask: GateAsk) -> None:
        """Drops the preview once the write is approved: by the next request its rows may have changed."""
        self._kept.pop(_key(ask), None)


def _key(ask: GateAsk) -> bytes:
    return sha256(repr((ask.database, ask.sql, ask.intent, ask.mcp_token_id, ask.effect)).encode()).digest()
