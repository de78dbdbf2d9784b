"""MCP over stdin and stdout: one JSON object a line (docs/mcp.md, stdio). Both eras, by each message's `_meta`.

Nothing but protocol reaches stdout: the streams move to private descriptors, and what libraries or children print to descriptor
1 goes to stderr. Imports no HTTP: start-up time is the point of this transport.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Final, final

import trio

from gatewayd.mcp import messages
from gatewayd.mcp.dispatch import Dispatch
from gatewayd.mcp.eras import handshake, stateless
from gatewayd.mcp.eras.handshake import Peer
from gatewayd.mcp.messages import (
    INVALID_REQUEST,
    MESSAGE_BYTES,
    TOO_BUSY,
    Id,
    Notification,
    ProtocolError,
    Request,
)

CALLS: Final = 1024  # requests in progress; `dispatch.py` limits how many of them run
UNREAD_BYTES: Final = 16 * 1024 * 1024  # of answers that the client has not read; above it we stop reading from it
_READ_BYTES: Final = 64 * 1024
_LAST_WRITE_S: Final = 1.0
_CALLER: Final = None  # the only caller, so it may use all slots


@contextlib.contextmanager
def private_descriptors() -> Iterator[tuple[int, int]]:
    """Private copies of descriptors 0 and 1; 0 becomes /dev/null and 1 becomes stderr meanwhile. Puts the blocking mode back:
    `O_NONBLOCK` sits on the open file, which a parent's terminal shares."""
    blocking = [os.get_blocking(0), os.get_blocking(1)]
    reader, writer = os.dup(0), os.dup(1)  # not inheritable by children (PEP 446)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    try:
        yield reader, writer
    finally:
        for descriptor, was_blocking, copy in ((0, blocking[0], reader), (1, blocking[1], writer)):
            with contextlib.suppress(OSError):
                os.set_blocking(copy, was_blocking)
            with contextlib.suppress(OSError):
                os.dup2(copy, descriptor)
                os.close(copy)


async def serve_stdio(
    dispatch: Dispatch,
    *,
    stop: trio.Event,
    grace_s: float,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serves until stdin ends, stdout breaks, or `stop`. End of input cancels the calls in flight at once; `stop` gives them
    `grace_s`. Returns normally in each case."""
    with private_descriptors() as (reader, writer):
        async with trio.lowlevel.FdStream(os.dup(reader)) as source, trio.lowlevel.FdStream(os.dup(writer)) as sink:
            task_status.started()
            await Conversation(dispatch, source, sink).run(stop, grace_s)


@final
class Conversation:
    """One client on a pair of byte streams. The reader is never held up by a call."""

    def __init__(self, dispatch: Dispatch, source: trio.abc.ReceiveStream, sink: trio.abc.SendStream) -> None:
        self._dispatch: Final = dispatch
        self._source: Final = source
        self._sink: Final = sink
        self._peer = Peer()
        self._is_initialized = False
        self._stateless: dict[Id, trio.CancelScope] = {}
        self._calls = 0
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._writing = trio.CancelScope(shield=True)  # a line is never cut, unless the client reads nothing for _LAST_WRITE_S
        self._is_over = False
        self._changed = trio.Event()  # replaced whenever calls, unsent lines or the end change
        self._ended = trio.CancelScope()

    async def run(self, stop: trio.Event, grace_s: float) -> None:
        """Reads and answers until the end of input, a broken stdout, or `stop`."""
        async with trio.open_nursery() as writer:
            writer.start_soon(self._write)
            try:
                with self._ended:
                    async with trio.open_nursery() as calls:
                        calls.start_soon(self._stop_after, stop, grace_s)
                        await self._read(calls)
                        calls.cancel_scope.cancel()
            finally:
                self._is_over = True
                self._wake()
                self._writing.deadline = trio.current_time() + _LAST_WRITE_S

    async def _stop_after(self, stop: trio.Event, grace_s: float) -> None:
        await stop.wait()
        self._dispatch.drain()
        with trio.move_on_after(grace_s):
            while self._calls or self._unsent_bytes:
                await self._changed.wait()
        self._ended.cancel()

    # -- reading

    async def _read(self, nursery: trio.Nursery) -> None:
        """Line by line until the end of input; an unterminated tail is dropped."""
        line = bytearray()
        is_overlong = False
        while data := await self._source.receive_some(_READ_BYTES):
            *whole, rest = bytes(data).split(b"\n")
            for piece in whole:
                line += piece
                if is_overlong or len(line) > MESSAGE_BYTES:
                    await self._say(
                        messages.error(ProtocolError(INVALID_REQUEST, f"a line is longer than {MESSAGE_BYTES} bytes"))
                    )
                elif line.strip():
                    await self._take(bytes(line), nursery)
                line = bytearray()
                is_overlong = False
            if not is_overlong:
                line += rest
                if len(line) > MESSAGE_BYTES:
                    is_overlong, line = True, bytearray()

    async def _take(self, line: bytes, nursery: trio.Nursery) -> None:
        message = messages.parse(line)
        match message:
            case ProtocolError():
                await self._say(messages.error(message))
            case Notification():
                self._notified(message)
            case Request(method="tools/call"):
                if self._calls >= CALLS:
                    await self._say(messages.error(ProtocolError(TOO_BUSY, "too many calls are in flight", message.id)))
                    return
                self._calls += 1
                nursery.start_soon(self._call, message)
            case Request():
                answer = await self._answer(message)
                if answer is not None:
                    await self._say(answer)

    def _notified(self, notification: Notification) -> None:
        handshake.notified(self._peer, notification)
        if notification.method == "notifications/cancelled":
            scope = self._stateless.get(messages.cancelled_id(notification) or "")
            if scope is not None:
                scope.cancel()

    async def _call(self, request: Request) -> None:
        try:
            answer = await self._answer(request)
            if answer is not None:
                await self._say(answer)
        finally:
            self._calls -= 1
            if not self._calls:
                self._wake()

    async def _answer(self, request: Request) -> bytes | None:
        """None when the client has cancelled the request: it then expects no answer."""
        if stateless.is_stateless(request, request.params):
            return await self._answer_stateless(request)
        if request.method == "initialize":
            if self._is_initialized:  # who calls was settled by the first one (trap 22)
                return handshake.welcome(self._dispatch, request.id, self._peer.version)
            opened = handshake.initialize(self._dispatch, request, None)
            if isinstance(opened, ProtocolError):
                return messages.error(opened)
            peer, body = opened
            self._peer.version, self._peer.agent, self._is_initialized = peer.version, peer.agent, True
            return body
        return await handshake.answer(self._dispatch, self._peer, request, _CALLER, self._say)

    async def _answer_stateless(self, request: Request) -> bytes | None:
        read = stateless.meta_of(request)
        if isinstance(read, ProtocolError):
            return messages.error(read)
        meta, params = read
        refusal = stateless.check_version(request, meta)
        if refusal is None and request.id in self._stateless:
            refusal = ProtocolError(INVALID_REQUEST, "a request with this `id` is still in flight", request.id)
        if refusal is not None:
            return messages.error(refusal)
        scope = self._stateless[request.id] = trio.CancelScope()
        try:
            with scope:
                reply = await stateless.answer(
                    self._dispatch, request, meta, params, token_id=None, caller=_CALLER, notify=self._say
                )
                return reply.body
        finally:
            del self._stateless[request.id]
        return None

    # -- writing

    async def _say(self, message: bytes) -> None:
        """Hands one line to the writer. Waits only while the client leaves UNREAD_BYTES unread: a reader held up by the first
        full pipe would deadlock with a client that writes all before it reads."""
        while self._unsent_bytes > UNREAD_BYTES:
            await self._changed.wait()
        self._unsent.append(message)
        self._unsent_bytes += len(message) + 1
        if len(self._unsent) == 1:
            self._wake()

    async def _write(self) -> None:
        """Writes all queued lines in one write each time, until the conversation is over and everything is written."""
        with self._writing:
            try:
                while True:
                    while not self._unsent:
                        if self._is_over:
                            return
                        await self._changed.wait()
                    lines = b"\n".join([*self._unsent, b""])
                    self._unsent.clear()
                    await self._sink.send_all(lines)
                    self._unsent_bytes -= len(lines)
                    self._wake()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self._ended.cancel()  # stdout is closed: end as at the end of stdin

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
