"""What a grant for the shape of a request would have covered of what was asked in the last days: shown before it is made."""

from functools import partial
from typing import Final

import msgspec
import trio

from gatewayd.audit.ids import new_ulid
from gatewayd.control.approvals.answer import read_ask
from gatewayd.control.approvals.grants import shape_of
from gatewayd.control.approvals.shown import ONE, StoredRequest
from gatewayd.control.console import Console
from gatewayd.control.store.statement import Statement

DAYS: Final = 7
_LOOKED_AT: Final = 200
_DAY_MS: Final = 86_400_000

ALIKE: Final = Statement(
    "SELECT approval_id, state, expires_ms, decided_name AS decided_by, note, rows_at_most, claimed_by, expiry_told_to, outcome,"
    " origin, asker, gateway_id, token_id, requester, fingerprint, ask, asked_ms, decided_by AS decider, decided_ms, claimed_ms,"
    " outcome_rows FROM approvals WHERE project_id = $1 AND fingerprint = $2 AND approval_id >= $3 AND asker = $4"
    " AND database_name = $5 ORDER BY approval_id DESC LIMIT $6"
)


class AskedBefore(msgspec.Struct, frozen=True):
    """One of the requests. `rows`: as counted, None where they were not."""

    id: str
    sql: str
    rows: int | None
    asked_ms: int


class Covered(msgspec.Struct, frozen=True):
    """The requests of the last DAYS that have this shape, by the same token at the same database, the newest first, itself among
    them. `is_all` false: there are more than were looked at."""

    requests: list[AskedBefore]
    is_all: bool


async def covered_by(console: Console, project_id: str, approval_id: str) -> Covered | None:
    """None where there is no grant for a shape of this statement."""
    found = await console.store.row(StoredRequest, ONE, project_id, approval_id)
    if found is None:
        return None
    since = new_ulid(max(0, console.now_ms() - DAYS * _DAY_MS), bytes)
    where = (found.fingerprint, since, found.asker, read_ask(found.ask).database, _LOOKED_AT + 1)
    alike = await console.store.rows(StoredRequest, ALIKE, project_id, *where)
    # Each is parsed: two hundred statements of 16 KiB take seconds.
    return await trio.to_thread.run_sync(partial(_of_one_shape, found, alike), abandon_on_cancel=True)


def _of_one_shape(found: StoredRequest, alike: list[StoredRequest]) -> Covered | None:
    shape = shape_of(read_ask(found.ask))
    if shape is None:
        return None
    requests = []
    for each in alike[:_LOOKED_AT]:
        ask = read_ask(each.ask)
        if shape_of(ask) == shape:
            rows = ask.preview.rows if ask.preview is not None else None
            requests.append(AskedBefore(each.approval_id, ask.sql, rows, each.asked_ms))
    return Covered(requests, len(alike) <= _LOOKED_AT)
