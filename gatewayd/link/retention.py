"""Pruning of a linked gateway's audit file: what is acknowledged and older than the bundle lets rows stay."""

import sqlite3
from collections.abc import Callable
from typing import Final

import trio

from gatewayd import log
from gatewayd.audit.open_file import reason_of
from gatewayd.audit.service import Audit, AuditUnavailable
from gatewayd.link import batches
from gatewayd.link.client import LinkClock

PRUNE_S: Final = 60.0
_HOUR_MS: Final = 3600 * 1000


async def prune(audit: Audit, clock: LinkClock, retention_h: Callable[[], int], up_to_seq: Callable[[], int | None]) -> None:
    """Until cancelled. `up_to_seq` is the last row that may go, None while none may."""
    failed = False
    while True:
        await trio.sleep(PRUNE_S)
        up_to = up_to_seq()
        if up_to is None:
            continue
        before_ms = clock.now_ms() - retention_h() * _HOUR_MS
        try:
            last = await audit.ask(lambda connection: batches.last_before(connection, up_to, before_ms))  # noqa: B023
            if last is not None:
                await audit.delete_before(last)
        except (AuditUnavailable, sqlite3.Error, OSError) as failure:
            if not failed:
                failed = True
                log.error(log.AUDIT_PRUNING_FAILED, error=_why(failure))
        else:
            if failed:
                failed = False
                log.info(log.AUDIT_PRUNING_RECOVERED)


def _why(failure: Exception) -> str:
    return failure.reason if isinstance(failure, AuditUnavailable) else reason_of(failure)
