"""Which run of a gateway called last, and which runs it superseded: so a copy of an identity is noticed and an
answer that was lost
is not (docs/link-protocol.md, Requests)."""

from typing import Final

import msgspec

from gatewayd.control.audit.findings import find_out
from gatewayd.control.gateways.gateway import SET_STANDING, Gateway
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.link.formats.requests import RUNS_KEPT, PollsBefore, ReadRequest

EARLIER: Final = Statement(
    "SELECT run FROM gateway_runs WHERE project_id = $1 AND gateway_id = $2 ORDER BY superseded_ms DESC, run DESC LIMIT $3"
)
SUPERSEDE: Final = Statement(
    "INSERT INTO gateway_runs (project_id, gateway_id, run, superseded_ms) VALUES ($1, $2, $3, $4)"
    " ON CONFLICT (project_id, gateway_id, run) DO NOTHING"
)
FORGET: Final = Statement("DELETE FROM gateway_runs WHERE project_id = $1 AND gateway_id = $2 AND superseded_ms < $3")
KEEP: Final = Statement(
    "UPDATE gateways SET run = $3, run_n = $4, run_ts_ms = $5, run_digest = $6 WHERE project_id = $1 AND gateway_id = $2"
)
_KEPT_MS: Final = 90 * 24 * 3600 * 1000


class _Run(msgspec.Struct, frozen=True):
    run: str


async def before(tx: Transaction, gateway: Gateway) -> PollsBefore | None:
    """What the polls of this gateway were until now."""
    if gateway.run is None or gateway.run_digest is None:
        return None
    earlier = await tx.rows(_Run, EARLIER, gateway.project_id, gateway.gateway_id, RUNS_KEPT)
    runs = tuple(each.run for each in reversed(earlier))
    return PollsBefore(gateway.run, gateway.run_n, gateway.run_ts_ms, gateway.run_digest.hex(), runs)


async def keep(tx: Transaction, gateway: Gateway, found: ReadRequest, now_ms: int) -> None:
    request = found.request
    place = (gateway.project_id, gateway.gateway_id)
    if gateway.run is not None and gateway.run != request.run:
        await tx.run(SUPERSEDE, *place, gateway.run, now_ms)
        await tx.run(FORGET, *place, now_ms - _KEPT_MS)
    await tx.run(KEEP, *place, request.run, request.n, request.ts, bytes.fromhex(found.digest))


async def mark_duplicated(
    tx: Transaction, place: ProjectPlace, gateway: Gateway, found: ReadRequest, finding_id: str, now_ms: int
) -> None:
    """Until a person decides, neither of the two is believed."""
    note = "two processes use this gateway's identity; retire it and enrol a new one, or let it go on once only one is left"
    await tx.run(SET_STANDING, gateway.project_id, gateway.gateway_id, "duplicated", note)
    body = {"run": found.request.run, "n": found.request.n, "last_run": gateway.run or ""}
    await find_out(tx, place, "duplicated", body, finding_id, now_ms)
