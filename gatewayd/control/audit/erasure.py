"""Erasure: a gateway's ERASED row names rows whose details it has deleted; the copy here goes in the transaction that stores that row.

Tree, envelopes and proofs stay. A control plane never asks a gateway to erase.
"""

from collections.abc import Iterable
from datetime import date
from typing import Final

import msgspec

from gatewayd.control.audit.tiles import Instance
from gatewayd.control.store.days import DAYS, day_from
from gatewayd.control.store.statement import DayStatement
from gatewayd.control.store.store import Transaction

_RANGES: Final = 1000

ERASE: Final = DayStatement(
    "DELETE FROM {details} WHERE project_id = $1 AND gateway_id = $2 AND instance = $3 AND seq >= $4 AND seq <= $5"
)


class _Day(msgspec.Struct, frozen=True):
    day: int


async def erase(tx: Transaction, instance: Instance, ranges: Iterable[tuple[int, int]], until: date) -> None:
    """The details of the rows in `ranges` (first and last seq), of every day that is held."""
    days = [day_from(each.day) for each in await tx.rows(_Day, DAYS)]
    for first, last in list(ranges)[:_RANGES]:
        if 0 < first <= last < 1 << 62:
            for day in days:
                if day <= until:
                    await tx.run(ERASE.on(day), *instance, first, last)
