"""Streamable HTTP at /mcp as a handler of exchanges (docs/mcp.md, HTTP). Both eras on one path.

Answers are plain JSON; a POST turns into an event stream only if progress is sent before the result. Connections and their
deadlines are in `http/`; here a request is already parsed HTTP. What its head alone decides is in `request_head.py`."""

from typing import Final, final

import msgspec
import trio

from gatewayd.config.bounds import MCP_BOUNDS, McpBounds
from gatewayd.fairness.body_budget import BodyBudget, BodyShare
from gatewayd.http.exchange import Disconnected, Exchange
from gatewayd.mcp import header_rules as headers
from gatewayd.mcp import messages
from gatewayd.mcp.dispatch import RETRY_AFTER_S, Dispatch, DispatchStatistics
from gatewayd.mcp.door import OPEN, Door, UsedUp
from gatewayd.mcp.eras import handshake, stateless
from gatewayd.mcp.eras.sessions import Session, Sessions, SessionStatistics
from gatewayd.mcp.http_reply import RETRY_AFTER, HttpReply
from gatewayd.mcp.messages import (
    HEADER_MISMATCH,
    SESSION_MISSING,
    SESSION_UNKNOWN,
    TOO_BUSY,
    USED_UP,
    Notification,
    ProtocolError,
    Request,
)
from gatewayd.mcp.request_head import RequestHead, asked_by

_USED_UP: Final = ProtocolError(USED_UP, "this token has used what it may in a day; it may again from 00:00 UTC on")


class McpStatistics(msgspec.Struct, frozen=True):
    """Counts of one handler, all of the same moment."""

    dispatch: DispatchStatistics
    sessions: SessionStatistics
    streams: int


@final
class McpHttp:
    """The handler. `drain` refuses new work and ends event streams; the server waits for calls in flight."""

    def __init__(
        self,
        dispatch: Dispatch,
        callers: headers.Callers,
        *,
        sessions: Sessions | None = None,
        bounds: McpBounds = MCP_BOUNDS,
        door: Door = OPEN,
    ) -> None:
        self._dispatch: Final = dispatch
        self._callers: Final = callers
        self._door: Final = door
        self._bounds: Final = bounds
        self._sessions: Final = sessions or Sessions(most=bounds.sessions, idle_s=bounds.session_idle_s)
        self._bodies: Final = BodyBudget(bounds.bodies_bytes)
        self._draining = False
        self._streams = 0

    def drain(self) -> None:
        """Refuses new sessions and calls from now on, and ends the event streams."""
        self._draining = True
        self._dispatch.drain()
        for session in self._sessions:
            if session.stream is not None:
                session.stream.cancel()

    def statistics(self) -> McpStatistics:
        """The counts now."""
        return McpStatistics(self._dispatch.statistics(), self._sessions.statistics(), self._streams)

    async def __call__(self, exchange: Exchange) -> None:
        head = exchange.head
        asked = head.facts
        if not isinstance(asked, RequestHead):
            asked = head.facts = asked_by(head, self._callers)
        reply = HttpReply(exchange)
        if asked.refuse is not None:
            await asked.refuse(reply)
            return
        asked = self._door.enter(asked)
        if asked == "waiting":
            await reply.empty(503, RETRY_AFTER)
        elif asked == "unauthorized":
            await reply.empty(401, (b"www-authenticate", b"Bearer"))
        elif isinstance(asked, UsedUp):
            await reply.refuse(429, _USED_UP, (b"retry-after", b"%d" % asked.retry_after_s))
        elif head.method == "POST":
            await self._post(exchange, asked, reply)
        elif head.method == "GET":
            await self._get(exchange, asked, reply)
        else:
            await self._delete(asked, reply)

    async def _post(self, exchange: Exchange, asked: RequestHead, reply: HttpReply) -> None:
        held = BodyShare(self._bodies)
        try:
            await self._message(exchange, asked, reply, held)
        finally:
            held.give_back()  # not earlier: until here something refers to the body

    async def _message(self, exchange: Exchange, asked: RequestHead, reply: HttpReply, held: BodyShare) -> None:
        body = await reply.body(held, self._bounds.body_s)
        if body is None:
            return
        message = messages.parse(body)
        if isinstance(message, ProtocolError):
            await reply.refuse(400, message)
        elif not asked.is_handshake:
            await self._stateless(message, exchange, asked, reply)
        elif isinstance(message, Request) and stateless.is_stateless(message, body):
            await reply.refuse(
                400,
                ProtocolError(HEADER_MISMATCH, "header `mcp-protocol-version` is missing or differs from the body", message.id),
            )
        else:
            await self._handshake(message, asked, reply)

    # -- stateless era

    async def _stateless(
        self, message: Request | Notification | messages.Response, exchange: Exchange, asked: RequestHead, reply: HttpReply
    ) -> None:
        if not isinstance(message, Request):
            await reply.empty(202)  # and dropped: an id chosen by a client must not cancel another's call
            return
        read = stateless.meta_of(message)
        if isinstance(read, ProtocolError):
            self._dispatch.count(message.method, "error")
            await reply.refuse(stateless.refused(read).status, read)
            return
        meta, params = read
        refusal = stateless.check_headers(message, meta, params, asked.found, asked.repeated)
        refusal = refusal or stateless.check_version(message, meta)
        if refusal is not None:
            self._dispatch.count(message.method, "error")
            await reply.refuse(400, refusal)
            return
        token_id = asked.token_id
        if params is None:
            answer = await stateless.answer(
                self._dispatch, message, meta, None, token_id=token_id, caller=None, notify=reply.notify
            )
            await reply.answer(answer.body, answer.status)
            return
        # This is all that distinguishes agents without sessions. None of it is proof, and behind a proxy the address is the
        # proxy's.
        name = None if isinstance(meta.client_info, msgspec.UnsetType) else meta.client_info.name
        caller = ("stateless", exchange.client, token_id, name)
        answered: stateless.StatelessAnswer | None = None
        # Cancels the work, not the reply: a write that is cut off makes its connection useless.
        call = trio.CancelScope()
        exchange.watch(call)
        try:
            with call:
                answered = await stateless.answer(
                    self._dispatch,
                    message,
                    meta,
                    params,
                    token_id=token_id,
                    caller=caller,
                    notify=reply.notify,
                    address=exchange.client,
                )
        finally:
            exchange.watch(None)
        if answered is not None:
            await reply.answer(answered.body, answered.status)

    # -- handshake era

    async def _handshake(self, message: Request | Notification | messages.Response, asked: RequestHead, reply: HttpReply) -> None:
        now_s = trio.current_time()
        id_ = message.id if isinstance(message, Request) else None
        session_id = asked.session_id
        session = None if session_id is None else self._found(session_id, asked, now_s)
        if isinstance(message, Request) and message.method == "initialize":
            await self._initialize(message, session, asked, reply)
        elif session is None:
            if isinstance(message, Request):
                self._dispatch.count(message.method, "error")
            if session_id is None:
                await reply.refuse(400, ProtocolError(SESSION_MISSING, "no `Mcp-Session-Id`; send `initialize` first", id_))
            else:
                await reply.refuse(404, ProtocolError(SESSION_UNKNOWN, "unknown or ended session; send `initialize` again", id_))
        elif isinstance(message, Request):
            answer = await handshake.answer(self._dispatch, session, message, session.id, reply.notify, reply.client)
            self._sessions.touch(session, trio.current_time())
            if answer is None:
                answer = messages.error(ProtocolError(messages.REQUEST_CANCELLED, "Request cancelled", id_))
            await reply.answer(answer, 200)
        else:
            if isinstance(message, Notification):
                handshake.notified(session, message)
            await reply.empty(202)

    def _found(self, session_id: str, asked: RequestHead, now_s: float) -> Session | None:
        """The session, where it is the caller's own: another token's is unknown."""
        session = self._sessions.find(session_id, now_s)
        if session is not None and self._door.binds and session.agent.token_id != asked.token_id:
            return None
        return session

    async def _initialize(self, request: Request, session: Session | None, asked: RequestHead, reply: HttpReply) -> None:
        if session is not None:  # who calls was settled by the first one (trap 22)
            body = handshake.welcome(self._dispatch, request.id, session.version)
            await reply.answer(body, 200, (b"mcp-session-id", session.id.encode()))
            return
        if self._draining:
            await self._refuse_session("the gateway is stopping", request, reply)
            return
        opened = handshake.initialize(self._dispatch, request, asked.token_id)
        if isinstance(opened, ProtocolError):
            await reply.refuse(200, opened)
            return
        peer, body = opened
        session = self._sessions.open(peer, trio.current_time())
        if session is None:
            await self._refuse_session("too many sessions are open", request, reply)
            return
        await reply.answer(body, 200, (b"mcp-session-id", session.id.encode()))

    async def _refuse_session(self, why: str, request: Request, reply: HttpReply) -> None:
        self._dispatch.count(request.method, "refused")
        data = {"retryAfterSeconds": RETRY_AFTER_S}
        error = ProtocolError(TOO_BUSY, f"{why}; try again later", request.id, data)
        await reply.refuse(503, error, RETRY_AFTER)

    async def _named_session(self, asked: RequestHead, reply: HttpReply) -> Session | None:
        if asked.session_id is None:
            await reply.refuse(400, ProtocolError(SESSION_MISSING, "no `Mcp-Session-Id`"))
            return None
        session = self._found(asked.session_id, asked, trio.current_time())
        if session is None:
            await reply.refuse(404, ProtocolError(SESSION_UNKNOWN, "unknown or ended session; send `initialize` again"))
        return session

    async def _delete(self, asked: RequestHead, reply: HttpReply) -> None:
        session = await self._named_session(asked, reply)
        if session is not None:
            self._sessions.end(session)
            await reply.empty(200)

    async def _get(self, exchange: Exchange, asked: RequestHead, reply: HttpReply) -> None:
        """An event stream that carries keep-alive comments only: the server sends no messages of its own. 405 would do for the
        protocol, but clients of 2025 open this right after `initialize`, and some log a refusal as a failure."""
        session = await self._named_session(asked, reply)
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
                await _keep_alive(exchange, reply, self._bounds.keep_alive_s)
                return  # the client is gone
            await reply.close_stream()
        finally:
            self._streams -= 1
            if session.stream is mine:
                session.stream = None
                self._sessions.touch(session, trio.current_time())


async def _keep_alive(exchange: Exchange, reply: HttpReply, every_s: float) -> None:
    """Returns when the client is gone."""
    while True:
        with trio.move_on_after(every_s):
            await exchange.gone()
            return
        try:
            await reply.comment()
        except Disconnected:
            return
