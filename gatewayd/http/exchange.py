"""The interface of HTTP for handlers: one request to read and to answer. `http/open_exchange.py` implements it.

It is not ASGI, whose dictionaries, two messages per answer and checks cost as much as the rest of a call's protocol (PROFILE.md).
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol, final
from urllib.parse import unquote

import trio

Header = tuple[bytes, bytes]
# What an exchange raises from each write once the client is gone.
Disconnected: Final = OSError


class BodyTooLarge(Exception):
    """The body is longer than the handler accepts, or its Content-Length says so. The rest of it is not read."""


class BodyUnwelcome(Exception):
    """The budget has no room for a body of this size now. The rest of it is not read."""


class BodyTooSlow(Exception):
    """The body did not arrive in time."""


@final
class HttpHead:
    """The request line and the headers, in order, with names in lower case. Content-Length is left out: it only frames the body,
    which is the connection's task, and otherwise most heads of a connection are equal."""

    __slots__ = ("facts", "headers", "http_version", "method", "path", "target")

    def __init__(self, method: str, target: bytes, http_version: str, headers: Sequence[Header]) -> None:
        self.method: Final = method
        self.target: Final = target
        self.path: Final = unquote(target.partition(b"?")[0].decode("ascii"))
        self.http_version: Final = http_version
        self.headers: Final = headers
        self.facts: object = None
        """For the handler: values derived from this head alone. A repeated head is the same object and so keeps them."""


class Exchange(Protocol):
    """One request. The handler reads the body if it wants it, then calls `answer`, or `start`, `write` and `end`. Each write
    raises `Disconnected` once the client has disconnected, and waits only while the client reads too slowly."""

    @property
    def head(self) -> HttpHead:
        """The request line and the headers."""

    @property
    def client(self) -> str:
        """The client's address; empty if the socket has none."""

    async def body(self, at_most: int, within_s: float, grows: Callable[[int], bool] = lambda size: True) -> bytes:
        """Reads the whole body, of at most `at_most` bytes, within `within_s` seconds. May be called once.

        `grows` is called for each further piece with the body's size, and returns whether the body may have that size. No
        checkpoint if the whole body has arrived.

        *Raises* BodyTooLarge, BodyTooSlow, BodyUnwelcome or Disconnected.
        """

    async def gone(self) -> None:
        """Returns when the client has disconnected. For use after the body."""

    def watch(self, call: trio.CancelScope | None) -> None:
        """Cancels `call` some tenths of a second after the client disconnects, until this is called with None. Much cheaper than
        a task that awaits `gone`. For use after the body."""

    async def answer(self, status: int, body: bytes, headers: Sequence[Header] = ()) -> None:
        """Sends the whole answer in one write. A body must be JSON."""

    async def start(self, status: int, headers: Sequence[Header]) -> None:
        """Begins an answer in pieces. The head is sent with the first piece."""

    async def write(self, data: bytes) -> None:
        """Sends one more piece of the answer."""

    async def end(self, data: bytes = b"") -> None:
        """Sends the last piece of the answer."""
