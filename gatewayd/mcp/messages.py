"""JSON-RPC 2.0 and MCP messages of both protocol eras as values (docs/mcp.md, Framing). Pure: bytes in, values out, and back.

Envelopes and `_meta` let unknown keys pass, so that a newer client still speaks to us; only what is used is typed. The rules
of the eras are in `handshake.py` and `stateless.py`, those of HTTP headers in `header_rules.py`.
"""

from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSIONS: Final = ("2026-07-28",)
NEWEST_HANDSHAKE_VERSION: Final = HANDSHAKE_VERSIONS[-1]
MESSAGE_BYTES: Final = 8 * 1024 * 1024  # SQL may be 1 MiB, and JSON escapes can grow it sixfold

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REQUEST_CANCELLED: Final = -32800
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022
# Our own, outside -32768…-32000 as JSON-RPC asks.
SESSION_MISSING: Final = 4000
SESSION_UNKNOWN: Final = 4004
NOT_ACCEPTABLE: Final = 4006
USED_UP: Final = 4029
TOO_BUSY: Final = 5003

_WIDEST_ID: Final = 2**63 - 1

Id = int | str
T = TypeVar("T")


class Request(Struct, frozen=True, gc=False):
    """A message that wants an answer."""

    id: Id
    method: str
    params: Raw | None = None


class Notification(Struct, frozen=True, gc=False):
    """A message that gets no answer."""

    method: str
    params: Raw | None = None


class Response(Struct, frozen=True, gc=False):
    """A client's answer. The server sends no requests, so it is accepted and dropped."""


class ProtocolError(Struct, frozen=True):
    """A JSON-RPC error; `id` is None where that of the request could not be read."""

    code: int
    message: str
    id: Id | None = None
    data: Any = None


class ClientInfo(Struct, frozen=True):
    """Who the client says it is."""

    name: str
    version: str = ""


class RequestMeta(Struct, frozen=True):
    """What is read of a request's `_meta`; the stateless era keeps there what the handshake settles once."""

    progress_token: Id | UnsetType = field(default=UNSET, name="progressToken")
    protocol_version: str | UnsetType = field(default=UNSET, name="io.modelcontextprotocol/protocolVersion")
    client_capabilities: dict[str, Any] | UnsetType = field(default=UNSET, name="io.modelcontextprotocol/clientCapabilities")
    client_info: ClientInfo | UnsetType = field(default=UNSET, name="io.modelcontextprotocol/clientInfo")


class AnyParams(Struct, frozen=True):
    """Params of a method of which only `_meta` is read."""

    meta: RequestMeta | UnsetType = field(default=UNSET, name="_meta")


class CallParams(Struct, frozen=True):
    """Params of `tools/call`; `arguments` is raw JSON."""

    name: str
    arguments: Raw = Raw(b"{}")
    meta: RequestMeta | UnsetType = field(default=UNSET, name="_meta")


class InitializeParams(Struct, frozen=True):
    """Params of `initialize`."""

    protocol_version: str = field(name="protocolVersion")
    capabilities: dict[str, Any] = {}
    client_info: ClientInfo | UnsetType = field(default=UNSET, name="clientInfo")


class CancelledParams(Struct, frozen=True):
    """Params of `notifications/cancelled`."""

    request_id: Id = field(name="requestId")


class TextContent(Struct, frozen=True, gc=False, tag_field="type", tag="text"):
    """A text block of a result."""

    text: str


class CallResult(Struct, frozen=True, omit_defaults=True, rename={"is_error": "isError"}):
    """The result of `tools/call`, handshake era."""

    content: list[Any] | tuple[TextContent]
    is_error: bool = False


class StatelessCallResult(
    Struct, frozen=True, omit_defaults=True, rename={"is_error": "isError", "result_type": "resultType", "meta": "_meta"}
):
    """The result of `tools/call`, stateless era."""

    result_type: str
    meta: Raw
    content: list[Any] | tuple[TextContent]
    is_error: bool = False


class _Envelope(Struct, frozen=True):
    jsonrpc: str
    id: Id | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _IdOnly(Struct, frozen=True):
    id: Id | None = None


class _Answer(Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: Id
    result: Any


class _ErrorBody(Struct, frozen=True, omit_defaults=True):
    code: int
    message: str
    data: Any = None


class _ErrorAnswer(Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: Id | None
    error: _ErrorBody


class _ProgressParams(Struct, frozen=True, omit_defaults=True, rename={"progress_token": "progressToken"}):
    progress_token: Id
    progress: float
    total: float | None = None
    message: str | None = None


class _ProgressNotification(Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    params: _ProgressParams
    method: Literal["notifications/progress"] = "notifications/progress"


_envelopes: Final = msgspec.json.Decoder(_Envelope)
_ids: Final = msgspec.json.Decoder(_IdOnly)
_encode: Final = msgspec.json.Encoder().encode
_call_params: Final = msgspec.json.Decoder(CallParams)
_any_params: Final = msgspec.json.Decoder(AnyParams)
_initialize_params: Final = msgspec.json.Decoder(InitializeParams)
_cancelled_params: Final = msgspec.json.Decoder(CancelledParams)


def parse(message: bytes | bytearray | memoryview) -> Request | Notification | Response | ProtocolError:
    """Any bytes: one JSON-RPC message, or the error to answer it with. Never raises."""
    try:
        envelope = _envelopes.decode(message)
    except msgspec.ValidationError as error:
        if not _is_json(message):
            return ProtocolError(PARSE_ERROR, "the message is not valid JSON")
        return ProtocolError(INVALID_REQUEST, f"not a JSON-RPC request: {_shape(error)}", _id_of(message))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ProtocolError(PARSE_ERROR, "the message is not valid JSON")
    except RecursionError:
        return ProtocolError(PARSE_ERROR, "the message is nested too deep")
    id_ = None if envelope.id is UNSET else envelope.id
    if isinstance(id_, int) and not -_WIDEST_ID <= id_ <= _WIDEST_ID:
        return ProtocolError(INVALID_REQUEST, "`id` must be a string or an integer of at most 64 bits")
    if envelope.jsonrpc != "2.0":
        return ProtocolError(INVALID_REQUEST, "`jsonrpc` must be `2.0`", id_)
    if envelope.method is not UNSET:
        params = None if envelope.params is UNSET else envelope.params
        return Notification(envelope.method, params) if id_ is None else Request(id_, envelope.method, params)
    if id_ is not None and (envelope.result is UNSET) != (envelope.error is UNSET):
        return Response()
    return ProtocolError(INVALID_REQUEST, "not a JSON-RPC request: `method` is missing", id_)


def call_params(request: Request) -> CallParams | ProtocolError:
    """The params of a tool call, or the error to answer."""
    return _params(_call_params, request)


def any_params(request: Request) -> AnyParams | ProtocolError:
    """Only `_meta`; other params are not read."""
    if request.params is None:
        return AnyParams()
    return _params(_any_params, request)


def initialize_params(request: Request) -> InitializeParams | ProtocolError:
    """The params of `initialize`, or the error to answer."""
    return _params(_initialize_params, request)


def cancelled_id(notification: Notification) -> Id | None:
    """The request that `notifications/cancelled` names; None where it names none."""
    try:
        return _cancelled_params.decode(notification.params or b"{}").request_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def is_object(document: Raw) -> bool:
    """Whether a raw document (valid JSON, leading space skipped by the decoder) is an object."""
    return bytes(memoryview(document)[:1]) == b"{"


def result(id_: Id, value: object) -> bytes:
    """A JSON-RPC answer."""
    return _encode(_Answer(id_, value))


def error(refusal: ProtocolError) -> bytes:
    """A JSON-RPC error."""
    return _encode(_ErrorAnswer(refusal.id, _ErrorBody(refusal.code, refusal.message, refusal.data)))


def progress(token: Id, value: float, total: float | None, message: str | None) -> bytes:
    """A progress notification."""
    return _encode(_ProgressNotification(_ProgressParams(token, value, total, message)))


def _params(decoder: "msgspec.json.Decoder[T]", request: Request) -> T | ProtocolError:
    try:
        return decoder.decode(request.params if request.params is not None else b"{}")
    except msgspec.ValidationError as problem:
        return ProtocolError(INVALID_PARAMS, f"bad params of `{request.method[:64]}`: {_shape(problem)}", request.id)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ProtocolError(INVALID_PARAMS, f"bad params of `{request.method[:64]}`", request.id)


def _shape(problem: msgspec.ValidationError) -> str:
    """The decoder's message in the form of other errors. It names types and paths, never the client's values."""
    text = str(problem)
    return text[:1].lower() + text[1:]


def _is_json(message: bytes | bytearray | memoryview) -> bool:
    """The decoder reports a wrong shape before it has read the rest, so the text may still not be JSON."""
    try:
        msgspec.json.decode(message, type=Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _id_of(message: bytes | bytearray | memoryview) -> Id | None:
    try:
        id_ = _ids.decode(message).id
        return None if isinstance(id_, int) and not -_WIDEST_ID <= id_ <= _WIDEST_ID else id_
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
