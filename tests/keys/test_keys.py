"""Keys are loaded strictly, notes are opened only for keys that are trusted, and the identity is never replaced by accident."""

import base64
import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.keys.ed25519 import KeyRefused, PublicKey, SigningKey
from gatewayd.keys.identity import CREDENTIAL, FILE_NAME, IdentityRefused, ensure_identity, load_identity, verifier_of
from gatewayd.keys.note import NoteRefused, VerifierKey, open_note, sign_note, signer_names, text_of, verifier_key

P = 2**255 - 19
ORDER_8 = (
    0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD83D3D706A17C7,
    0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
)
SIGN = 1 << 255
CANONICAL = [1, P - 1, 0, 0 | SIGN, *ORDER_8, *(y | SIGN for y in ORDER_8)]
NOT_CANONICAL = [P, P | SIGN, P + 1, (P + 1) | SIGN, 1 | SIGN, (P - 1) | SIGN]

KEY = SigningKey(bytes(range(32)))
NAME = "gatewayd/test"


@pytest.mark.parametrize("encoding", [*CANONICAL, *NOT_CANONICAL], ids=lambda value: f"{value:064x}"[:8])
def test_keys_of_small_order_are_refused_though_the_library_takes_them(encoding: int) -> None:
    raw = encoding.to_bytes(32, "little")
    Ed25519PublicKey.from_public_bytes(raw)  # would be trusted without the check
    with pytest.raises(KeyRefused, match=r"small order|not canonical"):
        PublicKey(raw)


def test_there_are_fourteen_of_them_and_one_signature_verifies_any_message_under_the_first() -> None:
    encodings = {encoding.to_bytes(32, "little") for encoding in (*CANONICAL, *NOT_CANONICAL)}
    assert len(encodings) == 14
    forged = (1).to_bytes(32, "little") + bytes(32)  # R is the neutral element, S is 0
    neutral = Ed25519PublicKey.from_public_bytes((1).to_bytes(32, "little"))
    for message in (b"one", b"another"):
        neutral.verify(forged, message)


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_keys_of_another_length_are_refused(length: int) -> None:
    with pytest.raises(KeyRefused, match="expected 32"):
        PublicKey(b"\x01" * length)
    with pytest.raises(KeyRefused, match="expected 32"):
        SigningKey(b"\x01" * length)


def test_the_first_vector_of_rfc_8032() -> None:
    key = SigningKey(bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"))
    assert key.public.raw.hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert key.sign(b"").hex().startswith("e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155")
    assert key.public.verifies(key.sign(b""), b"")


@given(st.integers(0, 64 * 8 - 1), st.binary(max_size=64))
def test_every_bit_of_a_signature_counts(bit: int, message: bytes) -> None:
    signature = bytearray(KEY.sign(message))
    assert KEY.public.verifies(bytes(signature), message)
    signature[bit // 8] ^= 1 << bit % 8
    assert not KEY.public.verifies(bytes(signature), message)
    assert not KEY.public.verifies(KEY.sign(message)[:-1], message)


def test_a_signing_key_shows_its_seed_nowhere() -> None:
    assert KEY.seed.hex() not in repr(KEY)
    assert base64.b64encode(KEY.seed).decode() not in repr(KEY)


def note(text: str = "a head\n") -> str:
    return sign_note(text, NAME, KEY)


def test_a_note_opens_for_its_key_alone() -> None:
    key = VerifierKey(NAME, KEY.public)
    assert open_note(note(), [key]) == ("a head\n", key)
    assert verifier_key(str(key)) == key
    assert signer_names(note()) == (NAME,)
    others = [VerifierKey("gatewayd/other", KEY.public), VerifierKey(NAME, SigningKey.generate().public)]
    with pytest.raises(NoteRefused, match="no known key"):
        open_note(note(), others)


def test_lines_of_unknown_keys_are_ignored_and_false_ones_of_known_keys_are_not() -> None:
    key, other = VerifierKey(NAME, KEY.public), SigningKey.generate()
    witness = sign_note("a head\n", "witness.example", other).splitlines()[-1] + "\n"
    assert open_note(note() + witness, [key])[1] == key
    false = sign_note("another head\n", "witness.example", other).splitlines()[-1] + "\n"
    with pytest.raises(NoteRefused, match="does not verify"):
        open_note(note() + false, [key, VerifierKey("witness.example", other.public)])


@given(st.data())
def test_every_character_of_a_note_counts(data: st.DataObject) -> None:
    whole = note("origin\n5\nAAAA\n")
    place = data.draw(st.integers(0, len(whole) - 1))
    character = data.draw(st.characters(codec="utf-8").filter(lambda each: each != whole[place]))
    changed = whole[:place] + character + whole[place + 1 :]
    with pytest.raises(NoteRefused):
        open_note(changed, [VerifierKey(NAME, KEY.public)])


NO_NOTES = [
    "",
    "\n",
    "text\n",
    "text\n\n",
    "text\n\n— name\n",
    "text\n\n— name !!\n",
    "text\n\n- name AAAAAAAA\n",
    "a\tb\n\n— n AAAAAAA=\n",
    "text\n\n— name AAAA\n",
    "text\n\n— name AAAAAAB=\n",
    "text\n\n— na+me AAAAAAAA\n",
    "\ud800\n\n— n AAAAAAA=\n",
    "text\n\n" + "— name AAAAAAAA\n" * 65,
    "x" * 70_000,
]


@pytest.mark.parametrize("text", NO_NOTES, ids=range(len(NO_NOTES)))
def test_what_is_no_note_is_refused(text: str) -> None:
    with pytest.raises(NoteRefused):
        text_of(text)


def spelt(type_: int, raw: bytes) -> str:
    return f"name+00000000+{base64.b64encode(bytes([type_]) + raw).decode()}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name",
        "name+00",
        "name+00+!!",
        "name+00000000+AQ==",
        spelt(1, b"\x05" * 32),
        spelt(2, b"\x05" * 32),
        spelt(1, bytes(32)),
    ],
)
def test_what_is_no_verifier_key_is_refused(text: str) -> None:
    with pytest.raises(KeyRefused):
        verifier_key(text)


def test_the_identity_is_made_once_private_and_stays(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    assert load_identity(str(folder)) is None
    made = ensure_identity(str(folder))
    assert stat.S_IMODE((folder / FILE_NAME).stat().st_mode) == 0o600
    assert ensure_identity(str(folder)).seed == made.seed
    assert [each.name for each in folder.iterdir()] == [FILE_NAME]
    assert str(verifier_of(made)).startswith(f"gatewayd/{made.key_id}+")


def test_a_credential_goes_before_the_file(tmp_path: Path) -> None:
    made, other = ensure_identity(str(tmp_path / "a")), ensure_identity(str(tmp_path / "b"))
    os.replace(tmp_path / "b" / FILE_NAME, tmp_path / "b" / CREDENTIAL)
    assert ensure_identity(str(tmp_path / "a"), str(tmp_path / "b")).seed == other.seed
    assert ensure_identity(str(tmp_path / "a"), str(tmp_path / "none")).seed == made.seed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.write_text("{}"), "holds no identity"),
        (lambda path: path.write_bytes(b"\xff"), "holds no identity"),
        (lambda path: path.write_text(path.read_text().replace('"format":1', '"format":2')), "has format 2, expected 1"),
        (lambda path: path.chmod(0o640), "mode 0640, expected 0600"),
        (lambda path: (path.unlink(), path.mkdir()), "is no file"),
        (
            lambda path: path.write_text(
                path.read_text().replace('"private_key":"', '"private_key":"' + base64.b64encode(bytes(32)).decode() + '","x":"')
            ),
            "holds no identity",
        ),
    ],
)
def test_an_identity_that_cannot_be_trusted_is_refused_and_left_alone(tmp_path: Path, change: object, message: str) -> None:
    ensure_identity(str(tmp_path))
    path = tmp_path / FILE_NAME
    assert callable(change)
    change(path)
    with pytest.raises(IdentityRefused, match=message):
        ensure_identity(str(tmp_path))
    assert path.exists()


def test_a_damaged_seed_is_noticed(tmp_path: Path) -> None:
    key = ensure_identity(str(tmp_path))
    path = tmp_path / FILE_NAME
    damaged = bytes([key.seed[0] ^ 1]) + key.seed[1:]
    path.write_text(path.read_text().replace(base64.b64encode(key.seed).decode(), base64.b64encode(damaged).decode()))
    with pytest.raises(IdentityRefused, match="damaged"):
        load_identity(str(tmp_path))
