"""Two verifiers that share no line agree on files, proofs and heads, whole and changed."""

import ast
import contextlib
import json
import random
import sqlite3
import sys
from pathlib import Path

import pytest

from gatewayd.audit.erasing import ErasureChoice, find
from gatewayd.audit.proof import ProofRefused, check_proof, prove
from gatewayd.audit.reader import connect_for_reading
from gatewayd.keys.ed25519 import SigningKey
from gatewayd.keys.identity import verifier_of
from tests.audit import second_verifier
from tests.audit.random_change import random_change
from tests.audit.recorded import KEY, NOW_MS, TRUSTED, Recorder, change, faults_of

OWN = str(TRUSTED[0])


def test_it_needs_the_standard_library_only() -> None:
    tree = ast.parse(Path(second_verifier.__file__).read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= set(sys.stdlib_module_names)


def test_its_signatures_are_the_librarys() -> None:
    draw = random.Random(1)
    for _ in range(10):
        key, message = SigningKey(draw.randbytes(32)), draw.randbytes(40)
        signature = key.sign(message)
        assert second_verifier.verifies(key.public.raw, signature, message)
        assert not second_verifier.verifies(key.public.raw, signature, message + b"x")
    assert not second_verifier.verifies((1).to_bytes(32, "little"), (1).to_bytes(32, "little") + bytes(32), b"any")


def history(path: Path, draw: random.Random) -> list[str]:
    """A file that went through something: calls, heads, restarts, prunings, erasures, instances. The heads that were logged."""
    notes: list[str] = []
    recording = Recorder(path, seed=draw.randrange(1 << 30))
    for _ in range(draw.randrange(1, 7)):
        recording.calls(draw.randrange(0, 9))
        if draw.random() < 0.7 and (note := recording.head()):
            notes.append(note)
        match draw.randrange(6):
            case 0:
                with contextlib.closing(sqlite3.connect(path)) as connection:
                    ids = [id_ for (id_,) in connection.execute("SELECT id FROM audit_events ORDER BY id")]
                if ids:
                    recording.prune(draw.choice(ids), chunk=draw.choice([1, 3, 100]))
            case 1:
                with contextlib.closing(connect_for_reading(str(path))) as reader:
                    found = find(reader, ErasureChoice(agent=draw.choice(["claude-code", "cursor ✓"])), 0, draw.randrange(1, 20))
                if found.rows:
                    recording.file.erase(found, "asked for", NOW_MS)
            case 2:
                recording.file.begin_instance("linked")
            case 3:
                meta = recording.file.meta
                first = max(meta.first_seq, meta.pruned_to + 1)
                if recording.file.size and first <= recording.file.meta.first_seq + recording.file.size:
                    recording.file.begin_instance("fork", draw.randrange(first, meta.first_seq + recording.file.size + 1))
            case 4:
                recording.file.close()
                recording.open()
            case _:
                pass
    if (note := recording.head()) is not None:
        notes.append(note)
    recording.file.close()
    return notes


def agree(folder: Path, count: int, seed: int) -> None:
    draw = random.Random(seed)
    changed_and_found = 0
    for number in range(count):
        path = folder / f"{number}.db"
        notes = history(path, draw)
        ours = faults_of(path, notes=[(note, "the log") for note in notes])
        theirs = second_verifier.check_file(str(path), OWN, notes)
        assert (ours, theirs) == ([], []), f"seed {seed}, file {number}"
        with contextlib.closing(connect_for_reading(str(path))) as reader:
            found = reader.execute("SELECT id FROM audit_events WHERE seq IS NOT NULL ORDER BY random() LIMIT 1").fetchone()
            if found is None:
                continue
            with contextlib.suppress(
                Exception
            ):  # rows of a chain may be deleted in part, or stand under no head of their instance
                text = prove(reader, found[0], {})
                assert [row.row for row in check_proof(text, TRUSTED)] == second_verifier.check_proof(text, OWN)
        change(path, lambda connection: random_change(connection, draw) if has_all(connection) else None)
        ours = faults_of(path, notes=[(note, "the log") for note in notes])
        theirs = second_verifier.check_file(str(path), OWN, notes)
        assert bool(ours) == bool(theirs), f"seed {seed}, file {number}: {ours} {theirs}"
        changed_and_found += bool(ours)
        path.unlink()
    assert changed_and_found > count // 3


def has_all(connection: sqlite3.Connection) -> bool:
    return all(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("audit_events", "checkpoints"))


def test_the_two_agree(tmp_path: Path) -> None:
    agree(tmp_path, 20, 7)


@pytest.mark.soak
def test_the_two_agree_on_a_thousand_files(tmp_path: Path) -> None:
    agree(tmp_path, 1000, 8)


def test_a_proof_that_one_refuses_the_other_refuses(tmp_path: Path) -> None:
    recording = Recorder(tmp_path / "audit.db")
    query_ids = recording.calls(9)
    recording.close()
    with contextlib.closing(connect_for_reading(str(tmp_path / "audit.db"))) as reader:
        text = prove(reader, query_ids[4], {})
    assert second_verifier.check_proof(text, OWN)
    draw = random.Random(2)
    for _ in range(60):
        place = draw.randrange(len(text))
        changed = text[:place] + chr(ord(text[place]) ^ (1 << draw.randrange(5))) + text[place + 1 :]
        ours: object = None
        theirs: object = None
        with contextlib.suppress(ProofRefused):
            ours = [row.row for row in check_proof(changed, TRUSTED)]
        with contextlib.suppress(second_verifier.Wrong, ValueError, KeyError, TypeError):
            theirs = second_verifier.check_proof(changed, OWN)
        assert ours is None or ours == theirs


def test_the_committed_vectors() -> None:
    vectors = json.loads((Path(__file__).parent / "vectors.json").read_text(encoding="utf-8"))
    assert vectors["verifier"] == OWN == str(verifier_of(KEY))
    tree = second_verifier.Tree()
    for vector in vectors["leaves"]:
        envelope, details, _ = second_verifier.halves(vector["row"])
        commitment = second_verifier.commitment_of(bytes.fromhex(vector["salt"]), details)
        assert commitment.hex() == vector["commitment"]
        leaf = second_verifier.leaf_of(vector["seq"], envelope, commitment)
        assert leaf.hex() == vector["leaf"]
        tree.append(leaf)
        assert tree.root().hex() == vector["root"]
    assert second_verifier.head_of(vectors["head"], [second_verifier.Key(OWN)])[1:] == (tree.size, tree.root())
    assert [row.row for row in check_proof(vectors["proof"], TRUSTED)] == second_verifier.check_proof(vectors["proof"], OWN)
