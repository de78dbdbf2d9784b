"""GET /audit/since/<cursor> and DELETE /audit/before/<cursor>: pull, make durable, then delete (decision 7)."""

import sqlite3
from typing import Final

from quart import Blueprint, Response, request

from gatewayd.audit.ids import is_ulid
from gatewayd.audit.reader import START
from gatewayd.audit.service import Audit, AuditUnavailable
from gatewayd.operators.guard import Guard, failure, json_response

_ROWS: Final = 500
_MOST_ROWS: Final = 1000
_BAD_CURSOR: Final = "cursor: found no ULID, expected 0 or an id of an audit row"


def audit_routes(audit: Audit, guard: Guard) -> Blueprint:
    """The two routes; none at all when there is no token."""
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

    return routes


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
