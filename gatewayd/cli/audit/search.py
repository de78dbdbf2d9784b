"""Finding rows in the audit file beside the gatewayd that writes it: read-only, in short reads, streaming (decisions 7 and 14).

Ids rise in commit order and carry the time, so a place in the file is an id and a moment is the smallest id of its millisecond.
"""

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from gatewayd.audit.events import Attempted, Decided
from gatewayd.audit.ids import is_ulid, ulid_text, ulid_value
from gatewayd.audit.reader import START, AuditRow, audit_row, connect_for_reading, instances
from gatewayd.audit.rows import COLUMNS
from gatewayd.cli.options import duration_s
from gatewayd.cli.progress import progress
from gatewayd.config.settings import audit_path
from gatewayd.policy.tools.replay import Recorded

EVENT_TYPES: Final = ("ATTEMPTED", "DECIDED", "EXECUTED", "FAILED", "POLICY_RELOADED", "ERASED")
_PAYLOAD: Final = COLUMNS.index("payload")
_PIECE: Final = 200  # rows of one read: each is its own short transaction, so the log of the writer is never held
_PIECE_CHARACTERS: Final = 4 * 1024 * 1024  # of payload, unless one row alone is longer
_COLUMNS: Final = ", ".join(f"e.{column}" for column in COLUMNS)
_RECORDED: Final = f"""
SELECT e.id, e.ts, e.database, e.agent_name, e.payload,
       (SELECT d.payload FROM audit_events AS d WHERE d.query_id = e.query_id AND +d.event_type = 'DECIDED'),
       EXISTS (SELECT 1 FROM audit_events AS f WHERE f.query_id = e.query_id AND +f.event_type = 'FAILED'
               AND json_extract(f.payload, '$.error_class') = 'column_masking'), coalesce(e.mcp_token_id, '')
FROM audit_events AS e WHERE e.id > ? AND +e.event_type = 'ATTEMPTED'
AND json_extract(e.payload, '$.preview_of') IS NULL ORDER BY e.id LIMIT {_PIECE}
"""
_STEPS: Final = 200_000  # of SQLite's machine between two looks at the clock: some milliseconds


class Filter(msgspec.Struct, frozen=True):
    """What rows to find; None: any. `rule` finds the DECIDED rows of that denial."""

    database: str | None = None
    agent: str | None = None
    rule: str | None = None
    type: str | None = None

    def where(self) -> tuple[str, list[str]]:
        """SQL conditions, each beginning with AND, and their parameters. `+` keeps SQLite from leaving the order of ids for an
        index that it would have to sort."""
        conditions = {
            "+e.database = ?": self.database,
            "+e.agent_name = ?": self.agent,
            "+e.event_type = ?": self.type or ("DECIDED" if self.rule else None),
            "json_extract(e.payload, '$.policy_rule') = ?": self.rule,
        }
        given = {condition: value for condition, value in conditions.items() if value is not None}
        return "".join(f" AND {condition}" for condition in given), list(given.values())


class AuditFileView:
    """The file, open for reading. Methods raise sqlite3.Error when it cannot be read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._connection = connect_for_reading(path)
        (format_,) = self._connection.execute("PRAGMA user_version").fetchone()
        self._select = f"SELECT {_COLUMNS}, {'NULL' if format_ == 1 else 'e.seq'} FROM audit_events AS e"

    def rows_after(self, cursor: str, wanted: Filter, limit: int | None = None) -> Iterator[AuditRow]:
        """Matching rows with an id above `cursor`, ascending, up to those there now or to `limit`."""
        where, parameters = wanted.where()
        sql = f"{self._select} WHERE e.id > ?{where} ORDER BY e.id LIMIT {_PIECE}"
        found = 0
        while rows := self._rows(sql, cursor, *parameters, characters_most=_PIECE_CHARACTERS):
            for row in rows:
                if found == limit:
                    return
                found += 1
                yield row
            cursor = rows[-1].id

    def recorded(self, cursor: str) -> Iterator[Recorded]:
        """Every call above `cursor` with what was decided, in order."""
        while rows := _piece(self._connection.execute(_RECORDED, (cursor,)), 4, _PIECE_CHARACTERS):
            for row in rows:
                yield _recorded(*row)
            cursor = rows[-1][0]

    def attempts(self, cursor: str) -> int:
        """About how many calls there are above `cursor`."""
        since_ms = (ulid_value(cursor) or 0) >> 80
        sql = "SELECT count(*) FROM audit_events WHERE event_type = 'ATTEMPTED' AND ts >= ?"
        (count,) = self._connection.execute(sql, (since_ms,)).fetchone()
        return int(count)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """A sign of life while SQLite searches in the block, which may take long in a large file."""
        with progress("reading the audit file") as shown:
            self._connection.set_progress_handler(shown.advance, _STEPS)
            try:
                yield
            finally:
                self._connection.set_progress_handler(None, 0)

    def latest(self, wanted: Filter, limit: int) -> list[AuditRow]:
        """The last matching rows, ascending."""
        where, parameters = wanted.where()
        return self._latest(f"{self._select} WHERE e.id < ?{where} ORDER BY e.id DESC LIMIT {limit}", "Z", *parameters)

    def denials(self, cursor: str, wanted: Filter, limit: int) -> list[AuditRow]:
        """The last DECIDED rows above `cursor` that say DENY, ascending."""
        where, parameters = wanted.where()
        denied = "+e.event_type = 'DECIDED' AND json_extract(e.payload, '$.decision') = 'DENY'"
        sql = f"{self._select} WHERE e.id > ? AND {denied}{where} ORDER BY e.id DESC LIMIT {limit}"
        return self._latest(sql, cursor, *parameters)

    def _latest(self, sql: str, *parameters: str) -> list[AuditRow]:
        """What a descending selection finds, ascending."""
        return self._rows(sql, *parameters)[::-1]

    def last_id(self) -> str:
        """The largest id there is, START in an empty file."""
        (found,) = self._connection.execute("SELECT max(id) FROM audit_events").fetchone()
        return found or START

    def chain(self, id_: str) -> list[AuditRow]:
        """Every row of the query that `id_` names, or that the event `id_` belongs to."""
        sql = f"{self._select} WHERE e.query_id = coalesce((SELECT query_id FROM audit_events WHERE id = ?), ?) ORDER BY e.id"
        return self._rows(sql, id_, id_)

    def statement(self, query_id: str) -> str:
        """The SQL of a query as recorded, empty when its ATTEMPTED row is gone."""
        sql = "SELECT json_extract(payload, '$.sql_raw') FROM audit_events WHERE query_id = ? AND event_type = 'ATTEMPTED'"
        found = self._connection.execute(sql, (query_id,)).fetchone()
        return found[0] if found else ""

    def query(self, sql: str, *parameters: str | int) -> list[tuple[object, ...]]:
        """Rows of a question of the command's own, over `audit_events`."""
        return self._connection.execute(sql, parameters).fetchall()

    def _rows(self, sql: str, *parameters: str, characters_most: int = sys.maxsize) -> list[AuditRow]:
        instance_of = instances(self._connection)
        found = _piece(self._connection.execute(sql, parameters), _PAYLOAD, characters_most)
        return [audit_row(row, instance_of) for row in found]


def _piece(selected: sqlite3.Cursor, payload: int, characters_most: int) -> list[Any]:
    """Rows until their payloads have that many characters; the read ends with them."""
    rows: list[Any] = []
    characters = 0
    try:
        for row in selected:
            rows.append(row)
            characters += len(row[payload])
            if characters > characters_most:
                break
    finally:
        selected.close()
    return rows


def _recorded(
    id_: str, ts: int, database: str, agent: str | None, attempted: str, decided: str | None, masked: int, token: str
) -> Recorded:
    """`masked`: the policy allowed it and a mask refused it before it ran, which is a denial too."""
    text = msgspec.json.decode(attempted, type=Attempted)
    recorded = Recorded(id_, ts, database, agent, text.sql_raw, text.sql_fingerprint, token=token)
    if decided is None:
        return recorded
    said = msgspec.json.decode(decided, type=Decided)
    recorded = msgspec.structs.replace(recorded, tables=said.tables_touched or ())
    if masked:
        return msgspec.structs.replace(recorded, decision="DENY", rule="column_masking")
    approved = said.approved_by is not None
    return msgspec.structs.replace(recorded, decision=said.decision, rule=said.policy_rule, approved=approved)


def open_audit_file(path: str | None) -> AuditFileView:
    """The file named, or that of DB_PATH. Ends the command when there is none to read."""
    named = path or audit_path(os.environ)
    try:
        file = AuditFileView(named)
        file.last_id()
    except (sqlite3.Error, OSError) as failure:
        why = "there is no such file" if not Path(named).exists() else str(failure)
        instead = "name one with --file or DB_PATH"
        raise click.ClickException(f"cannot read the audit file `{named}`: {why}; {instead}") from None
    return file


def cursor_of(text: str, now_ms: int) -> str:
    """The cursor that `text` means: `0`, an event id, or the moment that long before now. Ends the command for other texts."""
    if text == START or is_ulid(text):
        return text.upper()
    seconds = duration_s(text)
    if not seconds:
        raise click.UsageError(f"found `{text}`; expected a duration such as 30m, 12h or 7d, an event id, or 0 for everything")
    return ulid_text(max(now_ms - seconds * 1000, 0) << 80)
