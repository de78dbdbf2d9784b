"""One HTTP request's body in and answer out, as ASGI events (mcp.md, HTTP; contract 7 for the limits).

A reply is JSON until a message has to go ahead of it; then it becomes an event stream and the answer is its last event.
"""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, final

import trio

from gatewayd.mcp import messages
from gatewayd.mcp.messages import INVALID_REQUEST, MESSAGE_BYTES, ProtocolError

BODY_S: Final = 30.0

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]
# What ASGI servers raise from `send` once the client is gone.
Disconnected: Final = OSError

_TOO_LARGE: Final = ProtocolError(INVALID_REQUEST, f"the body is larger than {MESSAGE_BYTES} bytes")
_TOO_SLOW: Final = ProtocolError(INVALID_REQUEST, f"the body did not arrive within {BODY_S:.0f} s")
_STREAM: Final[list[Header]] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


@final
class Reply:
    """Exactly one of `answer`, `refuse`, `empty` or `open_stream` … `close_stream` is called."""

    __slots__ = ("_send", "_streaming")

    def __init__(self, send: Send) -> None:
        self._send = send
        self._streaming = False

    async def answer(self, body: bytes, status: int, *extra: Header) -> None:
        if self._streaming:
            await self._event(body, more=False)
            return
        head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *extra]
        await self._send({"type": "http.response.start", "status": status, "headers": head})
        await self._send({"type": "http.response.body", "body": body})

    async def refuse(self, status: int, error: ProtocolError, *extra: Header) -> None:
        await self.answer(messages.error(error), status, *extra)

    async def empty(self, status: int, *extra: Header) -> None:
        head = [(b"content-length", b"0"), *extra]
        await self._send({"type": "http.response.start", "status": status, "headers": head})
        await self._send({"type": "http.response.body", "body": b""})

    async def notify(self, message: bytes) -> None:
        """One message ahead of the answer. A client that left misses it; the call learns of that elsewhere."""
        with contextlib.suppress(Disconnected):
            if not self._streaming:
                await self._open()
            await self._event(message, more=True)

    async def open_stream(self) -> None:
        await self._open()
        await self.comment()

    async def comment(self) -> None:
        """A keep-alive that clients skip; it also carries the head out when nothing else does."""
        await self._send({"type": "http.response.body", "body": b":\n\n", "more_body": True})

    async def close_stream(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _open(self) -> None:
        self._streaming = True
        await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM})

    async def _event(self, message: bytes, *, more: bool) -> None:
        # JSON encoders escape line ends, so one data line holds it.
        await self._send({"type": "http.response.body", "body": b"event: message\ndata: %s\n\n" % message, "more_body": more})


async def read_body(receive: Receive, content_length: bytes | None, reply: Reply) -> bytes | None:
    """The whole body, or None when it was refused (413, 408) or the client left; the reply is sent then."""
    if content_length is not None and content_length.isdigit() and int(content_length[:20]) > MESSAGE_BYTES:
        await reply.refuse(413, _TOO_LARGE)
        return None
    pieces: list[bytes] = []
    size = 0
    with trio.move_on_after(BODY_S) as limit:
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                return None
            piece: bytes = event.get("body", b"")
            if piece:
                size += len(piece)
                if size > MESSAGE_BYTES:
                    break
                pieces.append(piece)
            if not event.get("more_body", False):
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    await reply.refuse(*((408, _TOO_SLOW) if limit.cancelled_caught else (413, _TOO_LARGE)))
    return None
