"""A small provider of OpenID Connect on a real socket: authorization code flow with PKCE, as strict as one has to be, and with
tokens that are wrong in the way that a test asks for."""

import base64
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import h11
import msgspec
import trio
from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "console", "client-secret-canary"
Sign = Callable[["OpenIdProvider", dict[str, Any]], str]


def signed(provider: "OpenIdProvider", claims: dict[str, Any]) -> str:
    return jwt.encode({"alg": "RS256", "kid": provider.kid}, claims, provider.key, algorithms=["RS256"])


class OpenIdProvider:
    def __init__(self) -> None:
        self.issuer = ""
        self.requests = 0
        self.metadata: dict[str, Any] = {}
        """Laid over what it says of itself."""
        self.raw: bytes | None = None
        """Instead of every answer."""
        self.turn_keys()
        self.kept_keys: list[RSAKey] = []
        self._granted: dict[str, tuple[Mapping[str, str], dict[str, Any], Sign]] = {}

    def turn_keys(self) -> None:
        self.key = RSAKey.generate_key(2048)
        self.kid = self.key.thumbprint()

    def grant(self, address: str, sign: Sign = signed, **claims: Any) -> str:
        """What its page would send the browser back with: the code. `address`: where the browser was sent to."""
        asked = dict(parse_qsl(urlsplit(address).query))
        assert address.startswith(f"{self.issuer}/authorize?")
        assert (asked["response_type"], asked["client_id"], asked["code_challenge_method"]) == ("code", CLIENT, "S256")
        assert "openid" in asked["scope"].split()
        now = int(time.time())
        whole = {
            "iss": self.issuer, "aud": CLIENT, "sub": "grace-1", "exp": now + 300, "iat": now, "nonce": asked["nonce"],
            "email": "grace@example.com", "email_verified": True, "name": "Grace Hopper",
        }  # fmt: skip
        whole = {name: value for name, value in (whole | claims).items() if value is not None}
        code = base64.urlsafe_b64encode(hashlib.sha256(f"{len(self._granted)}".encode()).digest()).decode()
        self._granted[code] = (asked, whole, sign)
        return code

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
        self.requests += 1
        if self.raw is not None:
            return 200, self.raw
        match method, target:
            case "GET", "/.well-known/openid-configuration":
                paths = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
                known = {name: f"{self.issuer}/{path}" for name, path in paths.items()} | {"issuer": self.issuer}
                return 200, msgspec.json.encode(known | self.metadata)
            case "GET", "/keys":
                keys = [key.as_dict(private=False) | {"kid": key.thumbprint()} for key in (self.key, *self.kept_keys)]
                return 200, msgspec.json.encode({"keys": keys})
            case "POST", "/token":
                return self._token(dict(parse_qsl(body.decode())))
        return 404, b"{}"

    def _token(self, form: dict[str, str]) -> tuple[int, bytes]:
        found = self._granted.pop(form.get("code", ""), None)
        if found is None:
            return 400, b'{"error":"invalid_grant"}'
        asked, claims, sign = found
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        is_right = (
            (form["client_id"], form["client_secret"]) == (CLIENT, SECRET)
            and form["redirect_uri"] == asked["redirect_uri"]
            and form["grant_type"] == "authorization_code"
            and challenge == asked["code_challenge"]
        )
        if not is_right:
            return 400, b'{"error":"invalid_grant"}'
        return 200, msgspec.json.encode({"access_token": "a", "token_type": "Bearer", "id_token": sign(self, claims)})

    async def talk(self, stream: trio.SocketStream) -> None:
        parser, body = h11.Connection(h11.SERVER), b""
        head: h11.Request | None = None
        while True:
            match parser.next_event():
                case h11.NEED_DATA:
                    parser.receive_data(await stream.receive_some())
                case h11.Request() as head:
                    pass
                case h11.Data(data=data):
                    body += bytes(data)
                case _:
                    break
        if head is not None:
            status, answer = self.answer(head.method.decode(), head.target.decode(), body)
            await stream.send_all(f"HTTP/1.1 {status} X\r\nContent-Length: {len(answer)}\r\nConnection: close\r\n\r\n".encode())
            await stream.send_all(answer)


@asynccontextmanager
async def providing() -> AsyncIterator[OpenIdProvider]:
    provider = OpenIdProvider()
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        provider.issuer = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.start_soon(trio.serve_listeners, provider.talk, [listener])
        yield provider
        nursery.cancel_scope.cancel()
