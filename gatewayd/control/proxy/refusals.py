"""How the proxy refuses: an HTTP status, and an error of JSON-RPC that names the cause. Pure."""

from typing import Final

import msgspec

from gatewayd.http.exchange import Header

MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""Of a body that is looked at for its method and id; an engine takes no longer ones."""
_QUIET: Final = frozenset({"initialize", "ping", "tools/list", "server/discover"})


class ProxyRefusal(msgspec.Struct, frozen=True):
    status: int
    code: int
    text: str
    headers: tuple[Header, ...] = ()

    def after(self, seconds: float) -> "ProxyRefusal":
        """With the time after which it is worth another try."""
        return msgspec.structs.replace(self, headers=((b"retry-after", b"%d" % max(1, round(seconds))),))

    def because(self, why: str) -> "ProxyRefusal":
        return msgspec.structs.replace(self, text=f"{self.text}: {why}")


_REFUSED: Final = -32600
HOST: Final = ProxyRefusal(421, _REFUSED, "this `Host` is not the control plane's")
ORIGIN: Final = ProxyRefusal(403, _REFUSED, "this `Origin` is not allowed")
METHOD: Final = ProxyRefusal(405, _REFUSED, "this method is not known here", ((b"allow", b"DELETE, GET, POST"),))
NO_TOKEN: Final = ProxyRefusal(
    401, _REFUSED, "expected /mcp/<token>, or Authorization: Bearer <token>", ((b"www-authenticate", b"Bearer"),)
)
UNKNOWN: Final = ProxyRefusal(404, _REFUSED, "this token is unknown, has ended or was revoked")
PAUSED: Final = ProxyRefusal(403, _REFUSED, "project_paused: the project of this token is paused")
CUT: Final = ProxyRefusal(403, _REFUSED, "gateway_cut: the engine of this project was cut off by a person")
NO_DATABASE: Final = ProxyRefusal(404, _REFUSED, "no_database: the project of this token has no database with an address")
CALLS_USED_UP: Final = ProxyRefusal(
    429, _REFUSED, "calls_used_up: this token has made the calls that it may make in a day; it may again from 00:00 UTC on"
)
ROWS_USED_UP: Final = ProxyRefusal(
    429, _REFUSED, "rows_used_up: this token has read the rows that it may read in a day; it may again from 00:00 UTC on"
)
STORE: Final = ProxyRefusal(503, _REFUSED, "the control plane cannot look up tokens now", ((b"retry-after", b"2"),))
CREDENTIAL: Final = ProxyRefusal(503, -32001, "credential_unavailable: the address of a database cannot be opened")
UNAVAILABLE: Final = ProxyRefusal(502, -32002, "upstream_unavailable")
DISCONNECTED: Final = ProxyRefusal(
    502, -32003, "upstream_disconnected: the engine ended during the call; what ran is in the audit"
)


class Message(msgspec.Struct, frozen=True):
    """What of a request's body counts here. `id` is repeated as it came."""

    method: str = ""
    id: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def is_call(self) -> bool:
        """Whether it counts as one: all but what asks for nothing. What cannot be read counts."""
        return self.method not in _QUIET and not self.method.startswith("notifications/")


_DECODER: Final = msgspec.json.Decoder(Message)
NO_MESSAGE: Final = Message()


def message_of(body: bytes) -> Message:
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NO_MESSAGE


class _Error(msgspec.Struct, frozen=True):
    code: int
    message: str


class _Reply(msgspec.Struct, frozen=True):
    id: msgspec.Raw
    error: _Error
    jsonrpc: str = "2.0"


def refusal_body(refusal: ProxyRefusal, message: Message) -> bytes:
    return msgspec.json.encode(_Reply(message.id, _Error(refusal.code, refusal.text)))
