"""Requests to the control plane over HTTPS: numbered, signed, and answered by something signed, or by nothing.

httpx is imported in a thread at the first request: a gateway that starts from its cache serves before that.
"""

import logging
import ssl
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

import msgspec
import trio

from gatewayd.config.settings import LinkSettings
from gatewayd.keys.ed25519 import SigningKey
from gatewayd.link.formats.answers import RefusalAnswer, read_answer
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.requests import PATHS, LinkRequest, RequestKind, SentRequest, sign_request
from gatewayd.link.formats.trust import Trust

ANSWER_BYTES: Final = 16 * 1024 * 1024
CONNECT_S: Final = 10.0
_MILLISECONDS: Final = 1_000_000


class Unreachable(Exception):
    """No answer of the control plane: of the network, of a proxy, of a portal, or none. `reason` names no address."""

    def __init__(self, reason: str, *, status: int | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.retry_after_s = retry_after_s


class RequestRefused(Exception):
    """The control plane refuses this very request, and has signed that."""

    def __init__(self, refusal: RefusalAnswer) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


class ControlAnswer(msgspec.Struct, frozen=True):
    """The bytes of an answer, unverified, and what they answer to."""

    status: int
    data: bytes
    sent: SentRequest


class LinkClock:
    """This machine's clock, moved by the difference that the control plane told."""

    def __init__(self, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._clock_ns = clock_ns
        self.offset_ms = 0

    def now_ms(self) -> int:
        """The control plane's time, as far as it is known, in milliseconds since the epoch."""
        return self._clock_ns() // _MILLISECONDS + self.offset_ms

    def learn(self, theirs_ms: int) -> None:
        """Sets the difference to the control plane's clock, which says `theirs_ms` now."""
        self.offset_ms = theirs_ms - self._clock_ns() // _MILLISECONDS


class ControlPlane:
    """Use as `async with`; any number of requests may run at once. `issuer` and `gateway` are empty until it is enrolled."""

    def __init__(self, settings: LinkSettings, identity: SigningKey, clock: LinkClock, run: str, version: str) -> None:
        self.clock = clock
        self.run = run
        self.issuer = self.gateway = ""
        self.bytes_out = self.bytes_in = 0
        self._settings = settings
        self._identity = identity
        self._n = 0
        self._agent = f"gatewayd/{version}"
        self._client: Any = None
        self._failures: tuple[type[Exception], ...] = ()
        self._importing = trio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._client is not None:
            with trio.move_on_after(1, shield=True):
                await self._client.aclose()

    def numbered(self, kind: RequestKind, body: msgspec.Struct) -> SentRequest:
        """The next request of this run."""
        self._n += 1
        raw = msgspec.Raw(_json(body))
        request = LinkRequest(self.issuer, self.gateway, kind, self.run, self._n, self.clock.now_ms(), raw)
        return sign_request(request, self._identity)

    async def send(self, sent: SentRequest, within_s: float, trust: Trust | None) -> ControlAnswer:
        """Posts a request. Raises Unreachable, or RequestRefused for a signed refusal of this very request.

        Any status may carry a signed answer; what it is worth, its reader finds. 429 and 5xx carry none.
        """
        status, data, retry_after_s = await self._post(PATHS[sent.request.kind], sent.data, within_s)
        if status != 200 and trust is not None:
            try:
                refusal = read_answer(data, RefusalAnswer, trust, self.clock.now_ms(), gateway=self.gateway, request=sent.digest)
            except DocumentRefused:
                pass
            else:
                raise RequestRefused(refusal)
        if status == 429 or status >= 500 or status < 200:
            raise Unreachable(f"answered status {status}", status=status, retry_after_s=retry_after_s)
        return ControlAnswer(status, data, sent)

    async def _post(self, path: str, body: bytes, within_s: float) -> tuple[int, bytes, float | None]:
        await self._ready()
        try:
            with trio.fail_after(within_s):
                async with self._client.stream("POST", self._settings.control_url + path, content=body) as response:
                    self.bytes_out += len(body)
                    data = bytearray()
                    async for piece in response.aiter_raw():
                        data += piece
                        if len(data) > ANSWER_BYTES:
                            raise Unreachable(f"answered more than {ANSWER_BYTES} bytes")
                    self.bytes_in += len(data)
                    return response.status_code, bytes(data), _seconds(response.headers.get("retry-after"))
        except trio.TooSlowError:
            raise Unreachable(f"no answer within {within_s:g} s") from None
        except self._failures as failure:
            raise Unreachable(_why(failure)) from None  # its own text may hold the address

    async def _ready(self) -> None:
        async with self._importing:
            if self._client is None:
                self._client = await trio.to_thread.run_sync(self._made)

    def _made(self) -> Any:
        client, self._failures = http_client(self._settings, self._agent)
        return client


def http_client(settings: LinkSettings, agent: str) -> tuple[Any, tuple[type[Exception], ...]]:
    """A client that follows no redirect and no proxy of the environment, and what it raises."""
    import httpx

    for name in ("httpx", "httpcore"):  # both would log the full address
        logging.getLogger(name).setLevel(logging.WARNING)
    verify: ssl.SSLContext | bool = True
    if settings.control_url.startswith("http:"):
        verify = False
    elif settings.ca_file is not None:
        verify = ssl.create_default_context(cafile=settings.ca_file)
    client = httpx.AsyncClient(
        verify=verify,
        timeout=httpx.Timeout(None, connect=CONNECT_S),
        follow_redirects=False,
        headers={"content-type": "application/json", "user-agent": agent, "accept-encoding": "identity"},
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=16),  # held calls have a bound of their own
        trust_env=False,
    )
    return client, (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError)


async def reach(settings: LinkSettings) -> str | None:
    """What keeps the control plane from being reached; None when it answers. It is not asked for anything."""
    client, failures = http_client(settings, "gatewayd")
    try:
        with trio.fail_after(CONNECT_S * 2):
            async with client:
                await client.get(settings.control_url + "/healthz")
    except trio.TooSlowError:
        return "no answer in time"
    except failures as failure:
        return _why(failure)
    return None


def _json(body: msgspec.Struct) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:  # a lone surrogate in what an agent says of itself
        import json

        return json.dumps(msgspec.to_builtins(body)).encode()


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 6 else None


def _why(failure: Exception) -> str:
    inner: BaseException | None = failure
    while inner is not None:
        if isinstance(inner, ssl.SSLCertVerificationError):
            return f"its certificate does not verify ({inner.verify_message})"
        inner = inner.__cause__ or inner.__context__
    return type(failure).__name__
