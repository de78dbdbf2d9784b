"""The seam to HTTP: one request to read and to answer, as the protocol layer sees it. `http/open_exchange.py` gives it.

Not ASGI: its dictionaries, two messages an answer and their checks cost as much as the rest of a call's protocol (PROFILE.md).
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol, final
from urllib.parse import unquote

import trio

Header = tuple[bytes, bytes]
# What an exchange raises from each write once the client is gone.
Disconnected: Final = OSError


class BodyTooLarge(Exception):
    """The body is, or says that it is, longer than asked for. The rest of it is not read."""


class BodyUnwelcome(Exception):
    """There is no room for a body of this size just now. The rest of it is not read."""


class BodyTooSlow(Exception):
    """The body did not arrive in time."""


@final
class HttpHead:
    """A request's line and headers, names in lower case and in their order. Content-Length is left out: it frames the body, which
    is the connection's matter, and is all that differs between most requests of a connection."""

    __slots__ = ("facts", "headers", "http_version", "method", "path", "target")

    def __init__(self, method: str, target: bytes, http_version: str, headers: Sequence[Header]) -> None:
        self.method: Final = method
        self.target: Final = target
        self.path: Final = unquote(target.partition(b"?")[0].decode("ascii"))
        self.http_version: Final = http_version
        self.headers: Final = headers
        self.facts: object = None
        """For the handler: what follows from this head alone. A client that repeats its head is given the same object."""


class Exchange(Protocol):
    """Exactly one of `answer` and `start` … `end` is called, after what is read of the body. Each write raises `Disconnected`
    when the client has disconnected, and waits only while the client reads too slowly."""

    @property
    def head(self) -> HttpHead: ...

    @property
    def client(self) -> str:
        """The address of the other side; empty where the socket has none."""

    async def body(self, at_most: int, within_s: float, grows: Callable[[int], bool] = lambda size: True) -> bytes:
        """The whole body, once; no checkpoint when all of it is here. `grows` is asked whether the body may have so many bytes
        at each piece of one that comes in several. Raises BodyTooLarge, BodyTooSlow, BodyUnwelcome or Disconnected."""

    async def gone(self) -> None:
        """Returns when the client has disconnected. For use after the body."""

    def watch(self, call: trio.CancelScope | None) -> None:
        """From now on, until it is called with None, `call` is cancelled some tenths of a second after the client has
        disconnected. Much cheaper than a task that awaits `gone`. For use after the body."""

    async def answer(self, status: int, body: bytes, headers: Sequence[Header] = ()) -> None:
        """The whole answer in one write; a body is JSON."""

    async def start(self, status: int, headers: Sequence[Header]) -> None:
        """The head of an answer in pieces; it travels with the first of them."""

    async def write(self, data: bytes) -> None:
        """One more piece of the answer."""

    async def end(self, data: bytes = b"") -> None:
        """The last piece of the answer."""
