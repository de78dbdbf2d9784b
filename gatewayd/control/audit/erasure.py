"""Erasure: a gateway's ERASED row names rows whose details it has deleted; the copy here goes in the transaction
that stores that row.

Tree, envelopes and proofs stay. A control plane never asks a gateway to erase.
"""

from collections.abc import Iterable
from datetime import date
from typing import Final

import msgspec

from gatewayd.control.audit.held import SPANS, Span
from gatewayd.control.audit.tiles import Instance
from gatewayd.control.store.days import DAYS, day_from
from gatewayd.control.store.statement import DayStatement
from gatewayd.control.store.store import Transaction

_RANGES: Final = 1000

ERASE: Final = DayStatement(
    "DELETE FROM {details} AS d USING unnest($4::bigint[], $5::bigint[]) AS r (first, last)"
    " WHERE d.project_id = $1 AND d.gateway_id = $2 AND d.instance = $3 AND d.seq >= r.first AND d.seq <= r.last"
)


class _Day(msgspec.Struct, frozen=True):
    day: int


async def erase(tx: Transaction, instance: Instance, ranges: Iterable[tuple[int, int]], until: date) -> None:
    """The details of the rows in `ranges` (first and last seq of the file), of every day and in every instance of that file: seqs
    go on from one instance to the next, and after a fork two may hold a row of one seq."""
    named = sorted((first, last) for first, last in list(ranges)[:_RANGES] if 0 < first <= last < 1 << 62)
    if not named:
        return
    project_id, gateway_id, _ = instance
    firsts, lasts = [first for first, _ in named], [last for _, last in named]
    days = [day_from(each.day) for each in await tx.rows(_Day, DAYS)]
    for span in await tx.rows(Span, SPANS, project_id, gateway_id):
        if span.first_seq <= lasts[-1] and firsts[0] < span.first_seq + span.size:
            for day in days:
                if day <= until:
                    await tx.run(ERASE.on(day), project_id, gateway_id, span.instance, firsts, lasts)
