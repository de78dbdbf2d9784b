"""Any bytes are a message or a protocol error; what goes out is what the official SDK's models accept."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.mcp import messages
from gatewayd.mcp.messages import INVALID_REQUEST, PARSE_ERROR, Notification, ProtocolError, Request, Response, parse

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
ENVELOPES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": st.integers() | st.text() | JSON,
        "method": st.sampled_from(["tools/call", "initialize", "ping", "notifications/cancelled"]) | JSON,
        "params": JSON,
        "result": JSON,
        "error": JSON,
    },
)


@pytest.mark.parametrize(
    ("text", "code", "id_"),
    [
        (b"", PARSE_ERROR, None),
        (b"{", PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"a"} x', PARSE_ERROR, None),
        (b'{"id":1,"method":1,,}', PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":"\xff","method":"x"}', PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', PARSE_ERROR, None),
        (b"\xef\xbb\xbf{}", PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":' + b"[" * 200_000 + b"]" * 200_000 + b"}", PARSE_ERROR, None),
        (b"[]", INVALID_REQUEST, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID_REQUEST, None),
        (b"null", INVALID_REQUEST, None),
        (b"{}", INVALID_REQUEST, None),
        (b'{"id":1,"method":"x"}', INVALID_REQUEST, 1),
        (b'{"jsonrpc":"1.0","id":"a","method":"x"}', INVALID_REQUEST, "a"),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"x"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1e3,"method":"x"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":[1],"method":"x"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":5,"method":7}', INVALID_REQUEST, 5),
        (b'{"jsonrpc":"2.0","id":5}', INVALID_REQUEST, 5),
        (b'{"jsonrpc":"2.0","id":5,"result":{},"error":{}}', INVALID_REQUEST, 5),
        (b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"x"}', INVALID_REQUEST, None),
    ],
)
def test_refused(text: bytes, code: int, id_: object) -> None:
    refused = parse(text)
    assert isinstance(refused, ProtocolError)
    assert (refused.code, refused.id) == (code, id_)
    assert json.loads(messages.error(refused))["error"]["code"] == code


def test_accepted() -> None:
    assert parse(b'{"jsonrpc":"2.0","id":"7","method":"ping","unknown":[1]}') == Request("7", "ping")
    assert parse(b'{"jsonrpc":"2.0","id":-7,"method":"ping"}') == Request(-7, "ping")
    assert parse(b'{"jsonrpc":"2.0","method":"notifications/x"}') == Notification("notifications/x")
    assert parse(b'{"jsonrpc":"2.0","id":1,"result":{}}') == Response()
    request = parse(b' {"method":"a","params":{"b":[1]},"id":1,"jsonrpc":"2.0"}\r')
    assert isinstance(request, Request)
    assert request.params is not None
    assert bytes(request.params) == b'{"b":[1]}'


def test_unknown_keys_pass_in_params_and_meta() -> None:
    request = Request(1, "tools/call", msgspec.Raw(b'{"name":"q","x":1,"_meta":{"y":2,"progressToken":"t"}}'))
    params = messages.call_params(request)
    assert not isinstance(params, ProtocolError)
    assert not isinstance(params.meta, msgspec.UnsetType)
    assert params.meta.progress_token == "t"
    assert bytes(params.arguments) == b"{}"


@pytest.mark.parametrize(
    "params", [b"[]", b"null", b"{}", b'{"name":1}', b'{"name":"a","_meta":3}', b'{"name":"a","_meta":null}']
)
def test_malformed_params(params: bytes) -> None:
    refused = messages.call_params(Request(3, "tools/call", msgspec.Raw(params)))
    assert isinstance(refused, ProtocolError)
    assert (refused.code, refused.id) == (messages.INVALID_PARAMS, 3)


def handled(text: bytes) -> None:
    """Everything a transport does with a message before it acts; none of it may raise."""
    message = parse(text)
    match message:
        case ProtocolError():
            answer = json.loads(messages.error(message))
            assert answer["error"]["code"] in (PARSE_ERROR, INVALID_REQUEST)
        case Request():
            for read in (messages.call_params, messages.any_params, messages.initialize_params):
                params: Any = read(message)
                if isinstance(params, ProtocolError):
                    assert params.code == messages.INVALID_PARAMS
                    assert json.loads(messages.error(params))["id"] == message.id
            assert json.loads(messages.result(message.id, {}))["id"] == message.id
        case Notification():
            messages.cancelled_id(message)


@given(st.binary())
def test_any_bytes(text: bytes) -> None:
    handled(text)


@given(st.text())
def test_any_text(text: str) -> None:
    handled(text.encode("utf-8", "surrogatepass"))


@given(ENVELOPES)
def test_any_envelope(envelope: dict[str, Any]) -> None:
    handled(json.dumps(envelope).encode())


@given(ENVELOPES, st.integers(0, 400), st.binary(max_size=3))
def test_any_damaged_envelope(envelope: dict[str, Any], at: int, put: bytes) -> None:
    text = json.dumps(envelope).encode()
    handled(text[:at] + put + text[at + 1 :])


@given(st.text())
def test_the_text_of_a_result_arrives_whole(text: str) -> None:
    answer = messages.result(1, messages.CallResult((messages.TextContent(text),)))
    assert b"\n" not in answer
    assert json.loads(answer)["result"] == {"content": [{"type": "text", "text": text}]}
