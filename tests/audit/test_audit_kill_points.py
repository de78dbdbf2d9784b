"""SIGKILL at every write of a checkpoint, a deletion or an erasure: the file opens, verifies, and the work can be done again.

What a killed process leaves is what it had written so far: a beginning of the new frames of the log, over older ones; and in the
middle of a checkpoint the file with its first pages carried over, beside the whole log (SQLite carries them by their numbers).
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from gatewayd.audit.erasing import ErasureChoice, find
from gatewayd.audit.events import Agent, Attempted, Event, Query, QueryId
from gatewayd.audit.heads import unproved_head
from gatewayd.audit.ids import ulid_text
from gatewayd.audit.reader import connect_for_reading
from gatewayd.audit.rows import row_of
from tests.audit.recorded import NOW_MS, Recorder, faults_of

PAGE = 4096
FRAME = PAGE + 24
SECRET = "canary-4711"

State = tuple[bytes, bytes]
"""The file and its log."""


def state_of(path: Path) -> State:
    log = Path(f"{path}-wal")
    return path.read_bytes(), log.read_bytes() if log.exists() else b""


def while_the_log_grows(path: Path, work: Callable[[], object]) -> Iterator[State]:
    """Each state of the files while `work` writes to the log."""
    before, log_before = state_of(path)
    work()
    after, log = state_of(path)
    assert after == before
    ends = [end for end in range(32, len(log) + 1, FRAME // 2) if log[:end] != log_before[:end]]
    assert len(ends) > 10
    for end in ends:
        yield before, log[:end] + log_before[end:]


def while_pages_are_carried(path: Path, work: Callable[[], object]) -> Iterator[State]:
    """Each state of the files while `work` carries the log into the file."""
    before, log = state_of(path)
    work()
    after, log_after = state_of(path)
    assert after != before
    for end in range(0, len(after), PAGE):
        yield after[:end] + before[end:], log
    yield after, log
    yield after, log_after


def reopened(folder: Path, states: Iterator[State], head: str) -> Iterator[Recorder]:
    """The file as gatewayd opens it after each of them; it goes on, and verifies."""
    for number, (data, log) in enumerate(states):
        path = folder / f"{number}.db"
        path.write_bytes(data)
        Path(f"{path}-wal").write_bytes(log)
        recording = Recorder(path, seed=number)
        assert not recording.file.meta.previous_instances
        assert recording.file.size >= unproved_head(head).size
        recording.calls(1)
        yield recording
        recording.close()
        assert not faults_of(path, notes=[(head, "the log")])
        path.unlink()


def recorded(path: Path) -> tuple[Recorder, str]:
    recording = Recorder(path)
    recording.calls(4)
    recording.file.checkpoint()
    query = Query(QueryId(ulid_text(NOW_MS << 80)), "__default__", Agent(), SECRET)
    recording.file.insert([(recording.ids.next(NOW_MS), row_of(Event(query, NOW_MS, Attempted(SECRET, "0" * 16))))])
    recording.calls(4)
    head = recording.head()
    assert head is not None
    return recording, head


def bytes_of(path: Path) -> bytes:
    return b"".join(state_of(path))


def test_killed_in_a_checkpoint(tmp_path: Path) -> None:
    recording, head = recorded(tmp_path / "audit.db")
    rows = recording.file.size
    states = while_pages_are_carried(recording.path, recording.file.checkpoint)
    count = 0
    for after in reopened(tmp_path, states, head):
        assert after.file.size > rows  # nothing of what was committed is lost
        count += 1
    assert count > 10
    recording.close()


def test_killed_in_a_deletion_the_rest_is_whole_and_it_can_be_done_again(tmp_path: Path) -> None:
    recording, head = recorded(tmp_path / "audit.db")
    with contextlib.closing(connect_for_reading(str(recording.path))) as reader:
        ids = [id_ for (id_,) in reader.execute("SELECT id FROM audit_events ORDER BY id")]
    cursor = ids[len(ids) * 2 // 3]
    pruned: set[int] = set()
    for after in reopened(tmp_path, while_the_log_grows(recording.path, lambda: recording.prune(cursor, chunk=3)), head):
        pruned.add(after.file.meta.pruned_to)
        after.prune(cursor)
        assert after.file.meta.pruned_to == len(ids) * 2 // 3 + 1
    assert len(pruned) > 3  # between the chunks too
    recording.close()


def erase(recording: Recorder) -> None:
    """Takes out all texts, and does not come to emptying the log."""
    with contextlib.closing(connect_for_reading(str(recording.path))) as reader:
        found = find(reader, ErasureChoice(before="7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), 0, 1000)
    recording.file.erase(found, "asked for", NOW_MS)


def test_killed_in_an_erasure_it_was_not_begun_or_nothing_of_the_texts_is_left(tmp_path: Path) -> None:
    recording, head = recorded(tmp_path / "audit.db")
    left: set[tuple[int, bool]] = set()

    def look(after: Recorder) -> None:
        with contextlib.closing(sqlite3.connect(after.path)) as connection:
            (reasons,) = connection.execute("SELECT count(*) FROM audit_events WHERE event_type = 'ERASED'").fetchone()
        left.add((reasons, SECRET.encode() in bytes_of(after.path)))
        erase(after)
        assert after.file.empty_log()
        assert SECRET.encode() not in bytes_of(after.path)

    for after in reopened(tmp_path, while_the_log_grows(recording.path, lambda: erase(recording)), head):
        look(after)
    assert left == {(0, True), (1, False)}
    left.clear()
    for after in reopened(tmp_path, while_pages_are_carried(recording.path, recording.file.empty_log), head):
        look(after)
    assert left == {(1, False)}
    recording.close()
