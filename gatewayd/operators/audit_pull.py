"""The audit's routes for a collector: GET /audit/since and DELETE /audit/before (pull, make durable, then delete), signed heads,
proofs of single queries, and erasing (decision 7)."""

import sqlite3
from typing import Final

import msgspec
from quart import Blueprint, Response, request

from gatewayd.audit.erasing import choice_of, reason_of_erasure
from gatewayd.audit.ids import is_ulid
from gatewayd.audit.meta import MetaDamaged
from gatewayd.audit.proof import NoProof
from gatewayd.audit.reader import START
from gatewayd.audit.service import Audit, AuditUnavailable
from gatewayd.audit.stored_tree import LeafMissing
from gatewayd.operators.guard import Guard, failure, json_response, read_body

_ROWS: Final = 500
_MOST_ROWS: Final = 1000
_BAD_CURSOR: Final = "cursor: found no ULID, expected 0 or an id of an audit row"


class _EraseRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: str
    query_ids: tuple[str, ...] = ()
    agent: str | None = None
    before: str | None = None


def audit_routes(audit: Audit, guard: Guard, *, erasable: bool = False) -> Blueprint:
    """The routes; none at all when there is no token. `erasable`: GATEWAY_AUDIT_ERASABLE."""
    routes = guard.blueprint("audit", __name__)
    if not guard.is_enabled:
        return routes

    @routes.get("/audit/since/<cursor>", provide_automatic_options=False)
    async def since(cursor: str) -> Response:
        if not _is_cursor(cursor):
            return failure(400, _BAD_CURSOR)
        page = audit.page(cursor.upper(), page_rows(request.args.get("limit")))
        try:
            await page.begin()
        except (sqlite3.Error, OSError):
            return failure(503, "audit file cannot be read")

        return Response(page, 200, {"cache-control": "no-store"}, content_type="application/json")

    @routes.delete("/audit/before/<cursor>", provide_automatic_options=False)
    async def before(cursor: str) -> Response:
        if not _is_cursor(cursor):
            return failure(400, _BAD_CURSOR)
        try:
            return json_response({"deleted": await audit.delete_before(cursor.upper())})
        except AuditUnavailable as unavailable:
            return failure(503, f"audit file cannot be written: {unavailable.reason}")

    @routes.get("/audit/checkpoint", provide_automatic_options=False)
    async def checkpoint() -> Response:
        try:
            note = await audit.head()
        except AuditUnavailable as unavailable:
            return failure(503, f"audit file cannot be written: {unavailable.reason}")
        if note is None:
            return failure(404, "nothing was recorded yet")
        return _text(note)

    @routes.get("/audit/proof/<id_>", provide_automatic_options=False)
    async def proof(id_: str) -> Response:
        if not is_ulid(id_):
            return failure(400, "id: found no ULID, expected an id of an audit row or a query id")
        try:
            return _text(await audit.proof(id_.upper()))
        except NoProof as none:
            return failure(404, str(none))
        except AuditUnavailable as unavailable:
            return failure(503, f"audit file cannot be written: {unavailable.reason}")
        except (LeafMissing, MetaDamaged) as damaged:
            return failure(503, f"the audit file is damaged: {damaged}")
        except (sqlite3.Error, OSError):
            return failure(503, "audit file cannot be read")

    @routes.post("/audit/erase", provide_automatic_options=False)
    async def erase() -> Response:
        if not erasable:
            return failure(403, "erasing is switched off, expected GATEWAY_AUDIT_ERASABLE=1")
        body = await read_body()
        if isinstance(body, Response):
            return body
        try:
            wanted = msgspec.json.decode(body, type=_EraseRequest)
            choice, reason = choice_of(wanted.query_ids, wanted.agent, wanted.before), reason_of_erasure(wanted.reason)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as wrong:
            return failure(400, str(wrong))
        try:
            return json_response({"erased": await audit.erase(choice, reason)})
        except AuditUnavailable as unavailable:
            return failure(503, f"audit file cannot be written: {unavailable.reason}")

    return routes


def _text(text: str) -> Response:
    return Response(text, 200, {"cache-control": "no-store"}, content_type="text/plain; charset=utf-8")


def page_rows(limit: str | None) -> int:
    """The page size asked for: 500 when it is missing or no positive whole number, never above 1000."""
    if limit is None or not (limit.isascii() and limit.isdigit()):
        return _ROWS
    significant = limit.lstrip("0")
    if len(significant) > len(str(_MOST_ROWS)):  # before int(), which refuses very long texts
        return _MOST_ROWS
    return min(int(significant or "0") or _ROWS, _MOST_ROWS)


def _is_cursor(cursor: str) -> bool:
    return cursor == START or is_ulid(cursor)
