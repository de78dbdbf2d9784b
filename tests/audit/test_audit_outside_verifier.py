"""Software that is not ours takes our heads and proofs, and refuses them with one byte changed (tlog-scales, for C2SP logs)."""

import base64
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from tlog_scales.signing import PlainEd25519Signer, Vkey
from tlog_scales.tlog import Checkpoint, ConsistencyProof, ConsistencyProofInvalid, InclusionProof, InclusionProofInvalid

from gatewayd.audit.heads import head_in
from gatewayd.audit.proof import check_proof, prove
from gatewayd.audit.reader import connect_for_reading
from gatewayd.keys.note import open_note
from tests.audit import second_verifier
from tests.audit.recorded import KEY, TRUSTED, Recorder

VKEY = Vkey.from_string(str(TRUSTED[0]))


def signed(note: str) -> Checkpoint:
    """The head in the note, once their code has found our signature on it, and spells it as we do."""
    checkpoint = Checkpoint.from_text(note)
    checkpoint.verify(VKEY)
    if checkpoint.serialize() != note:  # it reads other line ends too
        raise ValueError("the note is not in its one form")
    return checkpoint


def proofs_in(text: str) -> Iterator[tuple[bytes, InclusionProof, Checkpoint]]:
    """Leaf, path and head of each row in a text of `gatewayd audit prove`; the leaf is made by the second verifier."""
    for block in text.split("c2sp.org/tlog-proof@v1\n")[1:]:
        lines, note = block.split("\n\n", 1)
        extra, index, *hashes = lines.split("\n")
        shown = json.loads(base64.b64decode(extra.removeprefix("extra ")))
        envelope, details, _ = second_verifier.halves(shown["row"])
        commitment = second_verifier.commitment_of(base64.b64decode(shown["salt"]), details)
        leaf = second_verifier.leaf_of(shown["seq"], envelope, commitment)
        head = signed(note)
        yield (
            leaf,
            InclusionProof(int(index.removeprefix("index ")), head.size, [base64.b64decode(each) for each in hashes]),
            head,
        )


def one_bit_off(data: bytes) -> Iterator[bytes]:
    for place in range(len(data)):
        yield data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def test_our_key_is_spelled_as_theirs() -> None:
    made = PlainEd25519Signer(TRUSTED[0].name, bytes(range(32))).vkey
    assert (made.name, made.key_id, made.pubkey) == (VKEY.name, VKEY.key_id, VKEY.pubkey)
    assert made.pubkey == KEY.public.raw


def test_they_take_every_proof_and_none_with_a_byte_changed(tmp_path: Path) -> None:
    recording = Recorder(tmp_path / "audit.db", seed=3)
    query_ids = recording.calls(14)
    recording.close()
    taken = refused = 0
    with contextlib.closing(connect_for_reading(str(tmp_path / "audit.db"))) as reader:
        texts = [prove(reader, query_id, {}) for query_id in query_ids]
    for text in texts:
        assert check_proof(text, TRUSTED)
        for leaf, proof, head in proofs_in(text):
            proof.check(leaf, head.root_hash)
            taken += 1
            wrong = [(each, proof, head.root_hash) for each in one_bit_off(leaf)]
            wrong += [(leaf, proof, each) for each in one_bit_off(head.root_hash)]
            wrong += [
                (leaf, InclusionProof(place, head.size, proof.node_hashes), head.root_hash)
                for place in range(head.size + 1)
                if place != proof.leaf_index
            ]
            for number, node in enumerate(proof.node_hashes):
                paths = [
                    [*proof.node_hashes[:number], each, *proof.node_hashes[number + 1 :]] for each in [*one_bit_off(node), b""]
                ]
                wrong += [(leaf, InclusionProof(proof.leaf_index, head.size, path), head.root_hash) for path in paths]
            for changed_leaf, changed, root in wrong:
                with pytest.raises(InclusionProofInvalid):
                    changed.check(changed_leaf, root)
            refused += len(wrong)
    assert taken > 30
    assert refused > 100 * taken


def test_they_take_every_head_and_none_with_a_byte_changed(tmp_path: Path) -> None:
    recording = Recorder(tmp_path / "audit.db")
    recording.calls(5)
    note = recording.head()
    assert note is not None
    recording.close()
    head = signed(note)
    assert open_note(note, TRUSTED)[0] == head.serialize_body()
    text, _, line = note.rpartition("\n\n")
    for place in range(len(text)):
        changed = f"{text[:place]}{chr(ord(text[place]) ^ 1)}{text[place + 1 :]}\n\n{line}"
        with pytest.raises((InvalidSignature, ValueError, IndexError)):
            signed(changed)
    (signature,) = head.signatures
    for each in one_bit_off(signature.payload):
        with pytest.raises(InvalidSignature):
            VKEY.get_verifier().verify(each, head)


def test_they_take_what_shows_that_a_head_continues_another(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    recording = Recorder(path, seed=4)
    notes: list[str] = []
    for _ in range(9):
        recording.calls(3)
        notes.append(recording.head() or "")
    recording.prune(recording.file.last_id or "Z" * 26)
    recording.calls(2)
    recording.close()
    heads = {head.size: head for head in map(signed, notes)}
    with contextlib.closing(connect_for_reading(str(path))) as reader:
        kept = reader.execute("SELECT size, later, proof, note FROM checkpoints").fetchall()
    heads |= {size: signed(note) for size, _, _, note in kept}
    proved = 0
    for size, later, proof, _ in kept:
        if proof is None:
            continue
        hashes = [proof[start : start + 32] for start in range(0, len(proof), 32)]
        ConsistencyProof(size, later, hashes).check(heads[size].root_hash, heads[later].root_hash)
        proved += 1
        for number, node in enumerate(hashes):
            for each in one_bit_off(node):
                with pytest.raises(ConsistencyProofInvalid):
                    ConsistencyProof(size, later, [*hashes[:number], each, *hashes[number + 1 :]]).check(
                        heads[size].root_hash, heads[later].root_hash
                    )
    assert proved > 5


def test_we_take_a_head_that_they_signed() -> None:
    origin = f"gatewayd/{KEY.key_id}/01ARZ3NDEKTSV4RRFFQ69G5FAV"
    theirs = Checkpoint.make_signed(origin, 7, bytes(range(32)), [PlainEd25519Signer(TRUSTED[0].name, bytes(range(32)))])
    head = head_in(open_note(theirs.serialize(), TRUSTED)[0])
    assert (head.origin, head.size, head.root) == (origin, 7, bytes(range(32)))
