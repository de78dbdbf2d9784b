"""Audit files as the gatewayd before format 2 wrote them."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Final

from gatewayd.audit.rows import COLUMNS
from gatewayd.audit.schema import APPLICATION_ID
from tests.audit.recorded import NOW_MS

TABLES: Final = f"""
CREATE TABLE audit_events (
  id TEXT NOT NULL PRIMARY KEY,
  query_id TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  database TEXT NOT NULL,
  agent_name TEXT,
  agent_version TEXT,
  agent_intent TEXT,
  mcp_token_id TEXT,
  ts INTEGER NOT NULL,
  event_type TEXT NOT NULL,
  payload TEXT NOT NULL,
  schema_version INTEGER NOT NULL
);
CREATE INDEX audit_events_query_id ON audit_events (query_id);
CREATE INDEX audit_events_tenant_ts ON audit_events (tenant_id, ts DESC);
CREATE INDEX audit_events_event_type_ts ON audit_events (event_type, ts DESC);
CREATE INDEX audit_events_database_ts ON audit_events (database, ts DESC);
CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = 1;
"""


def write(path: Path, rows: int) -> None:
    """A file with so many rows."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(TABLES)
        payload = '{"sql_raw":"SELECT 1","sql_fingerprint":"0123456789abcdef"}'
        connection.executemany(
            f"INSERT INTO audit_events VALUES ({', '.join('?' * len(COLUMNS))})",
            (
                (f"01ARZ3NDEK{number:016d}", f"01ARZ3NDEK{number:016d}", "__self_host__", "__default__", "a", None, None, None,
                 NOW_MS - rows + number, "ATTEMPTED", payload, 3)
                for number in range(rows)
            ),
        )  # fmt: skip
