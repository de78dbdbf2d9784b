"""Agents' calls at /mcp/<token>: who calls is decided here, what they may do by the project's engine (docs/control-plane.md).

It passes by quart. No path is logged: it holds a token.
"""

from functools import partial
from typing import Final

import h11
import trio

from gatewayd.control.console import Console
from gatewayd.control.engines.engine import EngineUnavailable, Serving
from gatewayd.control.engines.upstream import UpstreamConnection, UpstreamLost
from gatewayd.control.proxy import refusals
from gatewayd.control.proxy.agents import Admission
from gatewayd.control.proxy.asked import AgentHead, Wrong, agent_head
from gatewayd.control.proxy.look_up import look_up
from gatewayd.control.proxy.refusals import NO_MESSAGE, Message, ProxyRefusal, message_of, refusal_body
from gatewayd.control.proxy.use import seconds_left
from gatewayd.control.store.failures import StoreUnavailable
from gatewayd.control.web.call import Incoming
from gatewayd.http.exchange import Header
from gatewayd.http.open_exchange import HttpExchange
from gatewayd.http.wire import ClientGone

PREFIX: Final = "/mcp"
BODY_S: Final = 30.0
_TRIES: Final = 3
_WHOLE_BYTES: Final = 256 * 1024
"""An answer of known length up to this is sent in one piece; others pass through as they come."""
_PASSED_BACK: Final = frozenset({b"content-type", b"cache-control", b"x-accel-buffering", b"retry-after", b"allow"})
_JSON: Final = (b"content-type", b"application/json")
_REFUSALS: Final[dict[Wrong, ProxyRefusal]] = {
    "host": refusals.HOST,
    "origin": refusals.ORIGIN,
    "path": refusals.UNKNOWN,
    "method": refusals.METHOD,
    "no token": refusals.NO_TOKEN,
}


class _Refused(Exception):
    def __init__(self, refusal: ProxyRefusal) -> None:
        super().__init__(refusal.text)
        self.refusal: Final = refusal


async def mcp_proxy(console: Console, exchange: HttpExchange, _incoming: Incoming, stop: trio.Event) -> None:
    head = exchange.head
    asked = head.facts
    if not isinstance(asked, AgentHead):
        asked = head.facts = agent_head(head, console.settings)
    message = NO_MESSAGE
    try:
        if asked.wrong is not None:
            raise _Refused(_REFUSALS[asked.wrong])
        admission = await _admitted(console, asked.token)
        body, has_more = await _first_of_body(exchange)
        message = NO_MESSAGE if has_more else message_of(body)
        is_post = head.method == "POST"
        _count(console, admission, is_call=is_post and message.is_call)
        if is_post:
            await _forward(console, exchange, asked, admission, trio.CancelScope(), body, has_more=has_more)
        else:
            await _stream(console, exchange, asked, admission, stop)
    except _Refused as refused:
        await _refuse(exchange, refused.refusal, message)


async def _admitted(console: Console, token: str) -> Admission:
    """Raises _Refused."""
    try:
        admission = await console.agents.admit(token, partial(look_up, console, token))
    except StoreUnavailable:
        raise _Refused(refusals.STORE) from None
    if admission is None:
        raise _Refused(refusals.UNKNOWN)
    now = console.agents.project(admission.project_id)
    if now.is_paused:
        raise _Refused(refusals.PAUSED)
    if now.is_cut:
        raise _Refused(refusals.CUT)
    if now.is_unsealable:
        raise _Refused(refusals.CREDENTIAL)
    if now.wanted is None:
        raise _Refused(refusals.NO_DATABASE)
    return admission


def _count(console: Console, admission: Admission, *, is_call: bool) -> None:
    """Raises _Refused for a call beyond what the token may make, and once it has read what it may read."""
    use, project_id, token_id = console.agents.use, admission.project_id, admission.token_id
    now_ms, calls_left = console.now_ms(), admission.calls_left
    if is_call and calls_left is not None and use.calls(project_id, token_id, admission.day) >= calls_left:
        raise _Refused(refusals.CALLS_USED_UP.after(seconds_left(now_ms)))
    if is_call and admission.has_read_all:
        raise _Refused(refusals.ROWS_USED_UP.after(seconds_left(now_ms)))
    use.count(project_id, token_id, now_ms, is_call=is_call)


async def _first_of_body(exchange: HttpExchange) -> tuple[bytes, bool]:
    with trio.move_on_after(BODY_S):
        return await exchange.read()
    raise ClientGone


async def _stream(console: Console, exchange: HttpExchange, asked: AgentHead, admission: Admission, stop: trio.Event) -> None:
    """A GET is open for hours and carries nothing that is missed: the drain ends it at once."""
    stream, refused = trio.CancelScope(), None
    async with trio.open_nursery() as nursery:

        async def drain() -> None:
            await stop.wait()
            stream.cancel()

        nursery.start_soon(drain)
        try:
            await _forward(console, exchange, asked, admission, stream)
        except _Refused as refusal:
            refused = refusal
        nursery.cancel_scope.cancel()
    if refused is not None:
        raise refused


async def _forward(
    console: Console,
    exchange: HttpExchange,
    asked: AgentHead,
    admission: Admission,
    stream: trio.CancelScope,
    body: bytes = b"",
    *,
    has_more: bool = False,
) -> None:
    """Cancelling `stream` ends an answer that comes in pieces, in order. Raises _Refused while nothing was answered."""
    for _ in range(_TRIES):
        serving = await _serving(console, admission)
        head = asked.head + serving.upstream.secret_line + b"x-gateway-token-id: " + admission.token_id.encode() + b"\r\n"
        with serving, trio.CancelScope() as call:
            try:
                connection = await serving.upstream.connection(head)
            except UpstreamLost:  # it has just ended, which is about to be noticed
                await trio.sleep(0.05)
                continue
            is_whole = False
            try:
                await _send(exchange, connection, head, body, has_more=has_more)
                exchange.watch(call)
                is_whole = await _answer(exchange, connection, stream)
            finally:
                exchange.watch(None)
                if is_whole:
                    serving.upstream.give_back(connection)
                else:
                    connection.close()
        return
    raise _Refused(refusals.UNAVAILABLE.after(1))


async def _serving(console: Console, admission: Admission) -> Serving:
    """Raises _Refused."""
    wanted = console.agents.project(admission.project_id).wanted
    if wanted is None:
        raise _Refused(refusals.NO_DATABASE)
    try:
        return await console.engines.serving(wanted)
    except EngineUnavailable as unavailable:
        raise _Refused(refusals.UNAVAILABLE.because(str(unavailable)).after(unavailable.retry_after_s)) from None


async def _send(exchange: HttpExchange, connection: UpstreamConnection, head: bytes, body: bytes, *, has_more: bool) -> None:
    """The request. An engine that refuses a body before it has read all of it has answered: the rest is not sent."""
    connection.head = head
    stated = exchange.body_bytes
    try:
        if not has_more:
            await connection.write(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body))
            return
        framing = b"transfer-encoding: chunked" if stated is None else b"content-length: %d" % stated
        await connection.write(b"%b%b\r\n\r\n" % (head, framing))
        with trio.move_on_after(BODY_S):
            while True:
                if body:
                    await connection.write(body if stated is not None else b"%x\r\n%b\r\n" % (len(body), body))
                if not has_more:
                    break
                body, has_more = await exchange.read()
            if stated is None:
                await connection.write(b"0\r\n\r\n")
            return
    except UpstreamLost:
        return
    raise ClientGone  # it sends too slowly


async def _answer(exchange: HttpExchange, connection: UpstreamConnection, stream: trio.CancelScope) -> bool:
    """Whether the engine's answer was read to its end, so that its connection can be used again. Raises _Refused."""
    has_begun = False
    try:
        plain = await connection.plain()
        if plain is not None:
            has_begun = True
            await exchange.answer(*plain)
            return True
        response = await connection.next()
        assert isinstance(response, h11.Response)
        headers, length = _headers(response)
        if length is not None and length <= _WHOLE_BYTES:
            body = await _whole(connection)
            has_begun = True
            await exchange.answer(response.status_code, body, _beside_json(headers) if body else headers)
            return True
        framing: list[Header] = [] if length is None else [(b"content-length", b"%d" % length)]
        piece = await connection.next()
        has_begun = True
        await exchange.start(response.status_code, [*headers, *framing])
        with stream:
            while isinstance(piece, h11.Data):
                await exchange.write(bytes(piece.data))
                piece = await connection.next()
        await exchange.end()
        return not stream.cancelled_caught
    except UpstreamLost:
        if not has_begun:
            raise _Refused(refusals.DISCONNECTED) from None
        raise ClientGone from None  # what was sent of the answer cannot be completed


def _headers(response: h11.Response) -> tuple[list[Header], int | None]:
    """What the client gets of them, and the length of the body where it is known."""
    headers: list[Header] = []
    length = None
    for name, value in response.headers:
        if name in _PASSED_BACK or name.startswith(b"mcp-"):
            headers.append((name, value))
        elif name == b"content-length":
            length = int(value)
    return headers, length


def _beside_json(headers: list[Header]) -> list[Header]:
    """`exchange.answer` says itself that a body is JSON, and is much quicker where there is nothing else to say."""
    return [header for header in headers if header != _JSON]


async def _whole(connection: UpstreamConnection) -> bytes:
    pieces = []
    while isinstance(event := await connection.next(), h11.Data):
        pieces.append(bytes(event.data))
    return b"".join(pieces)


async def _refuse(exchange: HttpExchange, refusal: ProxyRefusal, message: Message) -> None:
    await exchange.answer(refusal.status, refusal_body(refusal, message), refusal.headers)
