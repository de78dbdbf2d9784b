"""Reading and writing the bytes of one connection, which is dropped if the client reads nothing for too long.

It uses the socket directly: Trio's `send_all` executes a checkpoint even if the socket has room.
"""

import os
import select
from typing import Final, final

import trio

from gatewayd.fairness.unsent_budget import UnsentBudget

_JOINED_BYTES: Final = 128 * 1024  # a larger body is written separately, not copied behind its head


class ClientGone(ConnectionError):
    """Raised by reads and writes when the client has disconnected, or is treated as if it had."""


@final
class Wire:
    """One socket, which it closes. Any failure sets `is_gone`; every wait then raises ClientGone. It is a failure if the client
    reads nothing of a write for `send_s` seconds."""

    def __init__(self, stream: trio.SocketStream, unsent: UnsentBudget, send_s: float) -> None:
        self.is_gone = False
        """The client has disconnected, or is treated as if it had: nothing more is read or written. Once set it stays set."""
        self._stream: Final = stream
        self._fd: Final = stream.socket.fileno()
        self._unsent: Final = unsent
        self._send_s: Final = send_s
        self._out: list[bytes] = []

    async def read(self, at_most: int) -> bytes:
        """Waits for some bytes. Empty at the end of the client's side, which may still read."""
        while True:
            await trio.lowlevel.wait_readable(self._fd)
            try:
                return os.read(self._fd, at_most)
            except BlockingIOError:  # a spurious wake-up (select(2), Bugs) is no reason to drop the client
                continue
            except OSError as error:
                self.is_gone = True
                raise ClientGone from error

    def read_now(self, at_most: int) -> bytes | None:
        """The bytes that have arrived: None if there are none, empty at the end or after a disconnect."""
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
        """Queues bytes for the next `flush`, which writes them at once unless they are large."""
        self._out += pieces

    async def flush(self) -> None:
        """Writes what is queued. Raises ClientGone."""
        out, self._out = self._out, []
        if sum(map(len, out)) <= _JOINED_BYTES:
            out = [b"".join(out)]
        for data in out:
            await self.write(data)

    async def write(self, data: bytes) -> None:
        """Writes without a checkpoint while the socket's buffer has room. A write that is cancelled midway ends the
        connection."""
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
        """Closes our side of the connection; the client's bytes can still be read."""
        try:
            await self._stream.send_eof()
        except trio.BrokenResourceError as error:
            self.is_gone = True
            raise ClientGone from error

    async def close(self) -> None:
        """Closes the socket. The kernel may still send what is in its buffer."""
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
