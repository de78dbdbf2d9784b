"""The tables of the audit file, format 2, and how a file of format 1 becomes one (docs/audit-format.md, The file)."""

import sqlite3
from typing import Final

APPLICATION_ID: Final = 0x67617465  # "gate"
FORMAT: Final = 2  # user_version; a gatewayd that knows only format 1 refuses it

_EVENTS: Final = """
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
  schema_version INTEGER NOT NULL"""

_INDEXES: Final = """
CREATE INDEX audit_events_query_id ON audit_events (query_id);
CREATE INDEX audit_events_tenant_ts ON audit_events (tenant_id, ts DESC);
CREATE INDEX audit_events_event_type_ts ON audit_events (event_type, ts DESC);
CREATE INDEX audit_events_database_ts ON audit_events (database, ts DESC);
CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL);
"""

# What format 2 adds: each row's position in the tree, the heads, and the commitments of rows whose details were erased. A row
# with NULL in `seq` is from before format 2.
_ADDED_COLUMNS: Final = ("seq INTEGER", "leaf BLOB", "salt BLOB")
_SEQ_INDEX: Final = "CREATE UNIQUE INDEX audit_events_seq ON audit_events (seq) WHERE seq IS NOT NULL"
_ADDED: Final = f"""
CREATE TABLE checkpoints (
  instance TEXT NOT NULL,
  size INTEGER NOT NULL,
  ts INTEGER NOT NULL,
  note TEXT NOT NULL,
  frontier BLOB NOT NULL,
  later INTEGER,
  proof BLOB,
  PRIMARY KEY (instance, size)
) WITHOUT ROWID;
CREATE TABLE erased (seq INTEGER NOT NULL PRIMARY KEY, commitment BLOB NOT NULL);
PRAGMA user_version = {FORMAT};
"""


def create(connection: sqlite3.Connection) -> None:
    """Creates the tables of an empty file within the caller's transaction."""
    columns = "".join(f",\n  {column}" for column in _ADDED_COLUMNS)
    _run(connection, f"{_EVENTS}{columns}\n);{_INDEXES}PRAGMA application_id = {APPLICATION_ID};{_SEQ_INDEX};{_ADDED}")


def convert(connection: sqlite3.Connection) -> None:
    """Converts a file of format 1 to format 2 within the caller's transaction. Its rows are neither changed nor read."""
    for column in _ADDED_COLUMNS:
        connection.execute(f"ALTER TABLE audit_events ADD COLUMN {column}")
    _add_seq_index(connection)
    _run(connection, _ADDED)


def _add_seq_index(connection: sqlite3.Connection) -> None:
    """Adds the index of audit_events by seq, while no row has a seq.

    CREATE INDEX would read all rows to build an empty index. So the index is created on an empty table and then assigned to
    audit_events, in the way that sqlite.org/lang_altertable.html describes for schema changes that do not affect stored data.
    """
    connection.execute("CREATE TABLE without_rows (seq INTEGER)")
    connection.execute(_SEQ_INDEX.replace("ON audit_events", "ON without_rows"))
    connection.execute("PRAGMA writable_schema = ON")
    is_handed_over = False
    try:
        connection.execute(
            "UPDATE sqlite_schema SET tbl_name = 'audit_events', sql = ? WHERE name = 'audit_events_seq'", (_SEQ_INDEX,)
        )
        is_handed_over = True
    except sqlite3.DatabaseError:  # some builds of SQLite forbid it
        pass
    finally:
        connection.execute("PRAGMA writable_schema = RESET")
    connection.execute("DROP TABLE without_rows")
    if not is_handed_over:
        connection.execute(_SEQ_INDEX)


def differences(connection: sqlite3.Connection) -> list[str]:
    """The names of tables and indexes that the file lacks, has in another form, or has in addition."""
    found = {(kind, name): _words(sql) for kind, name, sql in connection.execute(_OBJECTS)}
    twin = sqlite3.connect(":memory:")
    try:
        create(twin)
        expected = {(kind, name): _words(sql) for kind, name, sql in twin.execute(_OBJECTS)}
    finally:
        twin.close()
    names = found.keys() | expected.keys()
    return sorted(f"{kind} {name}" for kind, name in names if found.get((kind, name)) != expected.get((kind, name)))


# SQLite's own indexes for PRIMARY KEY, and the tables of ANALYZE. GLOB, because in LIKE the `_` would also match `sqlitehook`.
_SQLITES_OWN: Final = "type = 'index' AND name GLOB 'sqlite_autoindex_*' OR type = 'table' AND name GLOB 'sqlite_stat[0-9]'"
_OBJECTS: Final = f"SELECT type, name, sql FROM sqlite_schema WHERE NOT ({_SQLITES_OWN})"


def _words(sql: str | None) -> str:
    """The statement without white space, which a converted file has in other places."""
    return "".join((sql or "").split())


def _run(connection: sqlite3.Connection, script: str) -> None:
    for statement in script.split(";"):
        if statement.strip():
            connection.execute(statement)
