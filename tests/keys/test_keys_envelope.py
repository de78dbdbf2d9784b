"""DSSE envelopes: one form, one type, one signer; nothing else is taken, and no wrong one crashes."""

import base64
import json
import random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.keys.ed25519 import SigningKey
from gatewayd.keys.envelope import EnvelopeRefused, pae, parse, sign, verify
from tests.keys.mutated import mutated

TYPE: Final = "application/vnd.gatewayd.bundle+json"
KEY: Final = SigningKey(b"\1" * 32)
OTHER: Final = SigningKey(b"\2" * 32)
GOOD: Final = sign(TYPE, b'{"version":7}', [KEY])


def refused(data: bytes, kind: str = TYPE) -> str:
    with pytest.raises(EnvelopeRefused) as caught:
        verify(data, kind, [KEY.public])
    return caught.value.reason


@given(st.binary(max_size=500), st.text(max_size=50))
def test_what_was_signed_comes_back(payload: bytes, kind: str) -> None:
    assert verify(sign(kind, payload, [KEY]), kind, [OTHER.public, KEY.public]) == payload


def test_the_encoding_is_the_one_of_the_dsse_protocol() -> None:
    """The example of its page: type `http://example.com/HelloWorld`, payload `hello world`."""
    assert pae("http://example.com/HelloWorld", b"hello world") == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_every_bit_counts() -> None:
    for place in range(len(GOOD) * 8):
        changed = bytearray(GOOD)
        changed[place // 8] ^= 1 << place % 8
        refused(bytes(changed))


def test_a_good_envelope_of_another_type_is_told_as_that() -> None:
    with pytest.raises(EnvelopeRefused) as caught:
        verify(GOOD, "application/vnd.gatewayd.ack+json", [KEY.public])
    assert caught.value.is_type


def test_a_type_that_was_changed_after_signing_is_a_wrong_signature() -> None:
    changed = GOOD.replace(b"bundle", b"ack")
    with pytest.raises(EnvelopeRefused) as caught:
        verify(changed, "application/vnd.gatewayd.ack+json", [KEY.public])
    assert not caught.value.is_type


def made(**changes: object) -> bytes:
    return json.dumps({**json.loads(GOOD), **changes}, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"{}",
        b"[]",
        b"<html>sign in</html>",
        b"\xff\xfe",
        GOOD + b" ",
        b" " + GOOD,
        GOOD + GOOD,
        GOOD[:-1],
        GOOD[: len(GOOD) // 2],
        GOOD.replace(b"{", b'{"payloadType":"x",', 1),
        GOOD.replace(b'"signatures"', b'"payload":"","signatures"'),
        GOOD.replace(b",", b", "),
        made(signatures=[]),
        made(signatures=[{"keyid": KEY.public.key_id, "sig": ""}]),
        made(signatures=[{"keyid": "", "sig": json.loads(GOOD)["signatures"][0]["sig"]}]),
        made(signatures=json.loads(GOOD)["signatures"] * 9),
        made(signatures={"keyid": "", "sig": ""}),
        made(signatures=[None]),
        made(payload=7),
        made(payload="eyJ2ZXJzaW9uIjo3fR"),
        made(payloadType=None),
        made(more=1),
        b'{"payloadType":"\\ud800","payload":"","signatures":[{"keyid":"","sig":""}]}',
        b"[" * 100_000,
    ],
    ids=range(26),
)
def test_what_is_not_the_one_form_is_refused(data: bytes) -> None:
    refused(data)


def test_base64_has_one_text() -> None:
    """The last character of a text of 64 + 2 bytes has unused bits: setting them gives the same bytes from another text."""
    envelope = json.loads(GOOD)
    text = envelope["signatures"][0]["sig"]
    assert text.endswith("==")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    other = text[:-3] + alphabet[alphabet.index(text[-3]) + 1] + "=="
    assert base64.b64decode(other) == base64.b64decode(text)
    refused(made(signatures=[{"keyid": KEY.public.key_id, "sig": other}]))


def test_one_of_several_keys_is_enough_unless_each_is_asked_for() -> None:
    one, both = sign(TYPE, b"x", [KEY]), sign(TYPE, b"x", [KEY, OTHER])
    keys = [KEY.public, OTHER.public]
    assert verify(one, TYPE, keys) == b"x"
    assert verify(both, TYPE, keys, each=True) == b"x"
    with pytest.raises(EnvelopeRefused):
        verify(one, TYPE, keys, each=True)
    with pytest.raises(EnvelopeRefused):
        verify(one, TYPE, [], each=True)


@pytest.mark.parametrize("times", [3000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_no_mutation_is_taken(times: int) -> None:
    dice = random.Random(times)
    for _ in range(times):
        refused(mutated(GOOD, dice))


def test_software_that_is_not_ours_reads_our_envelopes() -> None:
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer._key import SSlibKey

    public = SSlibKey(KEY.public.key_id, "ed25519", "ed25519", {"public": KEY.public.raw.hex()})
    theirs = Envelope.from_dict(json.loads(GOOD))
    assert list(theirs.verify([public], 1)) == [KEY.public.key_id]
    assert parse(GOOD).payload == theirs.payload
    changed = Envelope.from_dict(json.loads(GOOD.replace(b"bundle", b"ack")))
    with pytest.raises(Exception, match=r"(?i)threshold|signature"):
        changed.verify([public], 1)
