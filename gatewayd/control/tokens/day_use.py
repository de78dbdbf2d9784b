"""What tokens have used of their day (UTC), over all gateways of their project: calls and rows, as audit and proxy tell them."""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import msgspec

from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction

DAY_MS: Final = 86_400_000

# Every gateway's audit counts here; the proxy counts what passes through it at once, calls that decide nothing among them.
AUDITED: Final = Statement(
    "SELECT value AS token_id, sum(calls)::bigint AS calls, sum(rows_read)::bigint AS rows_read FROM rollups"
    " WHERE project_id = $1 AND day = $2 AND kind = 'token' AND value = ANY($3) GROUP BY value"
)
PROXIED: Final = Statement(
    "SELECT token_id, calls, rows_read FROM token_use WHERE project_id = $1 AND day = $2 AND token_id = ANY($3)"
)


class Limited(Protocol):
    """A token, as far as its day goes."""

    @property
    def token_id(self) -> str: ...
    @property
    def calls_a_day(self) -> int | None: ...
    @property
    def rows_a_day(self) -> int | None: ...


class DayUse(msgspec.Struct, frozen=True):
    token_id: str
    calls: int
    rows_read: int


def day_of(now_ms: int) -> int:
    """Days since 1970, UTC."""
    return now_ms // DAY_MS


def next_day_ms(now_ms: int) -> int:
    """When the next day begins."""
    return (day_of(now_ms) + 1) * DAY_MS


async def used_up_of(tx: Transaction, project_id: str, tokens: Iterable[Limited], now_ms: int) -> frozenset[str]:
    """The ids of those that have used their day up."""
    limited = [each for each in tokens if each.calls_a_day is not None or each.rows_a_day is not None]
    if not limited:
        return frozenset()
    ids = sorted(each.token_id for each in limited)
    audited = await tx.rows(DayUse, AUDITED, project_id, day_of(now_ms), ids)
    proxied = await tx.rows(DayUse, PROXIED, project_id, day_of(now_ms), ids)
    return frozenset(each.token_id for each in limited if _is_used_up(each, [*audited, *proxied]))


def _is_used_up(token: Limited, used: Sequence[DayUse]) -> bool:
    """By either count: what passes through the proxy is in both, so they are not added."""
    own = [each for each in used if each.token_id == token.token_id]
    calls, rows = max((each.calls for each in own), default=0), max((each.rows_read for each in own), default=0)
    return (token.calls_a_day is not None and calls >= token.calls_a_day) or (
        token.rows_a_day is not None and rows >= token.rows_a_day
    )
