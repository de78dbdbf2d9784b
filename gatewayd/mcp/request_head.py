"""The facts of a request head on /mcp: the protocol version, the session and the caller, or why it is refused.

No body is read yet. A repeated head gives the same `RequestHead` (`HttpHead.facts`), so nothing here may depend on the time or on
the sessions.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from gatewayd.http.exchange import HttpHead
from gatewayd.mcp import header_rules as headers
from gatewayd.mcp.http_reply import HttpReply
from gatewayd.mcp.messages import HANDSHAKE_VERSIONS, INVALID_REQUEST, NOT_ACCEPTABLE, ProtocolError

_JSON: Final = b"application/json"
_EVENTS: Final = b"text/event-stream"
_HANDSHAKE_VERSIONS: Final = frozenset(version.encode() for version in HANDSHAKE_VERSIONS)

Refuse = Callable[[HttpReply], Awaitable[None]]


class RequestHead(msgspec.Struct, frozen=True, gc=False):
    """`refuse` sends the refusal; None if the head is valid, and its method is then POST, GET or DELETE."""

    found: headers.Found
    repeated: frozenset[bytes]
    session_id: str | None
    token_id: str | None
    is_handshake: bool
    refuse: Refuse | None


def asked_by(head: HttpHead, callers: headers.Callers) -> RequestHead:
    """The facts of the head, computed once for all requests that repeat it."""
    found, repeated = headers.read(head.headers)
    return RequestHead(
        found=found,
        repeated=repeated,
        session_id=headers.session_id(found, repeated),
        token_id=headers.token_id(found, repeated),
        is_handshake=_is_handshake(found),
        refuse=_refusal(head.method, found, callers),
    )


def _refusal(method: str, found: headers.Found, callers: headers.Callers) -> Refuse | None:
    """The refusal of a caller, a method or a media type; None if all are accepted."""
    origin, accept = found.get(b"origin"), found.get(b"accept", b"")
    if not callers.allows_host(found.get(b"host", b"")):
        return _refused(403, INVALID_REQUEST, "this `Host` is not allowed (GATEWAY_ALLOWED_HOSTS)")
    if origin is not None and not callers.allows_origin(origin):
        return _refused(403, INVALID_REQUEST, "this `Origin` is not allowed (GATEWAY_ALLOWED_ORIGINS)")
    if method == "POST":
        if not headers.is_json(found.get(b"content-type", b"")):
            return _refused(415, INVALID_REQUEST, "`Content-Type` must be application/json")
        if not (headers.accepts(accept, _JSON) and headers.accepts(accept, _EVENTS)):
            return _refused(406, NOT_ACCEPTABLE, "`Accept` must list application/json and text/event-stream")
        return None
    if method not in ("GET", "DELETE"):
        return lambda reply: reply.empty(405, (b"allow", b"GET, POST, DELETE"))
    if not _is_handshake(found):
        return lambda reply: reply.empty(405, (b"allow", b"POST"))
    if method == "GET" and not headers.accepts(accept, _EVENTS):
        return _refused(406, NOT_ACCEPTABLE, "`Accept` must list text/event-stream")
    return None


def _refused(status: int, code: int, text: str) -> Refuse:
    return lambda reply: reply.refuse(status, ProtocolError(code, text))


def _is_handshake(found: headers.Found) -> bool:
    version = found.get(b"mcp-protocol-version")
    return version is None or version in _HANDSHAKE_VERSIONS
