"""Audit files with rows of every kind, made by the file's own code without a daemon around it, and what verify says of them."""

import contextlib
import itertools
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gatewayd.audit.events import Agent, Attempted, Decided, Event, Executed, Failed, Payload, PolicyReloaded, Query, QueryId
from gatewayd.audit.file import AuditFile
from gatewayd.audit.ids import RisingIds, ulid_text
from gatewayd.audit.pruning import plan_pruning
from gatewayd.audit.reader import connect_for_reading
from gatewayd.audit.rows import row_of
from gatewayd.audit.verdict import FileVerdict
from gatewayd.audit.verify import Verifier
from gatewayd.keys.ed25519 import SigningKey
from gatewayd.keys.identity import verifier_of
from gatewayd.keys.note import VerifierKey

KEY = SigningKey(bytes(range(32)))
TRUSTED = (verifier_of(KEY),)
NOW_MS = 1_750_000_000_000


class Recorder:
    """A file that rows are put into, a call at a time."""

    def __init__(self, path: Path, seed: int = 0, key: SigningKey = KEY, *, file_type: type[AuditFile] = AuditFile) -> None:
        self.path = path
        self.numbers: Iterator[int] = itertools.count()
        """Of the calls: each tells its call the time."""
        self._random = random.Random(seed)
        self.key = key
        self._file_type = file_type
        self.open()

    def open(self) -> None:
        self.file = self._file_type(str(self.path), "normal", self.key)
        self.ids = RisingIds(self._random.randbytes)
        self.file.start(self.ids)

    def close(self) -> None:
        self.head()
        self.file.close()

    def head(self) -> str | None:
        return self.file.head_now()

    def calls(self, count: int, batch: int = 40) -> list[str]:
        """Records so many calls; their query ids."""
        query_ids: list[str] = []
        events: list[Event] = []
        for _ in range(count):
            query_id, made = self._call()
            query_ids.append(query_id)
            events += made
            if len(events) >= batch:
                self._insert(events)
                events = []
        if events:
            self._insert(events)
        return query_ids

    def _insert(self, events: Sequence[Event]) -> None:
        self.file.insert([(self.ids.next(event.ts_ms), row_of(event)) for event in events])

    def _call(self) -> tuple[str, list[Event]]:
        number = next(self.numbers)
        draw = self._random
        now = NOW_MS + number * 7
        query_id = QueryId(ulid_text(now << 80 | draw.getrandbits(79)))
        agent = Agent(draw.choice([None, "claude-code", "cursor ✓", 'a"b\\c\n']), "1.2" if draw.random() < 0.7 else None)
        intent = draw.choice([None, "look up the order of ana@example.com", "ünïcode 🐘"])
        query = Query(query_id, draw.choice(["__default__", "shop"]), agent, intent)
        payloads: list[Payload] = [Attempted(f"SELECT * FROM t WHERE name = 'person {number}'", f"{number:016x}")]
        match draw.randrange(6):
            case 0:
                payloads.append(
                    Decided("DENY", "DELETE", ("public.t",), "table_access", "table `t` resolves to read", "postgres")
                )
            case 1:
                payloads = [
                    PolicyReloaded("sighup", {"t": "read", "n": 0.5}, ("limits",), ("shop",), {}, {"a": 1.5e300, "é": None})
                ]
            case 2:
                payloads += [
                    Decided("ALLOW", "SELECT", ("public.t",), dialect="postgres"),
                    Failed(3, 1, "22012", f"division by zero for person {number}"),
                ]
            case 3:
                pass  # held
            case _:
                payloads += [
                    Decided("ALLOW", "SELECT", ("public.t",), dialect="postgres"),
                    Executed(3, 1, rows_returned=number, truncated=True if number % 5 == 0 else None),
                ]
        return query_id, [Event(query, now, payload) for payload in payloads]

    def prune(self, cursor: str, at_most_seq: int | None = None, chunk: int = 7) -> int:
        with contextlib.closing(connect_for_reading(str(self.path))) as reader:
            plan = plan_pruning(reader, self.file.meta, cursor, at_most_seq)
        self.file.keep_plan(plan)
        deleted = 0
        while count := self.file.delete_before(cursor, chunk, plan):
            deleted += count
        return deleted


def verdict_of(path: Path, keys: Sequence[VerifierKey] = TRUSTED, notes: Sequence[tuple[str, str]] = ()) -> FileVerdict:
    with contextlib.closing(connect_for_reading(str(path))) as connection:
        return Verifier(connection, keys, notes).run()


def faults_of(path: Path, keys: Sequence[VerifierKey] = TRUSTED, notes: Sequence[tuple[str, str]] = ()) -> list[str]:
    """What verify finds fault with, one line each."""
    return [f"{finding.seq}: {finding.what}" for finding in verdict_of(path, keys, notes).findings if finding.kind == "fault"]


def change(path: Path, *statements: str | Callable[[sqlite3.Connection], object]) -> None:
    """Writes to the file as somebody who may, without gatewayd."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            if callable(statement):
                statement(connection)
            else:
                connection.execute(statement)


@contextlib.contextmanager
def recorder(path: Path, seed: int = 0) -> Iterator[Recorder]:
    """Closed at the end, with a head over everything."""
    recording = Recorder(path, seed)
    try:
        yield recording
    finally:
        recording.close()
