"""The handshake era, 2024-11-05 to 2025-11-25: `initialize` settles who calls, then calls refer to it (docs/mcp.md).

Transport-free: HTTP keeps a `Peer` per session, stdio one per process. Clients that call before `notifications/initialized` are
served; several race it.
"""

from collections.abc import Awaitable, Callable, Hashable
from typing import Final

import msgspec
import trio

from gatewayd.audit.events import Agent
from gatewayd.mcp import messages
from gatewayd.mcp.dispatch import Dispatch, SendProgress, agent_of
from gatewayd.mcp.messages import (
    HANDSHAKE_VERSIONS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NEWEST_HANDSHAKE_VERSION,
    CallParams,
    CallResult,
    Id,
    Notification,
    ProtocolError,
    Request,
    RequestMeta,
    TextContent,
)

Notify = Callable[[bytes], Awaitable[None]]  # sends one message ahead of the answer


class Peer:
    """One client after `initialize`: who it is, and its calls in flight by request id."""

    __slots__ = ("agent", "calls", "version")

    def __init__(self, version: str = NEWEST_HANDSHAKE_VERSION, agent: Agent | None = None) -> None:
        self.version = version
        self.agent = agent or Agent()
        self.calls: dict[Id, trio.CancelScope] | None = None  # None while idle: a thousand idle sessions need no dicts

    def cancel(self, id_: Id) -> None:
        """Ends that call if it is in flight; unknown ids are ignored, the answer and the cancel may have crossed."""
        scope = self.calls.get(id_) if self.calls else None
        if scope is not None:
            scope.cancel()

    def cancel_all(self) -> None:
        """Ends all of its calls in flight."""
        for scope in list((self.calls or {}).values()):
            scope.cancel()


def initialize(dispatch: Dispatch, request: Request, token_id: str | None) -> tuple[Peer, bytes] | ProtocolError:
    """A new peer and the answer that welcomes it. An unknown version is answered with the newest one we speak."""
    params = messages.initialize_params(request)
    if isinstance(params, ProtocolError):
        dispatch.count(request.method, "error")
        return params
    version = params.protocol_version if params.protocol_version in HANDSHAKE_VERSIONS else NEWEST_HANDSHAKE_VERSION
    agent = agent_of(params.client_info, token_id)
    dispatch.note_client(agent, version)
    return Peer(version, agent), welcome(dispatch, request.id, version)


def welcome(dispatch: Dispatch, id_: Id, version: str) -> bytes:
    """The answer to `initialize`."""
    dispatch.count("initialize", "answered")
    return messages.result(id_, _Welcome(version, {"tools": {}}, dispatch.server_info, dispatch.instructions))


def notified(peer: Peer, notification: Notification) -> None:
    """Notifications never get an answer, whatever their method."""
    if notification.method == "notifications/cancelled":
        id_ = messages.cancelled_id(notification)
        if id_ is not None:
            peer.cancel(id_)


async def answer(
    dispatch: Dispatch, peer: Peer, request: Request, caller: Hashable, notify: Notify, address: str = ""
) -> bytes | None:
    """The answer to one request other than `initialize`; None when the client cancelled it."""
    match request.method:
        case "tools/call":
            params = messages.call_params(request)
            if isinstance(params, ProtocolError):
                dispatch.count(request.method, "error")
                return messages.error(params)
            return await _call(dispatch, peer, request.id, params, caller, notify, address)
        case "tools/list":
            dispatch.count(request.method, "answered")
            return messages.result(request.id, {"tools": dispatch.tools_json()})
        case "ping":
            dispatch.count(request.method, "answered")
            return messages.result(request.id, {})
        case method:
            dispatch.count(method, "error")
            return messages.error(ProtocolError(METHOD_NOT_FOUND, f"unknown method `{method[:64]}`", request.id))


async def _call(
    dispatch: Dispatch, peer: Peer, id_: Id, params: CallParams, caller: Hashable, notify: Notify, address: str
) -> bytes | None:
    if peer.calls is None:
        peer.calls = {}
    elif id_ in peer.calls:
        dispatch.count("tools/call", "error")
        return messages.error(ProtocolError(INVALID_REQUEST, "a request with this `id` is still in flight", id_))
    scope = peer.calls[id_] = trio.CancelScope()
    try:
        with scope:
            result = await dispatch.call(id_, params, peer.agent, caller, progress_of(params.meta, notify), address)
            if isinstance(result, ProtocolError):
                return messages.error(result)
            content = (TextContent(result.text),) if result.content is None else result.content
            return messages.result(id_, CallResult(content, result.is_error))
    finally:
        del peer.calls[id_]
        if not peer.calls:
            peer.calls = None
    return None


def progress_of(meta: RequestMeta | msgspec.UnsetType, notify: Notify) -> SendProgress | None:
    """A sender of progress when the request asked for it, else None."""
    if isinstance(meta, msgspec.UnsetType) or isinstance(meta.progress_token, msgspec.UnsetType):
        return None
    token: Final = meta.progress_token

    async def progress(value: float, total: float | None = None, message: str | None = None) -> None:
        await notify(messages.progress(token, value, total, message))

    return progress


class _Welcome(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename={"protocol_version": "protocolVersion", "server_info": "serverInfo"},
):
    protocol_version: str
    capabilities: dict[str, dict[str, bool]]
    server_info: dict[str, str]
    instructions: str | None = None
