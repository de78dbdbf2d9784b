"""The file itself: its shape, who may open it, and what is refused at start."""

import contextlib
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gatewayd.audit.file import AuditFile
from gatewayd.audit.open_file import AuditFileUnusable, Synchronous
from gatewayd.audit.schema import APPLICATION_ID
from gatewayd.audit.service import AuditFileLocked, open_audit
from tests.audit.audit_calls import Calls, FileView


async def test_schema_is_one_table_of_events_with_four_indexes(path: str, view: FileView) -> None:
    async with open_audit(path):
        columns = [name for _, name, *_ in view.run(path, "PRAGMA table_info(audit_events)")]
        indexed = {
            tuple(
                (column, descending) for _, _, column, descending, _, key in view.run(path, f"PRAGMA index_xinfo({name})") if key
            )
            for _, name, _, origin, _ in view.run(path, "PRAGMA index_list(audit_events)")
            if origin == "c"
        }
        assert view.run(path, "PRAGMA journal_mode") == [("wal",)]
        assert view.run(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
        assert view.run(path, "PRAGMA user_version") == [(2,)]
    assert columns == [
        "id", "query_id", "tenant_id", "database", "agent_name", "agent_version", "agent_intent", "mcp_token_id", "ts",
        "event_type", "payload", "schema_version", "seq", "leaf", "salt",
    ]  # fmt: skip
    assert indexed == {
        (("query_id", 0),),
        (("tenant_id", 0), ("ts", 1)),
        (("event_type", 0), ("ts", 1)),
        (("database", 0), ("ts", 1)),
        (("seq", 0),),
    }


async def test_parent_folders_are_made_and_all_files_are_private(tmp_path: Path, calls: Calls) -> None:
    path = tmp_path / "a" / "b" / "audit.db"
    async with open_audit(str(path)) as audit:
        await calls.whole(audit)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(["audit.db", "audit.db-wal", "audit.db-shm", "audit.db.lock", "identity.json"], 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_an_existing_file_that_others_may_read_is_made_private(path: str) -> None:
    async with open_audit(path):
        pass
    Path(path).chmod(0o644)
    async with open_audit(path):
        assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600


async def test_a_closed_file_has_no_log_left(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path) as audit:
        await calls.whole(audit)
    assert not Path(path + "-wal").exists()
    assert len(view.rows(path)) == 3


async def test_a_second_owner_is_refused_also_by_another_name(path: str, tmp_path: Path) -> None:
    async with open_audit(path):
        link = tmp_path / "link.db"
        link.symlink_to(path)
        for name in (path, str(link)):
            with pytest.raises(AuditFileLocked, match="another gatewayd"):
                async with open_audit(name):
                    pass
    async with open_audit(path):
        pass  # free again


async def test_the_lock_of_a_killed_owner_is_free(path: str) -> None:
    program = (
        "import sys, trio\nfrom gatewayd.audit.service import open_audit\n"
        "async def main():\n    async with open_audit(sys.argv[1]):\n        print('open', flush=True)\n"
        "        await trio.sleep_forever()\ntrio.run(main)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"open\n"
        with pytest.raises(AuditFileLocked):
            async with open_audit(path):
                pass
        owner.send_signal(signal.SIGKILL)
    async with open_audit(path):
        pass


async def test_readers_are_welcome_while_it_is_owned(path: str, calls: Calls) -> None:
    async with open_audit(path) as audit:
        await calls.whole(audit)
        program = (
            "import sqlite3, sys\nprint(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM audit_events').fetchone()[0])"
        )
        seen = subprocess.run([sys.executable, "-c", program, path], capture_output=True, check=True, text=True)
    assert seen.stdout == "3\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"this is not a database, it only lies where one is expected" * 100, "file is not a database"),
        (b"SQLite format 3\0" + b"\xff" * 4080, "not a database|malformed"),
    ],
)
async def test_a_damaged_header_is_refused_with_its_reason(path: str, content: bytes, reason: str) -> None:
    Path(path).parent.mkdir()
    Path(path).write_bytes(content)
    with pytest.raises(AuditFileUnusable, match=reason) as refused:
        async with open_audit(path):
            pass
    assert "DB_PATH" in str(refused.value)
    assert Path(path).read_bytes() == content
    with pytest.raises(AuditFileUnusable):  # and the lock was given back
        async with open_audit(path):
            pass


async def test_another_programs_file_and_a_newer_format_are_refused(path: str, view: FileView) -> None:
    Path(path).parent.mkdir()
    view.run(path, "CREATE TABLE theirs (a)")
    with pytest.raises(AuditFileUnusable, match="another program's"):
        async with open_audit(path):
            pass
    Path(path).unlink()
    async with open_audit(path):
        pass
    view.run(path, "PRAGMA user_version = 3")
    with pytest.raises(AuditFileUnusable, match="found format 3, expected format 1 or 2"):
        async with open_audit(path):
            pass


async def test_a_folder_or_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path, tmp_path / "file" / "audit.db"):
        with pytest.raises(AuditFileUnusable):
            async with open_audit(str(path)):
                pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(AuditFileUnusable, match="permission denied"):
            async with open_audit(str(tmp_path / "audit.db")):
                pass
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize(("synchronous", "value"), [("normal", 1), ("full", 2)])
async def test_synchronous_is_what_was_asked_for(path: str, synchronous: Synchronous, value: int) -> None:
    async with open_audit(path, synchronous) as audit:

        def asked(file: AuditFile) -> object:
            with contextlib.closing(file.connect()) as connection:  # another one that writes, made as its own is
                return connection.execute("PRAGMA synchronous").fetchone()

        assert await audit.call(asked) == (value,)


_INSERT = "INSERT INTO audit_events VALUES (?, '', '', '', '', '', '', '', 1, '', '{}', 3, NULL, NULL, NULL)"


async def test_a_file_whose_largest_id_is_no_ulid_is_refused(path: str) -> None:
    async with open_audit(path):
        pass
    for identity in ("zzz", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"):
        with sqlite3.connect(path) as connection:
            connection.execute(_INSERT, (identity,))
        connection.close()
        with pytest.raises(AuditFileUnusable, match="largest id"):
            async with open_audit(path):
                pass
        with sqlite3.connect(path) as connection:
            connection.execute("DELETE FROM audit_events")
        connection.close()
