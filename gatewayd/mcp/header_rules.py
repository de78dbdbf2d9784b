"""Rules of the headers on /mcp: which are read, who may ask, what must mirror the body (docs/mcp.md, HTTP and Stateless era).

Pure. What they mean for a request is decided in `request_head.py` and `stateless.py`.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, final
from urllib.parse import urlsplit

_READ: Final = frozenset(
    {
        b"accept",
        b"content-type",
        b"host",
        b"origin",
        b"mcp-session-id",
        b"mcp-protocol-version",
        b"mcp-method",
        b"mcp-name",
        b"x-gateway-token-id",
        b"x-gateway-proxy-secret",
        b"authorization",
    }
)
_LOOPBACK_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_ULID: Final = re.compile(rb"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_VISIBLE: Final = re.compile(rb"[\x21-\x7e]{1,1500}")  # an id that carries its session has the names of the client
_ENCODED: Final = re.compile(rb"=\?base64\?([A-Za-z0-9+/]*={0,2})\?=")

Found = dict[bytes, bytes]


def read(raw: Iterable[tuple[bytes, bytes]]) -> tuple[Found, frozenset[bytes]]:
    """The headers this layer reads, by lower-case name, and the names that came more than once (`accept` is a list: joined)."""
    found: Found = {}
    repeated: set[bytes] | None = None
    for name, value in raw:
        if name in _READ:
            if name not in found:
                found[name] = value
            elif name == b"accept":
                found[name] += b", " + value
            else:
                repeated = {name} if repeated is None else repeated | {name}
    return found, frozenset() if repeated is None else frozenset(repeated)


@lru_cache(maxsize=256)
def accepts(value: bytes, media_type: bytes) -> bool:
    """Whether an Accept header has a range for `media_type` that is not switched off by `q=0` (RFC 9110 section 12.5.1)."""
    kind = media_type.partition(b"/")[0] + b"/*"
    for item in value.lower().split(b","):
        range_, _, parameters = item.partition(b";")
        if range_.strip() not in (media_type, kind, b"*/*"):
            continue
        weights = [p.strip() for p in parameters.split(b";") if p.strip().startswith(b"q=")]
        if not weights or not re.fullmatch(rb"q=0(\.0*)?", weights[0]):
            return True
    return False


@lru_cache(maxsize=64)
def is_json(content_type: bytes) -> bool:
    """Whether a Content-Type is application/json, whatever its parameters."""
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


def token_id(found: Found, repeated: frozenset[bytes]) -> str | None:
    """`X-Gateway-Token-Id` when it is one ULID, else None: a malformed one is recorded as missing (docs/http-api.md)."""
    value = found.get(b"x-gateway-token-id", b"")
    if b"x-gateway-token-id" in repeated or not _ULID.fullmatch(value):
        return None
    return value.decode("ascii")


def session_id(found: Found, repeated: frozenset[bytes]) -> str | None:
    """`Mcp-Session-Id`; anything but one visible ASCII word is the id of no session."""
    value = found.get(b"mcp-session-id")
    if value is None:
        return None
    return value.decode("ascii") if b"mcp-session-id" not in repeated and _VISIBLE.fullmatch(value) else ""


def mirrored(value: bytes) -> str | None:
    """A mirrored header's value: outer space trimmed, `=?base64?…?=` decoded; None where that fails."""
    value = value.strip(b" \t")
    encoded = _ENCODED.fullmatch(value)
    try:
        return (base64.b64decode(encoded[1], validate=True) if encoded else value).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None


@final
class Callers:
    """Which callers are allowed: `Host` is checked against DNS rebinding, `Origin` against other web pages.

    `hosts` None: any host (bound to more than loopback, likely behind a proxy). An entry without a port matches every port;
    an origin entry is `scheme://host[:port]` or `*`. None for `origins`: loopback origins.
    """

    def __init__(self, hosts: Sequence[str] | None, origins: Sequence[str] | None) -> None:
        self._hosts: Final = None if hosts is None else frozenset(host.strip().lower() for host in hosts)
        self._origins: Final = None if origins is None else frozenset(origin.strip().lower().rstrip("/") for origin in origins)
        self.allows_host = lru_cache(maxsize=256)(self._allows_host)
        self.allows_origin = lru_cache(maxsize=256)(self._allows_origin)

    def _allows_host(self, value: bytes) -> bool:
        if self._hosts is None:
            return True
        text = value.decode("latin-1").strip().lower()
        return text in self._hosts or _without_port(text) in self._hosts

    def _allows_origin(self, value: bytes) -> bool:
        text = value.decode("latin-1").strip().lower()
        if self._origins is not None:
            return "*" in self._origins or text.rstrip("/") in self._origins
        try:
            parts = urlsplit(text)
            return parts.scheme in ("http", "https") and parts.hostname in _LOOPBACK_HOSTS
        except ValueError:
            return False


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
