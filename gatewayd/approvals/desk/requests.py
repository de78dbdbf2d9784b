"""Requests: what was requested, decided and claimed, in one SQLite file (docs/approvals.md, What a gate must keep).

Every call is one transaction that is durable when it returns, so a claimed approval stays claimed even if the process is killed.
Times are passed in, in milliseconds since the epoch.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

import msgspec

from gatewayd.approvals.messages import Expired, GateAnswer, GateAsk, Outcome, Pending, Status, Wait
from gatewayd.approvals.rules import OPEN_OF_ONE, DecidedAs, NotAsked, RequestStanding, TooManyOpen, newest_says, status_of

EXPIRES_MS: Final = 30 * 60 * 1000

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY,
    approval_id TEXT NOT NULL UNIQUE,
    key BLOB NOT NULL,
    token TEXT NOT NULL,
    ask BLOB NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied')),
    decided_by TEXT,
    note TEXT,
    rows_at_most INTEGER,
    claimed_by TEXT UNIQUE CHECK (claimed_by IS NULL OR state = 'approved'),
    expiry_told_to TEXT,
    outcome TEXT,
    rows INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS requests_of_key ON requests (key, number);
CREATE INDEX IF NOT EXISTS open_requests ON requests (token, expires_ms) WHERE state = 'pending';
"""


class DeskRequest(msgspec.Struct, frozen=True):
    """One request as a reviewer sees it."""

    approval_id: str
    ask: GateAsk
    created_ms: int
    expires_ms: int


class _Row(RequestStanding, frozen=True):
    number: int


_COLUMNS: Final = ", ".join(_Row.__struct_fields__)


class Requests:
    """The open file; `close` it. `new_id` makes an approval id of a time. For one thread, and for one process at a time."""

    def __init__(self, path: str, new_id: Callable[[int], str], *, expires_ms: int = EXPIRES_MS) -> None:
        self._new_id = new_id
        self._expires_ms = expires_ms
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # it holds statements with their values
        self._file = sqlite3.connect(path, isolation_level=None, timeout=5)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = FULL")
        self._file.executescript(_TABLES)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def forget_before(self, expired_ms: int) -> None:
        """Deletes the requests that expired before this time."""
        self._file.execute("DELETE FROM requests WHERE expires_ms < ?", (expired_ms,))

    # -- what gateways ask

    def answer(self, ask: GateAsk, now_ms: int) -> GateAnswer:
        """The first of these: what this query claimed before, an approval to claim, a denial that still holds, an expiry that was
        not reported yet, the open request, a new request. Raises TooManyOpen or NotAsked."""
        key = _key(ask)
        with self._transaction():
            mine = self._one("claimed_by = ?", ask.query_id)
            if mine is not None:
                if not self._has_key(mine, key):
                    raise NotAsked
                return mine.approved()
            claimable = self._one("key = ? AND state = 'approved' AND claimed_by IS NULL AND expires_ms > ?", key, now_ms)
            if claimable is not None:
                self._file.execute("UPDATE requests SET claimed_by = ? WHERE number = ?", (ask.query_id, claimable.number))
                return claimable.approved()
            newest = self._one("key = ?", key)
            found = newest_says(newest, ask.query_id, now_ms)
            if isinstance(found, Expired) and newest is not None:
                told = (ask.query_id, newest.number)
                self._file.execute("UPDATE requests SET expiry_told_to = ? WHERE number = ?", told)
            return found or self._open(ask, key, now_ms)

    def wait(self, wait: Wait, now_ms: int) -> GateAnswer:
        """The answer to `wait.query_id` about the write of this request. Raises as `answer` does."""
        row = self._file.execute("SELECT ask FROM requests WHERE approval_id = ? AND token = ?", _owned(wait)).fetchone()
        if row is None:
            raise NotAsked
        return self.answer(msgspec.structs.replace(_ask(row[0]), query_id=wait.query_id), now_ms)

    def status(self, approval_id: str, token_id: str | None, now_ms: int) -> Status:
        """The state of the request; `not_found` if another token made it."""
        return status_of(self._one("approval_id = ? AND token = ?", approval_id, token_id or ""), now_ms)

    def note_outcome(self, outcome: Outcome) -> None:
        """Notes the outcome of a claimed approval. Only the first one is kept; one of a query without a claim is ignored."""
        self._file.execute(
            "UPDATE requests SET outcome = ?, rows = ? WHERE claimed_by = ? AND outcome IS NULL",
            (outcome.outcome, outcome.rows, outcome.query_id),
        )

    # -- what the reviewer does

    def open_requests(self, now_ms: int) -> list[DeskRequest]:
        """The requests without a decision, oldest first."""
        rows = self._file.execute(
            "SELECT approval_id, ask, created_ms, expires_ms FROM requests WHERE state = 'pending' AND expires_ms > ? "
            "ORDER BY number",
            (now_ms,),
        )
        return [DeskRequest(approval_id, _ask(ask), created, expires) for approval_id, ask, created, expires in rows]

    def decide(
        self,
        approval_id: str,
        decision: DecidedAs,
        now_ms: int,
        *,
        by: str | None = None,
        note: str | None = None,
        rows_at_most: int | None = None,
    ) -> bool:
        """Decides the request. Returns False if it was no longer open: a decision is final."""
        changed = self._file.execute(
            "UPDATE requests SET state = ?, decided_by = ?, note = ?, rows_at_most = ? "
            "WHERE approval_id = ? AND state = 'pending' AND expires_ms > ?",
            (decision, by, note, rows_at_most if decision == "approved" else None, approval_id, now_ms),
        )
        return changed.rowcount == 1

    # -- rows

    def _open(self, ask: GateAsk, key: bytes, now_ms: int) -> Pending:
        token = ask.mcp_token_id or ""
        count, first_ms = self._file.execute(
            "SELECT count(*), min(expires_ms) FROM requests WHERE state = 'pending' AND token = ? AND expires_ms > ?",
            (token, now_ms),
        ).fetchone()
        if count >= OPEN_OF_ONE:
            raise TooManyOpen(first_ms, now_ms)
        approval_id, expires_ms = self._new_id(now_ms), now_ms + self._expires_ms
        self._file.execute(
            "INSERT INTO requests (approval_id, key, token, ask, created_ms, expires_ms, state) "
            "VALUES (?, ?, ?, ?, ?, ?, 'pending')",
            (approval_id, key, token, msgspec.json.encode(ask), now_ms, expires_ms),
        )
        return Pending(approval_id=approval_id, expires_at=expires_ms)

    def _one(self, condition: str, *values: object) -> _Row | None:
        """The newest row that fulfils this."""
        select = f"SELECT {_COLUMNS} FROM requests WHERE {condition} ORDER BY number DESC LIMIT 1"
        row = self._file.execute(select, values).fetchone()
        return None if row is None else _Row(*row)

    def _has_key(self, row: _Row, key: bytes) -> bool:
        return bool(self._file.execute("SELECT key = ? FROM requests WHERE number = ?", (key, row.number)).fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._file.execute("ROLLBACK")
            raise
        self._file.execute("COMMIT")


def _key(ask: GateAsk) -> bytes:
    return sha256(msgspec.json.encode([ask.database, ask.sql, ask.intent, ask.mcp_token_id, ask.effect])).digest()


def _owned(wait: Wait) -> tuple[str, str]:
    return wait.approval_id, wait.mcp_token_id or ""


def _ask(text: bytes) -> GateAsk:
    return msgspec.json.decode(text, type=GateAsk)
