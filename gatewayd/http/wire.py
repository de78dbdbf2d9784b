"""The bytes of one connection: read when some are here, written while there is room; dropped when the client reads none of them
in time.

Straight on the descriptor: Trio's `send_all` passes a checkpoint even when the socket has room.
"""

import os
import select
from typing import Final, final

import trio

from gatewayd.fairness.unsent_budget import UnsentBudget

_JOINED_BYTES: Final = 128 * 1024  # a larger body is written behind its head instead of copied beside it


class ClientGone(ConnectionError):
    """Raised by what reads and writes when the client has disconnected, or is treated as if it had."""


@final
class Wire:
    """Of one socket, which it closes. Any failure on it sets `is_gone`; whatever waits then raises ClientGone. A write of which
    the client takes nothing for `send_s` seconds is such a failure."""

    def __init__(self, stream: trio.SocketStream, unsent: UnsentBudget, send_s: float) -> None:
        self.is_gone = False
        """The client has disconnected, or is treated as if it had: nothing more is read or written. Never taken back."""
        self._stream: Final = stream
        self._fd: Final = stream.socket.fileno()
        self._unsent: Final = unsent
        self._send_s: Final = send_s
        self._out: list[bytes] = []

    async def read(self, at_most: int) -> bytes:
        """Waits for some bytes. Empty at the end of the client's side; the client may still read."""
        while True:
            await trio.lowlevel.wait_readable(self._fd)
            try:
                return os.read(self._fd, at_most)
            except BlockingIOError:  # woken for nothing, as Linux may (select(2), Bugs): no reason to drop the client
                continue
            except OSError as error:
                self.is_gone = True
                raise ClientGone from error

    def read_now(self, at_most: int) -> bytes | None:
        """What has arrived; None when nothing has, empty at the end and when the client has disconnected."""
        try:
            return os.read(self._fd, at_most)
        except BlockingIOError:
            return None
        except OSError:
            self.is_gone = True
            return b""

    def has_left(self) -> bool:
        """Whether the client has closed its side. Nothing is read."""
        poll = select.poll()
        poll.register(self._fd, select.POLLRDHUP)
        return bool(poll.poll(0))

    def queue(self, *pieces: bytes) -> None:
        """Written by the next `flush`, in one write unless they are large."""
        self._out += pieces

    async def flush(self) -> None:
        """Writes what is queued. Raises ClientGone."""
        out, self._out = self._out, []
        if sum(map(len, out)) <= _JOINED_BYTES:
            out = [b"".join(out)]
        for data in out:
            await self.write(data)

    async def write(self, data: bytes) -> None:
        """Straight to the socket, and no checkpoint, while its buffer has room. A write cut off midway ends the connection."""
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._fd, left) :]
            except BlockingIOError:
                await self._room(len(data))
            except OSError as error:
                self.is_gone = True
                raise ClientGone from error

    async def end(self) -> None:
        """Closes our side of the connection; the client can still be read."""
        try:
            await self._stream.send_eof()
        except trio.BrokenResourceError as error:
            self.is_gone = True
            raise ClientGone from error

    async def close(self) -> None:
        """Closes at once. What the kernel has not sent yet it may still send."""
        await trio.aclose_forcefully(self._stream)

    async def _room(self, held: int) -> None:
        ready = False
        wait = trio.CancelScope(deadline=trio.current_time() + self._send_s)
        self._unsent.begin(wait, held)
        try:
            with wait:
                await trio.lowlevel.wait_writable(self._fd)
                ready = True
        finally:
            self._unsent.end(wait)
            if not ready:
                self.is_gone = True
        if not ready:
            raise ClientGone
