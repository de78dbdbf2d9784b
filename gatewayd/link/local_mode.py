"""A file that last ran linked, opened in local mode: its owed events are told of once, and stay as long as the link let them."""

import sqlite3
import time
from typing import Final

import trio

from gatewayd import log
from gatewayd.audit.service import Audit, AuditUnavailable
from gatewayd.link.batches import last_before

LOOK_S: Final = 3600.0
_HOUR_MS: Final = 3600 * 1000
_OWED: Final = "SELECT count(*), max(seq) FROM audit_events WHERE seq >= ?"


async def keep_what_the_link_owed(audit: Audit) -> None:
    """Returns at once for a file that never ran linked, else once nothing is left of what it recorded then."""
    try:
        meta = await audit.meta()
        if meta.linked is None or not meta.linked.linked:
            return
        first_owed = meta.first_seq + (meta.acked.size if meta.acked is not None else 0)
        owed, last_seq = await audit.ask(lambda connection: connection.execute(_OWED, (first_owed,)).fetchone())
    except (AuditUnavailable, sqlite3.Error, OSError):
        return  # the audit says so itself, and nothing runs
    if owed:
        log.warning(log.AUDIT_NEVER_SENT, events=owed)
    up_to = last_seq if last_seq is not None else first_owed - 1
    while True:
        before_ms = time.time_ns() // 1_000_000 - round(meta.linked.retention_h * _HOUR_MS)
        try:
            last = await audit.ask(lambda connection: last_before(connection, up_to, before_ms))  # noqa: B023
            if last is not None:
                await audit.delete_before(last)
            if (await audit.meta()).pruned_to >= up_to:
                return
        except (AuditUnavailable, sqlite3.Error, OSError) as failure:
            log.error(log.AUDIT_PRUNING_FAILED, error=str(failure))
        await trio.sleep(LOOK_S)
