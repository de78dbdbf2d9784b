"""Calls as the pipeline makes them, and the audit file as another process sees it."""

import itertools
import os
import sqlite3
import time
from pathlib import Path

import msgspec

from gatewayd.audit.events import Agent, Attempted, AuditId, Executed, Failed, Query, QueryId
from gatewayd.audit.ids import new_ulid
from gatewayd.audit.reader import AuditRow, connect_for_reading, read_rows
from gatewayd.audit.service import Audit
from gatewayd.policy.decide.outcomes import Allowed, Denied, Permit
from gatewayd.sql.facts.statement import Statement


class Calls:
    """Makes queries and walks them through the audit's steps."""

    allowed = Allowed(Statement("SELECT 1", "SELECT", "read", "0" * 16), ("public.users",), "default:read")
    denied = Denied("table_access", "table `users` resolves to read", "DELETE", ("public.users",))
    cancelled = Failed(0, 1, "57014", "the call was cancelled")

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def query(self) -> Query:
        query_id = QueryId(new_ulid(time.time_ns() // 1_000_000, os.urandom))
        return Query(query_id, "__default__", Agent("claude-code", "1.2"), f"call {next(self._numbers)}")

    def attempted(self, sql: str = "SELECT 1") -> Attempted:
        return Attempted(sql, "0123456789abcdef")

    async def permit(self, audit: Audit, query: Query, sql: str = "SELECT 1") -> Permit:
        await audit.attempted(query, self.attempted(sql))
        return await audit.decided(query, self.allowed)

    async def refuse(self, audit: Audit, query: Query, sql: str = "DELETE FROM users") -> AuditId:
        await audit.attempted(query, self.attempted(sql))
        return await audit.decided(query, self.denied)

    async def whole(self, audit: Audit, sql: str = "SELECT 1") -> Permit:
        query = self.query()
        permit = await self.permit(audit, query, sql)
        await audit.closed(query, Executed(3, 1, rows_returned=1))
        return permit


def rows_of(path: str | Path) -> list[AuditRow]:
    """Every row, in order of id, through a connection of its own."""
    connection = connect_for_reading(str(path))
    try:
        return read_rows(connection, "", 1_000_000, 1 << 40)
    finally:
        connection.close()


class FileView:
    """What stands in a file."""

    def rows(self, path: str | Path) -> list[AuditRow]:
        return rows_of(path)

    def events(self, path: str | Path) -> dict[str, list[str]]:
        """query_id → its event types (a DECIDED with its decision), in order of id."""
        found: dict[str, list[str]] = {}
        for row in rows_of(path):
            payload = msgspec.json.decode(row.payload)
            found.setdefault(row.query_id, []).append(f"{row.event_type} {payload.get('decision', '')}".strip())
        return found

    def run(self, path: str | Path, sql: str) -> list[tuple[object, ...]]:
        connection = sqlite3.connect(path, isolation_level=None, timeout=5)  # gatewayd itself may carry its log over just then
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()
