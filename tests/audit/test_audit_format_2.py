"""What happens to a file of format 2 over its life: converted, restored, cut, killed, full disks, other keys; and its heads."""

import contextlib
import json
import os
import resource
import shutil
import sqlite3
from pathlib import Path

import pytest
import trio

from gatewayd.audit.file import AuditFile, HeadDraft
from gatewayd.audit.heads import unproved_head
from gatewayd.audit.last_head import LastHead
from gatewayd.audit.leaf import commitment_of, facts_of, leaf_of
from gatewayd.audit.pace import Pace
from gatewayd.audit.rows import COLUMNS
from gatewayd.audit.service import IdentityRefused, open_audit
from gatewayd.keys.ed25519 import SigningKey
from gatewayd.keys.identity import FILE_NAME, load_identity, verifier_of
from gatewayd.keys.note import VerifierKey
from tests.audit import format_1
from tests.audit.audit_calls import Calls, rows_of
from tests.audit.recorded import TRUSTED, Recorder, faults_of, verdict_of


def trusted(path: Path | str) -> list[VerifierKey]:
    identity = load_identity(str(Path(path).parent))
    assert identity is not None
    return [verifier_of(identity)]


def messages(text: str) -> list[str]:
    return [json.loads(line)["msg"] for line in text.splitlines()]


def test_a_file_of_format_1_is_converted_and_its_rows_stay(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    format_1.write(path, 50)
    assert any("format 1" in finding.what for finding in verdict_of(path).findings)
    recording = Recorder(path)
    recording.calls(5)
    recording.close()
    verdict = verdict_of(path)
    assert not verdict.faults
    assert any(finding.what.startswith("50 rows are from before format 2") for finding in verdict.findings)
    assert [row.seq for row in rows_of(path)][:52] == [None] * 50 + [1, 2]
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)  # what the gatewayd before refuses
        (cursor,) = connection.execute("SELECT id FROM audit_events WHERE seq = 2").fetchone()
    recording.open()
    assert recording.prune(cursor) == 52
    recording.close()
    assert not faults_of(path)


def steps_of_opening(path: Path) -> int:
    """How many instructions SQLite runs until the file is open: they grow with the rows that it reads."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    class Counted(AuditFile):
        def connect(self) -> sqlite3.Connection:
            connection = super().connect()
            connection.set_progress_handler(count, 1)
            return connection

    Recorder(path, file_type=Counted).file.close()
    return steps


def test_what_a_start_reads_does_not_grow_with_the_file(tmp_path: Path) -> None:
    converted: set[int] = set()
    opened: set[int] = set()
    for rows in (100, 10_000):
        path = tmp_path / f"{rows}.db"
        format_1.write(path, rows)
        converted.add(steps_of_opening(path))
        recording = Recorder(path)
        recording.calls(rows // 10)
        recording.close()
        opened.add(steps_of_opening(path))
        assert not faults_of(path)
    assert len(converted) == len(opened) == 1
    assert max(converted | opened) < 1500


def test_where_sqlite_forbids_the_hand_over_the_index_is_made_by_reading(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    format_1.write(path, 50)

    is_denied = False
    denied = 0

    def authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
        nonlocal is_denied, denied
        if action == sqlite3.SQLITE_PRAGMA and first == "writable_schema":
            is_denied = second == "ON"
        if not is_denied or action != sqlite3.SQLITE_UPDATE:
            return sqlite3.SQLITE_OK
        denied += 1
        return sqlite3.SQLITE_DENY

    class Guarded(AuditFile):
        def connect(self) -> sqlite3.Connection:
            connection = super().connect()
            connection.set_authorizer(authorize)
            return connection

    recording = Recorder(path, file_type=Guarded)
    recording.calls(5)
    recording.close()
    assert denied
    assert not faults_of(path)


def test_another_identity_begins_another_instance(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    recording = Recorder(path)
    recording.calls(5)
    recording.close()
    other = SigningKey(bytes(reversed(range(32))))
    recording = Recorder(path, seed=1, key=other)
    recording.calls(5)
    recording.close()
    keys = [verifier_of(other)]
    assert not faults_of(path, [*keys, *TRUSTED])
    only_new = verdict_of(path, keys)
    assert not only_new.faults
    assert any("was not given" in finding.what for finding in only_new.findings)
    assert [each.reason for each in recording.file.meta.previous_instances] == ["identity"]
    assert recording.file.meta.previous_instances[0].size + 1 == recording.file.meta.first_seq


async def test_an_identity_that_is_damaged_refuses_the_start(path: str) -> None:
    async with open_audit(path):
        pass
    (Path(path).parent / FILE_NAME).write_text("{}", encoding="utf-8")
    with pytest.raises(IdentityRefused, match="holds no identity"):
        async with open_audit(path):
            pass


async def test_a_file_put_back_from_a_backup_is_noticed_at_the_start(
    path: str, calls: Calls, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with open_audit(path) as audit:
        await calls.whole(audit)
    shutil.copy(path, tmp_path / "backup.db")
    async with open_audit(path) as audit:
        await calls.whole(audit)
        instance = (await audit.meta()).instance
    shutil.copy(tmp_path / "backup.db", path)
    async with open_audit(path) as audit:
        await calls.whole(audit)
        meta = await audit.meta()
    assert "audit file does not continue what was signed" in messages(capfd.readouterr().err)
    assert (meta.previous_instances[-1].instance, meta.previous_instances[-1].reason) == (instance, "rows missing")
    assert any("gatewayd itself found rows missing" in found for found in faults_of(Path(path), trusted(path)))


async def test_rows_put_in_after_a_stop_are_told_of_at_the_start(
    path: str, calls: Calls, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        async with open_audit(path) as audit:
            await calls.whole(audit)
    assert "audit rows after the last signed head taken over" not in messages(capfd.readouterr().err)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        row = connection.execute(f"SELECT {', '.join(COLUMNS)}, seq FROM audit_events ORDER BY seq DESC LIMIT 1").fetchone()
        columns = ("7" + row[0][1:], *row[1:12])
        facts, salt = facts_of(columns), bytes(32)
        leaf = leaf_of(row[12] + 1, facts.envelope, commitment_of(salt, facts.details))
        connection.execute(f"INSERT INTO audit_events VALUES ({'?, ' * 14}?)", (*columns, row[12] + 1, leaf, salt))
    assert not faults_of(Path(path), trusted(path))
    async with open_audit(path):
        pass
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    told = [line for line in lines if line["msg"] == "audit rows after the last signed head taken over"]
    assert [(line["rows"], line["first_seq"]) for line in told] == [(1, 7)]


async def test_a_tail_that_was_cut_is_noticed_at_the_start_though_nothing_outside_tells(path: str, calls: Calls) -> None:
    async with open_audit(path) as audit:
        await calls.whole(audit)
        await calls.whole(audit)
    (Path(path).parent / "audit-head").unlink()
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM audit_events WHERE seq > 4")
    async with open_audit(path) as audit:
        await calls.whole(audit)
        assert [each.reason for each in (await audit.meta()).previous_instances] == ["rows missing"]
    assert faults_of(Path(path), trusted(path))


async def test_metadata_that_were_changed_begin_a_new_instance(path: str, calls: Calls) -> None:
    async with open_audit(path) as audit:
        await calls.whole(audit)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO meta VALUES ('last_id', '01ARZ3NDEKTSV4RRFFQ69G5FAV')")
    async with open_audit(path) as audit:
        assert [each.reason for each in (await audit.meta()).previous_instances] == ["damaged"]


async def test_heads_come_while_there_is_something_new_and_at_the_stop(
    path: str, calls: Calls, capfd: pytest.CaptureFixture[str]
) -> None:
    async with open_audit(path, pace=Pace(rest_s=0.05, head_s=0.05)) as audit:
        for _ in range(2):
            await calls.whole(audit)
            capfd.readouterr()
            with trio.fail_after(30):
                while not (said := capfd.readouterr().err):  # noqa: ASYNC110 - another thread signs
                    await trio.sleep(0.02)
            assert messages(said)[0] == "audit checkpoint"
        note = json.loads(said.splitlines()[-1])["note"]
        before = unproved_head(note)
        with trio.move_on_after(0.3):
            await trio.sleep_forever()
        assert capfd.readouterr().err == ""  # nothing new, no head
        await calls.permit(audit, calls.query())
    assert unproved_head(json.loads(capfd.readouterr().err.splitlines()[-1])["note"]).size > before.size
    assert not faults_of(Path(path), trusted(path), [(note, "the log")])
    signed = LastHead(str(Path(path).parent)).read(trusted(path)[0])
    assert signed is not None
    assert signed.size == 8


async def test_nothing_is_signed_before_the_log_is_synced_past_it(path: str, calls: Calls) -> None:
    synced: list[int] = []

    class Noted(AuditFile):
        def sync_log(self) -> None:
            size = self.size
            super().sync_log()
            synced.append(size)

        def keep_head(self, draft: HeadDraft) -> str | None:
            assert draft.tree.size <= synced[-1]
            return super().keep_head(draft)

    async with open_audit(path, pace=Pace(head_s=0.01), file_type=Noted) as audit:
        for _ in range(30):
            await calls.whole(audit)
        await audit.head()
    assert synced


async def test_a_disk_that_is_full_for_a_head_costs_the_head_and_nothing_else(path: str, calls: Calls) -> None:
    async with open_audit(path, pace=Pace(head_s=0.01, rest_s=1000)) as audit:
        await calls.whole(audit)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        try:
            for _ in range(20):
                await audit.answers()
                await trio.sleep(0.01)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        await calls.whole(audit)
        assert await audit.head() is not None
    assert not faults_of(Path(path), trusted(path))


def test_killed_at_every_write_of_a_commit_the_file_opens_verifies_and_goes_on(tmp_path: Path) -> None:
    """A killed process leaves what it had written: a beginning of the log, cut anywhere."""
    path = tmp_path / "audit.db"
    recording = Recorder(path)
    recording.calls(3)
    recording.head()
    before = os.stat(f"{path}-wal").st_size
    recording.calls(2)
    recording.head()
    log = Path(f"{path}-wal").read_bytes()
    frame = 4096 + 24
    cuts = {before + offset for offset in range(0, len(log) - before, frame)}
    cuts |= {cut + extra for cut in list(cuts) for extra in (1, 12, 24, 2000, frame - 1)} | {len(log)}
    told = [unproved_head(note) for (note,) in sqlite3.connect(path).execute("SELECT note FROM checkpoints")]
    for cut in sorted(each for each in cuts if each <= len(log)):
        folder = tmp_path / str(cut)
        folder.mkdir()
        shutil.copy(path, folder / "audit.db")
        (folder / "audit.db-wal").write_bytes(log[:cut])
        after = Recorder(folder / "audit.db", seed=cut)
        assert not after.file.meta.previous_instances
        assert after.file.size >= told[0].size
        after.calls(1)
        after.close()
        assert not faults_of(folder / "audit.db")
    recording.close()


async def test_collectors_page_delete_restart_and_go_on(path: str, calls: Calls) -> None:
    collected: list[tuple[str, int]] = []
    notes: list[tuple[str, str]] = []
    cursor = "0"
    for _ in range(4):
        async with open_audit(path) as audit:
            for _ in range(6):
                await calls.whole(audit)
            while True:
                page = json.loads(b"".join([piece async for piece in audit.page(cursor, 5)]))
                collected += [(row["id"], row["seq"]) for row in page["rows"]]
                assert {row["instance"] for row in page["rows"]} <= {(await audit.meta()).instance}
                if page["rows"]:
                    cursor = page["rows"][-1]["id"]
                if page["next_cursor"] is None:
                    break
            await audit.delete_before(collected[-4][0])
            notes.append((await audit.head() or "", "a collector"))
        assert not faults_of(Path(path), trusted(path), notes)
    assert [seq for _, seq in collected] == list(range(1, 4 * 18 + 1))
    assert len({id_ for id_, _ in collected}) == len(collected)


async def test_linked_only_what_is_acknowledged_is_deleted(path: str, calls: Calls) -> None:
    from gatewayd.audit.meta import Acked, Linked

    async with open_audit(path) as audit:
        for _ in range(3):
            last = await calls.whole(audit)
        await audit.note_linked(Linked(True, 72))
        audit.only_acknowledged = True
        assert await audit.delete_before(last.audit_id) == 0
        await audit.note_acknowledged(Acked(4, "", 1))
        assert await audit.delete_before(last.audit_id) == 4
        assert (await audit.meta()).linked == Linked(True, 72)
    assert not faults_of(Path(path), trusted(path))
