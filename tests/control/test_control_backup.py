"""Backup and restore: what comes back, what does not, and archives and places that are refused with nothing written."""

import hashlib
import io
import sqlite3
import stat
import tarfile
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from datetime import date
from pathlib import Path

import msgspec
import pytest

from gatewayd.control.backup import tables
from gatewayd.control.backup.archive import MANIFEST, SEAL, ArchiveProblem, Manifest
from gatewayd.control.backup.backup import BackupProblem, back_up
from gatewayd.control.backup.restore import RestoreProblem, restore
from gatewayd.control.console import Console, now_ms
from gatewayd.control.settings import ControlSettings, with_secrets
from gatewayd.control.store.days import day_of, drop_days, make_days
from gatewayd.control.store.statement import events_table
from gatewayd.control.store.store import Store
from tests.cli.gatewayd_process import run
from tests.conftest import Postgres, reserved_port
from tests.control.approval_world import make_world
from tests.control.conftest import OWNER, PASSWORD, found, serving
from tests.control.linked_rig import READS, SHOP, WRITES, Agent, linked, new_project, until
from tests.control.places import MakePlace, address

PROJECT = "01JDZ3NDEKTSV4RRFFQ69G5FAV"
COUNTS = "SELECT coalesce(string_agg(relname, ' '), '') FROM pg_class WHERE relnamespace = 'public'::regnamespace"


def assert_nothing_written(settings: ControlSettings, postgres: Postgres) -> None:
    assert postgres.execute(COUNTS, address(settings)).strip() == ""
    assert not [each for each in settings.state.glob("*") if each.name != "secrets"]


async def backed_up(settings: ControlSettings, target: Path, *, secrets: bool = True) -> Path:
    await back_up(settings, target, now_ms(), with_secrets=secrets)
    return target


async def test_people_projects_and_policies_come_back_and_the_owner_signs_in(
    settings: ControlSettings, place: MakePlace, tmp_path: Path, postgres: Postgres, store_url: str
) -> None:
    async with serving(settings) as plane:
        owner = plane.browser()
        await found(owner, plane.first_link)
        assert (await owner.post("/new-project", {"name": "Shop", "databases": "shop"})).status_code == 303
        archive = await backed_up(settings, tmp_path / "backup.tar")  # while it runs
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert not list(tmp_path.glob(".gatewayd-backup-*"))
    elsewhere = place("elsewhere")
    await restore(elsewhere, archive)
    for table in ("people", "organisations", "memberships", "projects", "databases", "org_events", "directory"):
        rows = f"SELECT coalesce(string_agg(t::text, '|' ORDER BY t::text), '') FROM {table} t"
        assert postgres.execute(rows, address(elsewhere)) == postgres.execute(rows, store_url) != "", table
    for table in tables.LEFT_OUT - {"leases"}:
        assert postgres.execute(f"SELECT count(*) FROM {table}", address(elsewhere)).strip() == "0", table
    (lease,) = postgres.query("SELECT name FROM leases", address(elsewhere))
    assert lease["name"].startswith("restored "), "the restore's own, by which it knows that it is done"
    async with serving(with_secrets(elsewhere)) as plane:
        assert plane.first_link is None, "there is an owner"
        again = plane.browser()
        owner.url = plane.url
        assert (await owner.get("/account")).status_code == 303, "sessions have ended"
        answer = await again.post("/sign-in", {"email": OWNER, "password": PASSWORD})
        assert answer.status_code == 303, answer.text
        assert (await again.get("/account")).status_code == 200


async def test_audit_events_come_back_and_approvals_that_were_open_have_ended(
    settings: ControlSettings, store_url: str, place: MakePlace, tmp_path: Path, postgres: Postgres
) -> None:
    store = Store(store_url)
    await make_days(store, now_ms())
    await make_world(Console(settings, store))
    store.close()
    postgres.execute(event(1, "a\ttab, a \\ and\na line"), store_url)
    postgres.execute(
        "INSERT INTO approvals (project_id, approval_id, number, grant_key, origin, asker, database_name, fingerprint, ask,"
        " state, asked_ms, expires_ms) SELECT project_id, project_id, 1, 'k', 'link', 'a', 'shop', 'f', '{}', 'approved', 1,"
        " 99999999999999 FROM projects",
        store_url,
    )
    archive = await backed_up(settings, tmp_path / "backup.tar")
    elsewhere = place("elsewhere")
    await restore(elsewhere, archive)
    rows = f"SELECT t::text FROM {events_table(day_of(now_ms()))} t"
    assert postgres.execute(rows, address(elsewhere)) == postgres.execute(rows, store_url) != ""
    (approval,) = postgres.query("SELECT state, expires_ms FROM approvals", address(elsewhere))
    assert approval["state"] == "approved"
    assert approval["expires_ms"] <= now_ms(), "it may have been spent since"


def event(seq: int, payload: str) -> str:
    day = events_table(day_of(now_ms()))
    number = f"00000000-0000-0000-0000-{seq:012}"
    return (
        f"INSERT INTO {day} VALUES ('{number}', '{number}', '{number}', {seq}, '{number}', '{number}', 1, 1, 'q', 't', 'shop',"
        f" NULL, NULL, false, NULL, '{payload}', 1, '\\x00ff', false, '{{1,2}}')"
    )


async def test_a_linked_gateway_goes_on_after_a_restore_and_sends_again_what_was_lost(
    settings: ControlSettings, place: MakePlace, postgres: Postgres, tmp_path: Path, free_port: int
) -> None:
    shop = postgres.create_database(SHOP)
    async with AsyncExitStack() as gateways:
        async with serving(settings) as plane:
            owner = plane.browser()
            await found(owner, plane.first_link)
            project = await new_project(owner, plane)
            token = await project.token()
            version = await project.publish(READS)
            gateway = await gateways.enter_async_context(linked(project, shop, tmp_path / "gateway", free_port))
            await project.until_enforced(version)
            agent = await Agent(gateway, token).begin()
            assert (await agent.query("SELECT 1 AS before"))["allowed"] is True
            await project.audited(1)
            archive = await backed_up(settings, tmp_path / "backup.tar")
            await project.until_enforced(await project.publish(WRITES))
            assert (await agent.query("SELECT 2 AS after"))["allowed"] is True
            await project.audited(2)
        new = place("elsewhere")
        elsewhere = msgspec.structs.replace(new, port=settings.port, public_url=settings.public_url)
        await restore(elsewhere, archive)
        (held,) = postgres.query("SELECT version FROM bundle_heads", address(elsewhere))
        assert held["version"] == version
        async with serving(with_secrets(elsewhere)):

            async def has_brought_back() -> bool:
                (shown,) = await project.gateways()
                return (shown["bundle_version"], shown["is_newest"]) == (version + 1, True)

            await until(has_brought_back, "the bundle that the store had lost")
            assert await project.publish(READS) == version + 2
            await project.until_enforced(version + 2)
            assert (await agent.query("INSERT INTO orders VALUES (21, 'new')"))["allowed"] is False
            newest, lost, first = await project.audited(3)
            assert newest["outcome"] == "denied"
            assert (lost["sql"], first["sql"]) == ("SELECT 2 AS after", "SELECT 1 AS before")
            assert await gateway.stop() == 0


async def test_a_day_that_a_backup_reads_is_dropped_by_the_next_round(store_url: str, postgres: Postgres) -> None:
    store = Store(store_url)
    await make_days(store, 0)
    table = events_table(day_of(0))
    async with store.connection() as reading:
        await reading.script(tables.SNAPSHOT)
        await reading.script(f"SELECT 1 FROM {table}")  # held until its transaction ends, as a COPY does
        assert await drop_days(store, date(1970, 1, 2), 1) == []
        await reading.script("COMMIT")
    assert await drop_days(store, date(1970, 1, 2), 1) == [date(1970, 1, 1)]
    store.close()
    assert table not in postgres.execute(COUNTS, store_url).split()


def prepared(settings: ControlSettings) -> ControlSettings:
    """With an engine's folder, whose audit file is open for writing in WAL mode as an engine's is."""
    folder = settings.state / "engines" / PROJECT
    folder.mkdir(parents=True)
    (settings.state / "engines" / "replica").write_text(PROJECT)
    (folder / "identity.json").write_text("key")
    (folder / "audit.db.lock").touch()
    return settings


@pytest.mark.parametrize("secrets", [True, False], ids=["with secrets", "without secrets"])
async def test_an_engine_s_audit_file_is_whole_while_it_is_written_and_keys_leave_only_when_asked(
    secrets: bool, settings: ControlSettings, place: MakePlace, tmp_path: Path
) -> None:
    prepared(settings)
    with closing(sqlite3.connect(settings.state / "engines" / PROJECT / "audit.db")) as engine:
        engine.execute("PRAGMA journal_mode = WAL")
        engine.execute("CREATE TABLE rows (n)")
        engine.execute("INSERT INTO rows VALUES (1)")
        engine.commit()  # in the WAL alone
        engine.execute("INSERT INTO rows VALUES (2)")  # not committed: its transaction is open
        archive = await backed_up(settings, tmp_path / "backup.tar", secrets=secrets)
        engine.commit()
    elsewhere = place("elsewhere")
    if not secrets:
        held = (settings.state / "secrets" / "control-kms-key").read_bytes().strip()
        assert held not in archive.read_bytes()
        with pytest.raises(RestoreProblem, match=r"CONTROL_[A-Z_]+ lacks the key"):
            await restore(elsewhere, archive)
        elsewhere.state.mkdir()
        (settings.state / "secrets").rename(elsewhere.state / "secrets")
    await restore(elsewhere, archive)
    folder = elsewhere.state / "engines" / PROJECT
    assert sorted(path.name for path in folder.iterdir()) == (["audit.db", "identity.json"] if secrets else ["audit.db"])
    assert stat.S_IMODE((folder / "audit.db").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    with closing(sqlite3.connect(folder / "audit.db")) as restored:
        assert restored.execute("SELECT n FROM rows").fetchall() == [(1,)]
    with_secrets(elsewhere)
    assert (elsewhere.state / "secrets" / "control-kms-key").exists()


async def test_one_changed_byte_anywhere_is_found_and_nothing_is_written(
    settings: ControlSettings, place: MakePlace, tmp_path: Path, postgres: Postgres
) -> None:
    whole = (await backed_up(prepared(settings), tmp_path / "backup.tar")).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        spots = [entry.offset_data + entry.size // 2 for entry in tar if entry.size] + [tar.getmembers()[0].offset + 3]
    elsewhere = place("elsewhere")
    for spot in spots:
        damaged = bytearray(whole)
        damaged[spot] ^= 1
        (tmp_path / "damaged.tar").write_bytes(damaged)
        with pytest.raises(ArchiveProblem):
            await restore(elsewhere, tmp_path / "damaged.tar")
    for cut in (0, 700, spots[-2] - 512, len(whole) // 2):
        (tmp_path / "damaged.tar").write_bytes(whole[:cut])
        with pytest.raises(ArchiveProblem):
            await restore(elsewhere, tmp_path / "damaged.tar")
    assert_nothing_written(elsewhere, postgres)
    await restore(elsewhere, tmp_path / "backup.tar")


def rewritten(source: Path, target: Path, change: Callable[[Manifest], Manifest], more: str = "") -> Path:
    """The archive with another manifest, whose hashes are right; `more` is the name of one more member."""
    with tarfile.open(source) as old, tarfile.open(target, "w") as new:
        for entry in old.getmembers():
            data = old.extractfile(entry)
            assert data is not None
            if entry.name == MANIFEST:
                manifest = change(msgspec.json.decode(data.read(), type=Manifest))
                if more:
                    add(new, more, b"x")
                    manifest.members[more] = hashlib.sha256(b"x").hexdigest()
                text = msgspec.json.encode(manifest)
                add(new, MANIFEST, text)
                add(new, SEAL, hashlib.sha256(text).hexdigest().encode())
            elif entry.name != SEAL:
                new.addfile(entry, data)
    return target


def add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


def newer_schema(manifest: Manifest) -> Manifest:
    last = msgspec.structs.replace(manifest.migrations[-1], number=9999, name="9999_later.sql")
    return msgspec.structs.replace(manifest, migrations=(*manifest.migrations, last))


def other_text(manifest: Manifest) -> Manifest:
    first = msgspec.structs.replace(manifest.migrations[0], checksum="0")
    return msgspec.structs.replace(manifest, migrations=(first, *manifest.migrations[1:]))


@pytest.mark.parametrize(
    ("change", "more", "told"),
    [
        (lambda held: msgspec.structs.replace(held, format=2), "", "format 2, this version reads format 1"),
        (newer_schema, "", "does not know migration 9999_later.sql"),
        (other_text, "", "0001_people.sql of the archive has another text"),
        (lambda held: msgspec.structs.replace(held, tables=held.tables | {"audit_20269999": ()}), "", "is of no day"),
        (lambda held: held, "engines/../../outside", "nothing that a backup has"),
        (lambda held: held, "/outside", "nothing that a backup has"),
        (lambda held: held, "store/sessions/00000000", "rows of `sessions`"),
        (lambda held: held, "store/pg_authid/00000000", "rows of `pg_authid`"),
    ],
    ids=[
        "format",
        "newer schema",
        "other schema",
        "no day",
        "path upwards",
        "absolute path",
        "left out",
        "a table of the server",
    ],
)
async def test_an_archive_that_is_not_ours_is_refused_and_nothing_is_written(
    change: Callable[[Manifest], Manifest],
    more: str,
    told: str,
    settings: ControlSettings,
    place: MakePlace,
    tmp_path: Path,
    postgres: Postgres,
) -> None:
    archive = await backed_up(settings, tmp_path / "backup.tar")
    elsewhere = place("elsewhere")
    with pytest.raises(ArchiveProblem, match=told):
        await restore(elsewhere, rewritten(archive, tmp_path / "other.tar", change, more))
    assert_nothing_written(elsewhere, postgres)


async def test_a_place_that_holds_something_is_refused(
    settings: ControlSettings, place: MakePlace, tmp_path: Path, postgres: Postgres
) -> None:
    archive = await backed_up(settings, tmp_path / "backup.tar")
    used = place("used")
    postgres.execute("CREATE TABLE mine (n int)", address(used))
    with pytest.raises(RestoreProblem, match="the store is not empty"):
        await restore(used, archive)
    assert postgres.execute(COUNTS, address(used)).strip() == "mine"
    assert not list(used.state.iterdir())
    lived_in = place("lived in")
    with_secrets(lived_in)
    secret = (lived_in.state / "secrets" / "control-kms-key").read_bytes()
    with pytest.raises(RestoreProblem, match=r"is not empty \(`secrets` is there\)"):
        await restore(lived_in, archive)
    assert (lived_in.state / "secrets" / "control-kms-key").read_bytes() == secret
    assert postgres.execute(COUNTS, address(lived_in)).strip() == ""


async def test_a_backup_never_replaces_a_file_and_an_empty_store_gives_none(
    settings: ControlSettings, place: MakePlace, tmp_path: Path
) -> None:
    (tmp_path / "backup.tar").write_text("mine")
    with pytest.raises(BackupProblem, match="is there already"):
        await backed_up(settings, tmp_path / "backup.tar")
    assert (tmp_path / "backup.tar").read_text() == "mine"
    with pytest.raises(BackupProblem, match="the store is empty"):
        await backed_up(place("empty"), tmp_path / "another.tar")
    assert not (tmp_path / "another.tar").exists()


async def test_a_table_larger_than_a_piece_goes_through_in_pieces(
    settings: ControlSettings, store_url: str, place: MakePlace, tmp_path: Path, postgres: Postgres
) -> None:
    postgres.execute(
        "INSERT INTO statements SELECT gen_random_uuid(), n::text, repeat(E'\u00e9\\n\\t\\\\', 3000) || n, NULL, n, n"
        " FROM generate_series(1, 1000) AS n",
        store_url,
    )
    archive = await backed_up(settings, tmp_path / "backup.tar")
    with tarfile.open(archive) as tar:
        pieces = [entry for entry in tar if entry.name.startswith("store/statements/")]
    assert len(pieces) > 3
    assert max(entry.size for entry in pieces) < tables.PIECE_BYTES + (1 << 20), "a piece and what the socket brings at once"
    elsewhere = place("elsewhere")
    await restore(elsewhere, archive)
    digest = "SELECT md5(string_agg(md5(t::text), '' ORDER BY t::text)) FROM statements t"
    assert postgres.execute(digest, address(elsewhere)) == postgres.execute(digest, store_url)


def test_a_control_plane_with_its_own_postgresql_moves_to_another_folder(
    short_folder: Callable[[], Path], tmp_path: Path
) -> None:
    with reserved_port() as port:
        here = {"GATEWAY_SELF_HOST": "1", "CONTROL_PORT": str(port), "CONTROL_STATE_DIR": str(short_folder() / "a")}
        there = here | {"CONTROL_STATE_DIR": str(short_folder() / "b")}
        archive = str(tmp_path / "backup.tar")
        nothing = run(["control", "backup", archive], here)
        assert (nothing.returncode, "there is no control plane" in nothing.stderr) == (1, True), nothing.stderr
        assert run(["control", "migrate"], here).returncode == 0
        made = run(["control", "backup", "--with-secrets", archive], here)
        assert made.returncode == 0, made.stderr
        assert "it holds secrets" in made.stdout
        restored = run(["control", "restore", archive], there)
        assert restored.returncode == 0, restored.stderr
        assert "holds again" in restored.stdout
        again = run(["control", "restore", archive], there)
        assert (again.returncode, "is not empty" in again.stderr) == (1, True), again.stderr
        assert run(["control", "check", "--connect"], there).returncode == 0
