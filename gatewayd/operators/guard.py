"""Who may use the operators' routes, and how much they may send (decision 7).

With no INDEXER_TOKEN the routes are not registered at all (`is_enabled`), so they answer exactly like an unknown path. With one,
every request to a route must carry it. The router answers a method that the path does not support (405 with Allow).
"""

import hashlib
import hmac
from typing import Final

import msgspec
import trio
from quart import Blueprint, Response, request
from werkzeug.exceptions import RequestEntityTooLarge

BODY_BYTES: Final = 8 * 1024 * 1024
BODY_S: Final = 30.0


class Guard:
    """Compares bearer tokens with INDEXER_TOKEN; `token` None: there is none."""

    def __init__(self, token: str | None) -> None:
        self._digest = None if token is None else hashlib.sha256(token.encode()).digest()

    @property
    def is_enabled(self) -> bool:
        """Whether there is a token, and so the routes."""
        return self._digest is not None

    def admits(self, authorization: str | None) -> bool:
        """Whether an Authorization header names the token. Its timing tells nothing about the token, not even its length."""
        if self._digest is None or authorization is None:
            return False
        scheme, _, given = authorization.partition(" ")
        digest = hashlib.sha256(given.strip(" ").encode("latin-1", "replace")).digest()
        return hmac.compare_digest(digest, self._digest) and scheme.lower() == "bearer"

    def blueprint(self, name: str, import_name: str) -> Blueprint:
        """A blueprint all of whose routes check the token first."""
        guarded = Blueprint(name, import_name)

        async def check() -> Response | None:
            return None if self.admits(request.headers.get("Authorization")) else unauthorized()

        guarded.before_request(check)
        return guarded


def json_response(value: object, status: int = 200) -> Response:
    """`value` as JSON with `status`."""
    return Response(msgspec.json.encode(value), status, {"cache-control": "no-store"}, content_type="application/json")


def failure(status: int, text: str) -> Response:
    """`{"error": text}` with `status`."""
    return json_response({"error": text}, status)


def unauthorized() -> Response:
    """401 with `WWW-Authenticate: Bearer`."""
    response = failure(401, "found no valid bearer token, expected Authorization: Bearer <INDEXER_TOKEN>")
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


async def read_body(at_most_bytes: int = BODY_BYTES, within_s: float = BODY_S) -> bytes | Response:
    """The body of the current request, or the 413 or 408 to answer with."""
    body = bytearray()
    try:
        with trio.fail_after(within_s):
            async for part in request.body:
                body += part
                if len(body) > at_most_bytes:
                    return _refused(413, f"body is longer than {at_most_bytes} bytes")
    except trio.TooSlowError:
        return _refused(408, f"body did not arrive within {within_s:g} s")
    except RequestEntityTooLarge:  # known from its content-length alone
        return _refused(413, f"body is longer than {at_most_bytes} bytes")
    return bytes(body)


def _refused(status: int, text: str) -> Response:
    """The answer that also ends the connection, because the rest of the body is still arriving."""
    response = failure(status, text)
    response.headers["Connection"] = "close"
    return response
