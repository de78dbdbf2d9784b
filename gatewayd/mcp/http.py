"""Streamable HTTP at /mcp as a handler of exchanges (mcp.md, HTTP; spec, POST /mcp). Both eras on one path.

Answers are plain JSON; a POST turns into an event stream only if progress is sent before the result. Connections, their
deadlines and their crashes are the fence's, `http/server.py`; here a request is already parsed HTTP.
"""

from typing import Final, final

import msgspec
import trio

from gatewayd.mcp import handshake, headers, messages, stateless
from gatewayd.mcp.bodies import Bodies, Held
from gatewayd.mcp.dispatch import RETRY_AFTER_S, Dispatch, DispatchStatistics
from gatewayd.mcp.exchange import Disconnected, Exchange
from gatewayd.mcp.messages import (
    HANDSHAKE_VERSIONS,
    HEADER_MISMATCH,
    INVALID_REQUEST,
    NOT_ACCEPTABLE,
    SESSION_MISSING,
    SESSION_UNKNOWN,
    TOO_BUSY,
    Notification,
    ProtocolError,
    Request,
)
from gatewayd.mcp.reply import RETRY_AFTER, Reply
from gatewayd.mcp.sessions import Session, Sessions, SessionStatistics

KEEP_ALIVE_S: Final = 25.0
_JSON: Final = b"application/json"
_EVENTS: Final = b"text/event-stream"
_HANDSHAKE_VERSIONS: Final = frozenset(version.encode() for version in HANDSHAKE_VERSIONS)


class McpStatistics(msgspec.Struct, frozen=True):
    dispatch: DispatchStatistics
    sessions: SessionStatistics
    streams: int


@final
class McpHttp:
    """The handler. `drain` refuses new work and ends event streams; calls in flight are the server's to wait for."""

    def __init__(self, dispatch: Dispatch, callers: headers.Callers, *, sessions: Sessions | None = None) -> None:
        self._dispatch: Final = dispatch
        self._callers: Final = callers
        self._sessions: Final = sessions or Sessions()
        self._bodies: Final = Bodies()
        self._draining = False
        self._streams = 0

    def drain(self) -> None:
        self._draining = True
        self._dispatch.drain()
        for session in self._sessions:
            if session.stream is not None:
                session.stream.cancel()

    def statistics(self) -> McpStatistics:
        return McpStatistics(self._dispatch.statistics(), self._sessions.statistics(), self._streams)

    async def __call__(self, exchange: Exchange) -> None:
        head = exchange.head
        found, repeated = headers.read(head.headers)
        reply = Reply(exchange)
        origin = found.get(b"origin")
        if not self._callers.allows_host(found.get(b"host", b"")):
            await reply.refuse(403, ProtocolError(INVALID_REQUEST, "this `Host` is not allowed (GATEWAY_ALLOWED_HOSTS)"))
        elif origin is not None and not self._callers.allows_origin(origin):
            await reply.refuse(403, ProtocolError(INVALID_REQUEST, "this `Origin` is not allowed (GATEWAY_ALLOWED_ORIGINS)"))
        elif head.method == "POST":
            await self._post(_Asked(exchange, found, repeated), reply)
        elif head.method not in ("GET", "DELETE"):
            await reply.empty(405, (b"allow", b"GET, POST, DELETE"))
        elif not _is_handshake(found):
            await reply.empty(405, (b"allow", b"POST"))
        elif head.method == "GET":
            await self._get(_Asked(exchange, found, repeated), reply)
        else:
            await self._delete(found, repeated, reply)

    async def _post(self, asked: "_Asked", reply: Reply) -> None:
        found = asked.found
        if not headers.is_json(found.get(b"content-type", b"")):
            await reply.refuse(415, ProtocolError(INVALID_REQUEST, "`Content-Type` must be application/json"))
            return
        accept = found.get(b"accept", b"")
        if not (headers.accepts(accept, _JSON) and headers.accepts(accept, _EVENTS)):
            text = "`Accept` must list application/json and text/event-stream"
            await reply.refuse(406, ProtocolError(NOT_ACCEPTABLE, text))
            return
        held = Held(self._bodies)
        try:
            await self._message(asked, reply, held)
        finally:
            held.give_back()  # here, where nothing refers to the body any more

    async def _message(self, asked: "_Asked", reply: Reply, held: Held) -> None:
        body = await reply.body(held)
        if body is None:
            return
        message = messages.parse(body)
        if isinstance(message, ProtocolError):
            await reply.refuse(400, message)
        elif not _is_handshake(asked.found):
            await self._stateless(message, asked, reply)
        elif isinstance(message, Request) and stateless.is_stateless(message, body):
            await reply.refuse(
                400,
                ProtocolError(HEADER_MISMATCH, "header `mcp-protocol-version` is missing or differs from the body", message.id),
            )
        else:
            await self._handshake(message, asked, reply)

    # -- stateless era

    async def _stateless(self, message: Request | Notification | messages.Response, asked: "_Asked", reply: Reply) -> None:
        if not isinstance(message, Request):
            await reply.empty(202)  # and dropped: an id chosen by a client must not cancel another's call
            return
        read = stateless.meta_of(message)
        if isinstance(read, ProtocolError):
            await reply.refuse(stateless.refused(read).status, read)
            return
        meta, params = read
        refusal = stateless.check_headers(message, meta, params, asked.found, asked.repeated)
        refusal = refusal or stateless.check_version(message, meta)
        if refusal is not None:
            await reply.refuse(400, refusal)
            return
        token_id = headers.token_id(asked.found, asked.repeated)
        if params is None:
            answer = await stateless.answer(
                self._dispatch, message, meta, None, token_id=token_id, caller=None, notify=reply.notify
            )
            await reply.answer(answer.body, answer.status)
            return
        # All that tells agents without sessions apart. None of it is proof, and behind a proxy the address is its own.
        name = None if isinstance(meta.client_info, msgspec.UnsetType) else meta.client_info.name
        caller = ("stateless", asked.exchange.client, token_id, name)
        answered: stateless.Reply | None = None
        # Cancels the work, not the reply: a write that is cut off poisons its connection.
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_when_gone, asked.exchange, nursery.cancel_scope)
            answered = await stateless.answer(
                self._dispatch, message, meta, params, token_id=token_id, caller=caller, notify=reply.notify
            )
            nursery.cancel_scope.cancel()
        if answered is not None:
            await reply.answer(answered.body, answered.status)

    # -- handshake era

    async def _handshake(self, message: Request | Notification | messages.Response, asked: "_Asked", reply: Reply) -> None:
        now_s = trio.current_time()
        id_ = message.id if isinstance(message, Request) else None
        session_id = headers.session_id(asked.found, asked.repeated)
        session = None if session_id is None else self._sessions.find(session_id, now_s)
        if isinstance(message, Request) and message.method == "initialize":
            await self._initialize(message, session, asked, reply)
        elif session_id is None:
            await reply.refuse(400, ProtocolError(SESSION_MISSING, "no `Mcp-Session-Id`; send `initialize` first", id_))
        elif session is None:
            await reply.refuse(404, ProtocolError(SESSION_UNKNOWN, "unknown or ended session; send `initialize` again", id_))
        elif isinstance(message, Request):
            answer = await handshake.answer(self._dispatch, session, message, session.id, reply.notify)
            self._sessions.touch(session, trio.current_time())
            if answer is None:
                answer = messages.error(ProtocolError(messages.REQUEST_CANCELLED, "Request cancelled", id_))
            await reply.answer(answer, 200)
        else:
            if isinstance(message, Notification):
                handshake.notified(session, message)
            await reply.empty(202)

    async def _initialize(self, request: Request, session: Session | None, asked: "_Asked", reply: Reply) -> None:
        if session is not None:  # who calls was settled by the first one (contract 15.22)
            body = handshake.welcome(self._dispatch, request.id, session.version)
            await reply.answer(body, 200, (b"mcp-session-id", session.id.encode()))
            return
        if self._draining:
            await self._refuse_session("the gateway is stopping", request, reply)
            return
        opened = handshake.initialize(self._dispatch, request, headers.token_id(asked.found, asked.repeated))
        if isinstance(opened, ProtocolError):
            await reply.refuse(200, opened)
            return
        peer, body = opened
        session = self._sessions.open(peer, trio.current_time())
        if session is None:
            await self._refuse_session("too many sessions are open", request, reply)
            return
        await reply.answer(body, 200, (b"mcp-session-id", session.id.encode()))

    async def _refuse_session(self, why: str, request: Request, reply: Reply) -> None:
        data = {"retryAfterSeconds": RETRY_AFTER_S}
        error = ProtocolError(TOO_BUSY, f"{why}; try again later", request.id, data)
        await reply.refuse(503, error, RETRY_AFTER)

    async def _named_session(self, found: headers.Found, repeated: frozenset[bytes], reply: Reply) -> Session | None:
        session_id = headers.session_id(found, repeated)
        if session_id is None:
            await reply.refuse(400, ProtocolError(SESSION_MISSING, "no `Mcp-Session-Id`"))
            return None
        session = self._sessions.find(session_id, trio.current_time())
        if session is None:
            await reply.refuse(404, ProtocolError(SESSION_UNKNOWN, "unknown or ended session; send `initialize` again"))
        return session

    async def _delete(self, found: headers.Found, repeated: frozenset[bytes], reply: Reply) -> None:
        session = await self._named_session(found, repeated, reply)
        if session is not None:
            self._sessions.end(session)
            await reply.empty(200)

    async def _get(self, asked: "_Asked", reply: Reply) -> None:
        """An event stream that carries keep-alive comments only: the server has nothing to say unasked. 405 would do for the
        protocol, but clients of 2025 open this right after `initialize`, and some log a refusal as a failure."""
        if not headers.accepts(asked.found.get(b"accept", b""), _EVENTS):
            await reply.refuse(406, ProtocolError(NOT_ACCEPTABLE, "`Accept` must list text/event-stream"))
            return
        session = await self._named_session(asked.found, asked.repeated, reply)
        if session is None:
            return
        if self._draining:
            await reply.empty(503, RETRY_AFTER)
            return
        if session.stream is not None:
            session.stream.cancel()
        mine = session.stream = trio.CancelScope()
        self._streams += 1
        try:
            with mine:
                await reply.open_stream()
                await _keep_alive(asked.exchange, reply)
                return  # the client is gone
            await reply.close_stream()
        finally:
            self._streams -= 1
            if session.stream is mine:
                session.stream = None
                self._sessions.touch(session, trio.current_time())


class _Asked(msgspec.Struct, frozen=True, gc=False):
    exchange: Exchange
    found: headers.Found
    repeated: frozenset[bytes]


def _is_handshake(found: headers.Found) -> bool:
    version = found.get(b"mcp-protocol-version")
    return version is None or version in _HANDSHAKE_VERSIONS


async def _cancel_when_gone(exchange: Exchange, scope: trio.CancelScope) -> None:
    await exchange.gone()
    scope.cancel()


async def _keep_alive(exchange: Exchange, reply: Reply) -> None:
    """Returns when the client is gone."""
    while True:
        with trio.move_on_after(KEEP_ALIVE_S):
            await exchange.gone()
            return
        try:
            await reply.comment()
        except Disconnected:
            return
