"""What tokens use: calls of a day and the time of the last one, counted here and written from time to time (`write_use.py`)."""

from typing import final

import msgspec

from gatewayd.control.tokens.day_use import day_of, next_day_ms


def seconds_left(now_ms: int) -> float:
    """Until the next day begins."""
    return (next_day_ms(now_ms) - now_ms) / 1000


class Counted(msgspec.Struct, frozen=True):
    """`calls` by project, token and day; `used_ms` by project and token."""

    calls: dict[tuple[str, str, int], int]
    used_ms: dict[tuple[str, str], int]


@final
class TokenUse:
    """What the store does not know of yet."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, str, int], int] = {}
        self._used_ms: dict[tuple[str, str], int] = {}

    def count(self, project_id: str, token_id: str, now_ms: int, *, is_call: bool) -> None:
        self._used_ms[project_id, token_id] = now_ms
        if is_call:
            key = (project_id, token_id, day_of(now_ms))
            self._calls[key] = self._calls.get(key, 0) + 1

    def calls(self, project_id: str, token_id: str, day: int) -> int:
        return self._calls.get((project_id, token_id, day), 0)

    def counted(self) -> Counted:
        """So far; it stays counted until it is `written`."""
        return Counted(dict(self._calls), dict(self._used_ms))

    def written(self, counted: Counted) -> None:
        for key, count in counted.calls.items():
            self._calls[key] -= count
            if not self._calls[key]:
                del self._calls[key]
        for token, used_ms in counted.used_ms.items():
            if self._used_ms.get(token) == used_ms:
                del self._used_ms[token]
