"""One HTTP request's body in and answer out (docs/mcp.md, HTTP; decision 7).

A reply is JSON until a message has to go ahead of it; then it becomes an event stream and the answer is its last event.
"""

import contextlib
from typing import Final, final

from gatewayd.fairness.body_budget import BodyShare
from gatewayd.http.exchange import BodyTooLarge, BodyTooSlow, BodyUnwelcome, Disconnected, Exchange, Header
from gatewayd.mcp import messages
from gatewayd.mcp.dispatch import RETRY_AFTER_S
from gatewayd.mcp.messages import INVALID_REQUEST, MESSAGE_BYTES, TOO_BUSY, ProtocolError

RETRY_AFTER: Final[Header] = (b"retry-after", b"%d" % RETRY_AFTER_S)

_TOO_LARGE: Final = ProtocolError(INVALID_REQUEST, f"the body is larger than {MESSAGE_BYTES} bytes")
_TOO_SLOW: Final = ProtocolError(INVALID_REQUEST, "the body did not arrive in time")
_UNWELCOME: Final = ProtocolError(
    TOO_BUSY, "too many large bodies are on their way; try again later", data={"retryAfterSeconds": RETRY_AFTER_S}
)
_STREAM: Final[list[Header]] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


@final
class HttpReply:
    """Exactly one of `answer`, `refuse`, `empty` or `open_stream` … `close_stream` is called."""

    __slots__ = ("_exchange", "_streaming")

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._streaming = False

    @property
    def client(self) -> str:
        """The client's address; empty where the socket has none."""
        return self._exchange.client

    async def body(self, held: BodyShare, within_s: float) -> bytes | None:
        """The request's whole body, or None when it was refused (413, 408, 503) or the client left; the reply is sent then."""
        try:
            body = await self._exchange.body(MESSAGE_BYTES, within_s, held.grows)
            if held.grows(len(body)):
                return body
            await self.refuse(503, _UNWELCOME, RETRY_AFTER)
        except BodyUnwelcome:
            await self.refuse(503, _UNWELCOME, RETRY_AFTER)
        except BodyTooLarge:
            await self.refuse(413, _TOO_LARGE)
        except BodyTooSlow:
            await self.refuse(408, _TOO_SLOW)
        except Disconnected:
            pass
        return None

    async def answer(self, body: bytes, status: int, *extra: Header) -> None:
        """The answer: JSON with `status`, or the last event of a stream."""
        if self._streaming:
            await self._exchange.end(_event(body))
        else:
            await self._exchange.answer(status, body, extra)

    async def refuse(self, status: int, error: ProtocolError, *extra: Header) -> None:
        """A JSON-RPC error with `status`."""
        await self.answer(messages.error(error), status, *extra)

    async def empty(self, status: int, *extra: Header) -> None:
        """An answer without a body."""
        await self._exchange.answer(status, b"", extra)

    async def notify(self, message: bytes) -> None:
        """One message ahead of the answer. Lost when the client has disconnected; the call is told of that in another way."""
        with contextlib.suppress(Disconnected):
            if not self._streaming:
                await self._open()
            await self._exchange.write(_event(message))

    async def open_stream(self) -> None:
        """Begins an event stream."""
        await self._open()
        await self.comment()

    async def comment(self) -> None:
        """A keep-alive that clients skip; it also carries the head out when nothing else does."""
        await self._exchange.write(b":\n\n")

    async def close_stream(self) -> None:
        """The end of an event stream."""
        await self._exchange.end()

    async def _open(self) -> None:
        self._streaming = True
        await self._exchange.start(200, _STREAM)


def _event(message: bytes) -> bytes:
    # JSON encoders escape line ends, so one data line holds it.
    return b"event: message\ndata: %s\n\n" % message
