"""The stateless era, 2026-07-28: no handshake, no session; every request carries its own `_meta` (docs/mcp.md).

Transport-free: the caller compares mirrored headers first (`check_headers`) where there are headers, and cancels the awaiting
task when the client is gone.
"""

from collections.abc import Hashable
from typing import Any, Final, Literal

import msgspec

from gatewayd.mcp import messages
from gatewayd.mcp.dispatch import Dispatch, agent_of
from gatewayd.mcp.eras.handshake import Notify, progress_of
from gatewayd.mcp.header_rules import Found, mirrored
from gatewayd.mcp.messages import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    STATELESS_VERSIONS,
    UNSUPPORTED_VERSION,
    CallParams,
    ProtocolError,
    Request,
    RequestMeta,
    StatelessCallResult,
    TextContent,
)

TOOLS_TTL_MS: Final = 60_000  # a policy reload may change descriptions
DISCOVER_TTL_MS: Final = 3_600_000
_PROTOCOL_VERSION_HEADER: Final = b"mcp-protocol-version"
_VERSION_KEY: Final = b"io.modelcontextprotocol/protocolVersion"


class StatelessAnswer(msgspec.Struct, frozen=True, gc=False):
    """An encoded answer and the HTTP status that goes with it (stdio drops the status)."""

    body: bytes
    status: Literal[200, 400, 404] = 200


class _List(msgspec.Struct, frozen=True, omit_defaults=True):
    result_type: str = msgspec.field(name="resultType")
    meta: msgspec.Raw = msgspec.field(name="_meta")
    ttl_ms: int = msgspec.field(name="ttlMs")
    cache_scope: str = msgspec.field(name="cacheScope")
    tools: msgspec.Raw | None = None
    supported_versions: tuple[str, ...] | None = msgspec.field(name="supportedVersions", default=None)
    capabilities: dict[str, Any] | None = None
    instructions: str | None = None


def is_stateless(request: Request, text: bytes | msgspec.Raw | None) -> bool:
    """`server/discover`, or a protocol version in `_meta`. `text` is the request or its params as received: searching it for the
    key saves calls of the other era a second decoding."""
    if request.method == "server/discover":
        return True
    if text is None or _VERSION_KEY not in bytes(text):
        return False
    params = messages.any_params(request)
    if isinstance(params, ProtocolError) or isinstance(params.meta, msgspec.UnsetType):
        return False
    return not isinstance(params.meta.protocol_version, msgspec.UnsetType)


def meta_of(request: Request) -> tuple[RequestMeta, CallParams | None] | ProtocolError:
    """`_meta`, and the whole params of a tool call, decoded once; refused where a required key is missing."""
    params: messages.AnyParams | CallParams | ProtocolError
    params = messages.call_params(request) if request.method == "tools/call" else messages.any_params(request)
    if isinstance(params, ProtocolError):
        return params
    meta = params.meta
    if isinstance(meta, msgspec.UnsetType):
        return ProtocolError(INVALID_PARAMS, "`_meta` is missing", request.id)
    if isinstance(meta.protocol_version, msgspec.UnsetType):
        return ProtocolError(INVALID_PARAMS, "`_meta` lacks `io.modelcontextprotocol/protocolVersion`", request.id)
    if isinstance(meta.client_capabilities, msgspec.UnsetType):
        return ProtocolError(INVALID_PARAMS, "`_meta` lacks `io.modelcontextprotocol/clientCapabilities`", request.id)
    return meta, params if isinstance(params, CallParams) else None


def check_version(request: Request, meta: RequestMeta) -> ProtocolError | None:
    """The refusal of a version that is not served, or None."""
    if meta.protocol_version in STATELESS_VERSIONS:
        return None
    data = {"supported": list(STATELESS_VERSIONS), "requested": meta.protocol_version}
    return ProtocolError(UNSUPPORTED_VERSION, "unsupported protocol version", request.id, data)


def check_headers(
    request: Request, meta: RequestMeta, params: CallParams | None, found: Found, repeated: frozenset[bytes]
) -> ProtocolError | None:
    """`MCP-Protocol-Version`, `Mcp-Method` and, for a tool call, `Mcp-Name` must be there once and equal the body."""
    expected = [(_PROTOCOL_VERSION_HEADER, meta.protocol_version), (b"mcp-method", request.method)]
    if params is not None:
        expected.append((b"mcp-name", params.name))
    for name, value in expected:
        header = found.get(name)
        if header is None:
            return ProtocolError(HEADER_MISMATCH, f"header `{name.decode()}` is missing", request.id)
        if name in repeated:
            return ProtocolError(HEADER_MISMATCH, f"header `{name.decode()}` is repeated", request.id)
        if mirrored(header) != value:
            return ProtocolError(HEADER_MISMATCH, f"header `{name.decode()}` differs from the body", request.id)
    return None


async def answer(
    dispatch: Dispatch,
    request: Request,
    meta: RequestMeta,
    params: CallParams | None,
    *,
    token_id: str | None,
    caller: Hashable,
    notify: Notify,
    address: str = "",
) -> StatelessAnswer:
    """The answer to a request whose `_meta`, version and headers were found good."""
    agent = agent_of(meta.client_info, token_id)
    dispatch.note_client(agent, str(meta.protocol_version))
    if params is not None:
        result = await dispatch.call(request.id, params, agent, caller, progress_of(meta, notify), address)
        if isinstance(result, ProtocolError):
            return refused(result)
        content = (TextContent(result.text),) if result.content is None else result.content
        whole = StatelessCallResult("complete", dispatch.server_meta, content, result.is_error)
        return StatelessAnswer(messages.result(request.id, whole))
    match request.method:
        case "tools/list":
            dispatch.count(request.method, "answered")
            tools = _List("complete", dispatch.server_meta, TOOLS_TTL_MS, "public", tools=dispatch.tools_json())
            return StatelessAnswer(messages.result(request.id, tools))
        case "server/discover":
            dispatch.count(request.method, "answered")
            found = _List(
                "complete",
                dispatch.server_meta,
                DISCOVER_TTL_MS,
                "public",
                supported_versions=STATELESS_VERSIONS,
                capabilities={"tools": {}},
                instructions=dispatch.instructions,
            )
            return StatelessAnswer(messages.result(request.id, found))
        case method:
            dispatch.count(method, "error")
            return refused(ProtocolError(METHOD_NOT_FOUND, f"unknown method `{method[:64]}`", request.id))


def refused(error: ProtocolError) -> StatelessAnswer:
    """The error with its HTTP status: 404 for an unknown method, else 400."""
    return StatelessAnswer(messages.error(error), 404 if error.code == METHOD_NOT_FOUND else 400)
