"""Whatever is done to an audit file, verify finds it, or nothing that a reader would see has changed."""

import contextlib
import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from gatewayd.audit.heads import sign_head
from gatewayd.audit.leaf import commitment_of, facts_of, leaf_of
from gatewayd.audit.meta import read_meta
from gatewayd.audit.proof import ProofRefused, check_proof, prove
from gatewayd.audit.reader import connect_for_reading
from gatewayd.audit.rows import COLUMNS
from gatewayd.audit.tree import CompactRange
from gatewayd.keys.ed25519 import SigningKey
from gatewayd.keys.identity import verifier_of
from tests.audit.random_change import random_change
from tests.audit.recorded import KEY, TRUSTED, Recorder, change, faults_of, recorder, verdict_of

Change = str | Callable[[sqlite3.Connection], object]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of some hundred rows with several heads, closed."""
    path = tmp_path_factory.mktemp("whole") / "audit.db"
    with recorder(path) as recording:
        for _ in range(4):
            recording.calls(40)
            recording.head()
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(whole, tmp_path / "audit.db"))


def seen(path: Path) -> object:
    """All that a reader of the file can see."""
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        connection.text_factory = bytes
        tables = [
            connection.execute(f"SELECT * FROM {table} ORDER BY {order}").fetchall()
            for table, order in (("audit_events", "id"), ("meta", "key"), ("checkpoints", "1, 2"), ("erased", "seq"))
        ]
        by_index = [
            connection.execute(f"SELECT id FROM audit_events ORDER BY {order}").fetchall()
            for order in ("query_id, id", "tenant_id, ts DESC, id", "event_type, ts DESC, id", "database, ts DESC, id")
        ]
        return tables, by_index


def rewrite_leaf(connection: sqlite3.Connection) -> None:
    """Changes a statement and makes its leaf match, as one who can read the format would."""
    row = connection.execute(f"SELECT {', '.join(COLUMNS)}, seq, salt FROM audit_events WHERE seq = 50").fetchone()
    columns = [*row[:6], "another intent", *row[7:12]]
    facts = facts_of(columns)
    leaf = leaf_of(row[12], facts.envelope, commitment_of(row[13], facts.details))
    connection.execute("UPDATE audit_events SET agent_intent = 'another intent', leaf = ? WHERE seq = 50", (leaf,))


FAULTS: dict[str, tuple[Change, str]] = {
    "one byte of a payload": ("UPDATE audit_events SET payload = replace(payload, '1', '2') WHERE seq = 20", "20: its leaf"),
    "an allow made of a deny": (
        "UPDATE audit_events SET payload = replace(payload, 'DENY', 'ALLOW') WHERE payload LIKE '%DENY%'",
        "its leaf",
    ),
    "a key twice": (
        "UPDATE audit_events SET payload = replace(payload, '{', '{\"decision\":\"ALLOW\",') WHERE event_type = 'DECIDED'",
        "not in the form",
    ),
    "white space": ("UPDATE audit_events SET payload = replace(payload, ',', ', ') WHERE seq = 20", "20: its payload is not"),
    "a blob for a text": ("UPDATE audit_events SET payload = CAST(payload AS BLOB) WHERE seq = 20", "another type"),
    "a time": ("UPDATE audit_events SET ts = ts + 1 WHERE seq = 7", "7: its leaf"),
    "two rows swapped": (
        (
            "UPDATE audit_events SET payload = CASE seq WHEN 30 THEN (SELECT payload FROM audit_events WHERE seq = 33)"
            " ELSE (SELECT payload FROM audit_events WHERE seq = 30) END WHERE seq IN (30, 33)"
        ),
        "30: its leaf",
    ),
    "a row deleted": ("DELETE FROM audit_events WHERE seq = 40", "1 row from seq 40 on are missing"),
    "a row put in": (
        (
            f"INSERT INTO audit_events ({', '.join(COLUMNS)}) SELECT '0' || substr(id, 2, 24) || '0', {', '.join(COLUMNS[1:])}"
            " FROM audit_events WHERE seq = 5"
        ),
        "stands in no tree",
    ),
    "a leaf": ("UPDATE audit_events SET leaf = zeroblob(32) WHERE seq = 12", "12: its leaf"),
    "a leaf rewritten to match": (rewrite_leaf, "the rows up to here are not the ones"),
    "a salt": ("UPDATE audit_events SET salt = zeroblob(32) WHERE seq = 12", "12: its leaf"),
    "a salt taken out": ("UPDATE audit_events SET salt = NULL WHERE seq = 12", "12: its details are gone"),
    "the tail cut off": ("DELETE FROM audit_events WHERE seq > 200", "only 200 are here"),
    "a head taken out": ("DELETE FROM checkpoints WHERE size = (SELECT min(size) FROM checkpoints)", "kept heads are not"),
    "a head's time": ("UPDATE checkpoints SET ts = ts + 1", "kept heads are not"),
    "the key id": ("UPDATE meta SET value = 'x' WHERE key = 'identity'", "not signed as they stand"),
    "another instance": ("UPDATE meta SET value = '01ARZ3NDEKTSV4RRFFQ69G5FAV' WHERE key = 'instance'", "not signed"),
    "metadata gone": ("DELETE FROM meta", "meta table is damaged"),
    "a signature gone": ("DELETE FROM meta WHERE key = 'signature'", "not signed"),
    "a trigger": ("CREATE TRIGGER t AFTER INSERT ON audit_events BEGIN DELETE FROM audit_events; END", "trigger t is not"),
    "a trigger named as SQLite's own": (
        "CREATE TRIGGER sqlitehook AFTER INSERT ON audit_events BEGIN DELETE FROM audit_events; END",
        "trigger sqlitehook is not",
    ),
    "a view": ("CREATE VIEW sqlite2 AS SELECT * FROM audit_events WHERE seq < 9", "view sqlite2 is not"),
    "a table": ("CREATE TABLE sqlitestat1 (a)", "table sqlitestat1 is not"),
    "an index gone": ("DROP INDEX audit_events_query_id", "index audit_events_query_id is not"),
    "a commitment put in": ("INSERT INTO erased VALUES (9, zeroblob(32))", "9: the erased table names it"),
    "another format": ("PRAGMA user_version = 3", "format 3, expected an audit file of format 2"),
}


def test_a_file_that_nobody_touched_is_intact(whole: Path) -> None:
    verdict = verdict_of(whole)
    assert not verdict.faults
    assert verdict.rows == verdict.signed > 200
    assert verdict.heads == 4
    assert verdict.sentence.startswith("intact: ")


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_changed_is_found(path: Path, fault: str) -> None:
    statement, said = FAULTS[fault]
    change(path, statement)
    assert any(said in found for found in faults_of(path)), faults_of(path)


def test_what_analyze_leaves_is_no_fault(path: Path) -> None:
    change(path, "ANALYZE")
    assert not faults_of(path)


def test_an_older_copy_is_found_by_a_head_kept_elsewhere(tmp_path: Path) -> None:
    path, older = tmp_path / "audit.db", tmp_path / "older.db"
    with recorder(path) as recording:
        recording.calls(20)
        recording.head()
        recording.file.checkpoint()
        shutil.copy(path, older)
        recording.calls(20)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (note,) = connection.execute("SELECT note FROM checkpoints ORDER BY size DESC").fetchone()
    assert not faults_of(path, notes=[(note, "the journal")])
    assert not faults_of(older)
    assert any("only" in found for found in faults_of(older, notes=[(note, "the journal")]))


def test_a_file_of_another_instance_is_found_by_a_head_kept_elsewhere(whole: Path, tmp_path: Path) -> None:
    with recorder(tmp_path / "other.db") as recording:
        recording.calls(5)
        note = recording.head()
    assert note is not None
    assert any("does not know" in found for found in faults_of(whole, notes=[(note, "the journal")]))


def test_a_head_forged_with_another_key_or_a_key_of_small_order_is_found(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        meta = read_meta(dict(connection.execute("SELECT key, value FROM meta")))
    thief = SigningKey(bytes(32))
    forged = sign_head(meta.instance, 3, bytes(32), thief)
    change(
        path,
        lambda connection: connection.execute(
            "UPDATE checkpoints SET note = ? WHERE size = (SELECT max(size) FROM checkpoints)", (forged,)
        ),
    )
    assert any("no known key has signed it" in found for found in faults_of(path))
    # the file says that the thief's key is its own: whoever trusts a key of theirs is not deceived
    rewritten = {**dict(meta.rows(thief)), "verifier": str(verifier_of(thief)), "identity": thief.key_id}
    change(path, lambda connection: connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rewritten.items()))
    assert any("not one of those given" in found for found in faults_of(path))
    neutral = str(verifier_of(thief)).rpartition("+")[0] + "+AQEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    change(path, lambda connection: connection.execute("UPDATE meta SET value = ? WHERE key = 'verifier'", (neutral,)))
    assert any("small order" in found for found in faults_of(path, keys=()))


def test_a_clock_set_back_is_a_note_and_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    with recorder(path) as recording:
        recording.calls(5)
        recording.numbers = iter(range(-100_000, 0))  # an hour back
        recording.calls(5)
    verdict = verdict_of(path)
    assert not verdict.faults
    assert any("the clock was" in finding.what for finding in verdict.findings)


def test_rows_after_the_last_head_are_told_of(tmp_path: Path) -> None:
    recording = Recorder(tmp_path / "audit.db")
    recording.calls(5)
    recording.head()
    recording.calls(1)
    verdict = verdict_of(tmp_path / "audit.db")
    assert not verdict.faults
    assert any("not under a signed head yet" in finding.what for finding in verdict.findings)
    recording.close()


def random_bytes(path: Path, draw: random.Random) -> None:
    """One byte of the file itself."""
    data = bytearray(path.read_bytes())
    data[draw.randrange(100, len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def check_random_changes(whole: Path, folder: Path, count: int, seed: int) -> None:
    before = seen(whole)
    draw = random.Random(seed)
    path = folder / "changed.db"
    found = unseen = 0
    for _ in range(count):
        shutil.copy(whole, path)
        try:
            if draw.random() < 0.3:
                random_bytes(path, draw)
            else:
                change(path, lambda connection: random_change(connection, draw))
            is_seen = seen(path) != before
        except sqlite3.DatabaseError:
            is_seen = True
        faults = faults_of(path)
        if is_seen:
            assert faults, "a change that a reader sees was not found"
            found += 1
        elif not faults:
            unseen += 1
    assert found > count // 2
    assert unseen < count // 2


def test_every_random_change_that_a_reader_would_see_is_found(whole: Path, tmp_path: Path) -> None:
    check_random_changes(whole, tmp_path, 150, 1)


@pytest.mark.soak
def test_ten_thousand_random_changes_to_five_thousand_rows(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    with recorder(path) as recording:
        for _ in range(8):
            recording.calls(290)
            recording.head()
    assert verdict_of(path).rows > 4900
    check_random_changes(path, tmp_path, 10_000, 2)


def test_a_proof_holds_for_its_query_and_for_nothing_else(whole: Path) -> None:
    with contextlib.closing(connect_for_reading(str(whole))) as connection:
        ids = [id_ for (id_,) in connection.execute("SELECT id FROM audit_events WHERE seq IN (1, 77, 200)")]
        for id_ in ids:
            text = prove(connection, id_, {})
            proved = check_proof(text, TRUSTED)
            assert id_ in {row.row["id"] for row in proved}
            with pytest.raises(ProofRefused):
                check_proof(text, [verifier_of(SigningKey(bytes(32)))])
        other = prove(connection, ids[0], {})
    blocks, others = text.split("c2sp.org/")[1:], other.split("c2sp.org/")[1:]
    mixed = "c2sp.org/" + "\n".join([*others[0].split("\n")[:2], *blocks[0].split("\n")[2:]])  # the row of another proof
    with pytest.raises(ProofRefused, match="not the one that the head is over"):
        check_proof(mixed, TRUSTED)
    draw = random.Random(3)
    for _ in range(100):
        place = draw.randrange(len(text))
        changed = text[:place] + draw.choice("Ax0\n \u2014") + text[place + 1 :]
        if changed != text:
            with contextlib.suppress(ProofRefused):
                assert [json.dumps(row.row) for row in check_proof(changed, TRUSTED)] == [json.dumps(row.row) for row in proved]


def test_pruned_files_stay_provable(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    recording = Recorder(path, seed=5)
    notes: list[tuple[str, str]] = []
    for _ in range(6):
        recording.calls(17)
        note = recording.head()
        assert note is not None
        notes.append((note, "the journal"))
        with contextlib.closing(sqlite3.connect(path)) as connection:
            (cursor,) = connection.execute("SELECT id FROM audit_events ORDER BY id LIMIT 1 OFFSET 11").fetchone()
        assert recording.prune(cursor) == 12
        assert recording.prune(cursor) == 0
        assert not faults_of(path, notes=notes)
        if len(notes) % 2:
            recording.file.close()
            recording.open()
    last = recording.file.last_id
    recording.close()
    verdict = verdict_of(path, notes=notes)
    assert not verdict.faults
    assert verdict.first_seq == 6 * 12 + 1
    with contextlib.closing(connect_for_reading(str(path))) as reader:
        (id_,) = reader.execute("SELECT max(id) FROM audit_events").fetchone()
        check_proof(prove(reader, id_, {}), TRUSTED)
    recording.open()
    recording.prune(max(last, id_))
    recording.calls(3)
    recording.close()
    assert not faults_of(path, notes=notes)
    change(path, "UPDATE checkpoints SET proof = zeroblob(length(proof)) WHERE proof IS NOT NULL")
    assert any("not proved to be the beginning" in found for found in faults_of(path))


def test_the_compact_range_is_the_tree_of_the_leaves(whole: Path) -> None:
    tree = CompactRange()
    with contextlib.closing(sqlite3.connect(whole)) as connection:
        tree.extend(leaf for (leaf,) in connection.execute("SELECT leaf FROM audit_events ORDER BY seq"))
        (note,) = connection.execute("SELECT note FROM checkpoints ORDER BY size DESC").fetchone()
    assert sign_head(note.split("\n")[0].split("/")[2], tree.size, tree.root(), KEY) == note
