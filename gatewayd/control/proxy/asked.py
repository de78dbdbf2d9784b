"""What the head of an agent's request says: may it come from there, which token, what of it the engine gets. Pure.

A client repeats its head, so this is worked out once for many requests. What goes on to the engine is a list of what the protocol
has, never what is left of the client's headers: a header that the engine believes cannot come from outside.
"""

import re
from typing import Final, Literal

import msgspec

from gatewayd.config.environment import is_loopback
from gatewayd.control.engines.launch import ENGINE_HOST
from gatewayd.control.settings import ControlSettings
from gatewayd.http.exchange import HttpHead

METHODS: Final = frozenset({"POST", "GET", "DELETE"})
_PATH: Final = re.compile(rb"/mcp(?:/([!-~]{1,200}))?")
_BEARER: Final = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +([!-~]{1,200})")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
_PASSED_ON: Final = frozenset({b"accept", b"content-type", b"user-agent", b"last-event-id"})
_MCP: Final = b"mcp-"

Wrong = Literal["host", "origin", "path", "method", "no token"]


class AgentHead(msgspec.Struct, frozen=True):
    """`token` is what was given, not looked up yet. `head`: the request for the engine, up to what the proxy adds to it."""

    wrong: Wrong | None
    token: str
    head: bytes


def agent_head(head: HttpHead, settings: ControlSettings) -> AgentHead:
    found: dict[bytes, list[bytes]] = {}
    for name, value in head.headers:
        found.setdefault(name, []).append(value)
    path = _PATH.fullmatch(head.target.partition(b"?")[0])
    wrong: Wrong | None = None
    token = b""
    if not _is_own_host(found.get(b"host", []), settings):
        wrong = "host"
    elif not all(_is_own_origin(origin, settings) for origin in found.get(b"origin", [])):
        wrong = "origin"
    elif path is None:
        wrong = "path"
    elif head.method not in METHODS:
        wrong = "method"
    elif path[1] is not None:
        token = path[1]
    else:
        given = found.get(b"authorization", [])
        bearer = _BEARER.fullmatch(given[0].strip(b" \t")) if len(given) == 1 else None
        if bearer is None:
            wrong = "no token"
        else:
            token = bearer[1]
    lines = [b"%s /mcp HTTP/1.1\r\nhost: %s" % (head.method.encode(), ENGINE_HOST)]
    lines += [b"%s: %s" % pair for pair in head.headers if pair[0] in _PASSED_ON or pair[0].startswith(_MCP)]
    return AgentHead(wrong, token.decode("ascii"), b"\r\n".join(lines) + b"\r\n")


def _is_own_host(given: list[bytes], settings: ControlSettings) -> bool:
    """Only our own names: another one is a page that rebinds its DNS name, or a proxy that is set up wrongly."""
    if len(given) != 1:
        return False
    host = given[0].decode("latin-1").strip().lower()
    if host == settings.public_host:
        return True
    return is_loopback(settings.host) and host in [f"{name}:{settings.port}" for name in _LOOPBACK]


def _is_own_origin(given: bytes, settings: ControlSettings) -> bool:
    """Pages of the console; where it is reached by loopback alone, also others of this machine, such as the MCP inspector's."""
    origin = given.decode("latin-1").strip().lower()
    if origin == settings.public_url:
        return True
    name = origin.removeprefix("https://").removeprefix("http://")
    host, colon, port = name.rpartition(":")
    host = host if colon and port.isdigit() else name
    return name != origin and is_loopback(settings.host) and host in _LOOPBACK
