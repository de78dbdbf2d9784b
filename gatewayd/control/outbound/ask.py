"""One HTTP request to an address that a person gave: to the very address that was checked, no redirects, little time, few bytes.

The name is resolved once, here; the connection goes to what was found, while Host and the certificate's name stay those of
the URL. So a name that answers otherwise a moment later (DNS rebinding) changes nothing. Proxies of the environment are not
used: they would resolve the name again.
"""

import ipaddress
import socket
import ssl
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, final
from urllib.parse import SplitResult, urlsplit, urlunsplit

import h11
import httpx
import msgspec
import trio

from gatewayd import __version__
from gatewayd.control.outbound.addresses import Network, is_named, may_reach

ASK_S: Final = 10.0
"""For the whole of it: resolving, connecting, sending, and reading what is wanted of the answer."""
URL_CHARACTERS: Final = 2000
_HEAD_BYTES: Final = 32 * 1024
_READ_BYTES: Final = 16 * 1024


class Unreachable(Exception):
    """There is no answer. The text names no address: its path may hold a key."""


class Answered(msgspec.Struct, frozen=True):
    status: int
    body: bytes


def url_problem(url: str) -> str | None:
    """What keeps a text from being an address that may be asked; where it leads is checked each time that it is."""
    parts = _parts(url)
    if parts is None or not parts.hostname or parts.scheme not in ("https", "http"):
        return "this is no address; expected one like https://hooks.example.com/path"
    if len(url) > URL_CHARACTERS or not url.isascii() or not url.isprintable() or " " in url:
        return f"expected at most {URL_CHARACTERS} characters of ASCII without spaces; encode others"
    if parts.username is not None or parts.password is not None:
        return "expected an address without user and password"
    if parts.fragment:
        return "expected an address without a fragment"
    return None


@final
class Outbound:
    """Any number of requests may run at once. `networks`: those beside the public internet that may be asked.

    `tls` and `ask_s` are for tests: an authority that the machine does not know, and no real seconds.
    """

    def __init__(self, networks: Sequence[Network], tls: ssl.SSLContext | None = None, ask_s: float = ASK_S) -> None:
        self._networks: Final = tuple(networks)
        self._tls: Final = tls
        self._ask_s: Final = ask_s

    async def ask(
        self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None, *, most_bytes: int = 0
    ) -> Answered:
        """The status, and the first `most_bytes` of the body. Raises Unreachable, at the latest after ASK_S seconds."""
        wrong = url_problem(url)
        if wrong is not None:
            raise Unreachable(wrong)
        try:
            with trio.fail_after(self._ask_s):
                return await self._asked(method, urlsplit(url), body, headers or {}, most_bytes)
        except trio.TooSlowError:
            raise Unreachable(f"no answer within {self._ask_s:g} s") from None
        except (OSError, trio.BrokenResourceError, h11.ProtocolError, UnicodeError) as failure:
            raise Unreachable(f"the connection failed ({type(failure.__cause__ or failure).__name__})") from None

    async def _asked(self, method: str, parts: SplitResult, body: bytes, headers: Mapping[str, str], most_bytes: int) -> Answered:
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        address = await self._resolved(host, port)
        if parts.scheme == "http" and not is_named(address, self._networks):
            raise Unreachable("expected https: http is for networks that CONTROL_OUTBOUND_NETWORKS names")
        target = urlunsplit(("", "", parts.path or "/", parts.query, ""))
        sent = {"Host": parts.netloc, "User-Agent": f"gatewayd/{__version__}", "Accept-Encoding": "identity"}
        sent |= {"Connection": "close", "Content-Length": str(len(body))} | dict(headers)
        stream: trio.abc.Stream = await trio.open_tcp_stream(address, port)
        if parts.scheme == "https":
            stream = trio.SSLStream(stream, self._tls or _tls(), server_hostname=host, https_compatible=True)
        async with stream:
            parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
            request = h11.Request(method=method, target=target, headers=list(sent.items()))
            events: tuple[h11.Event, ...] = (request, h11.Data(data=body), h11.EndOfMessage())
            await stream.send_all(b"".join(parser.send(event) or b"" for event in events))
            return await _answered(stream, parser, most_bytes)

    async def _resolved(self, host: str, port: int) -> str:
        """The first address of the name. All of them must be allowed: a name that has both kinds is somebody's try."""
        try:
            found = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise Unreachable("the name of the host cannot be resolved") from None
        addresses = [str(each[4][0]) for each in found]
        if not addresses or not all(may_reach(each, self._networks) for each in addresses):
            raise Unreachable("the host is not on the public internet, nor in CONTROL_OUTBOUND_NETWORKS")
        return str(ipaddress.ip_address(addresses[0]))


async def _answered(stream: trio.abc.Stream, parser: h11.Connection, most_bytes: int) -> Answered:
    """Reads no further than it is asked to: an answer that nobody wants the body of may be endless."""
    status, read = 0, bytearray()
    while True:
        match parser.next_event():
            case h11.NEED_DATA:
                parser.receive_data(bytes(await stream.receive_some(_READ_BYTES)))
            case h11.Response(status_code=status):
                if not most_bytes:
                    return Answered(status, b"")
            case h11.Data(data=data):
                read += data
                if len(read) > most_bytes:
                    raise Unreachable(f"the answer is longer than {most_bytes} bytes")
            case h11.EndOfMessage():
                return Answered(status, bytes(read))
            case h11.InformationalResponse():
                pass
            case _:
                raise Unreachable("the connection was closed before the answer had come")


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        return parts if parts.port != 0 else None
    except ValueError:
        return None


@cache
def _tls() -> ssl.SSLContext:
    """Loads the authorities' certificates: 30 ms, once."""
    return httpx.create_ssl_context()
