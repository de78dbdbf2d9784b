"""The gate behind GATEWAY_APPROVAL_URL: four POSTs of JSON, each with a deadline and bounds (docs/approvals.md, Protocol).

Anything but a valid answer of the protocol is Unavailable, never a denial. Neither the token nor the address, whose path and
query may hold a key, appears in a log or an error.
"""

import logging
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit, urlunsplit

import httpx
import msgspec
import trio

from gatewayd import log
from gatewayd.approvals.gate import Unavailable
from gatewayd.approvals.messages import (
    BadMessage,
    GateAnswer,
    GateAsk,
    Outcome,
    Status,
    StatusAsked,
    Wait,
    read_answer,
    read_status,
)
from gatewayd.config.credentials import Secret

BODY_BYTES: Final = 256 * 1024
"""The largest answer. Two texts of 16 KiB may take six times that if each character is written as an escape."""
_RETRY_AFTER_MOST_S: Final = 86_400


class HttpGate:
    """A `Gate` over HTTP. Use it with `async with`; any number of calls may run at once."""

    def __init__(self, url: Secret, token: Secret, version: str) -> None:
        self._url = url
        self._headers = {
            "authorization": f"Bearer {token.reveal()}",
            "content-type": "application/json",
            "accept": "application/json",
            "accept-encoding": "identity",  # the size of a compressed answer is known only after it is decompressed
            "user-agent": f"gatewayd/{version}",
        }
        self._is_reachable = True

    async def __aenter__(self) -> Self:
        for name in ("httpx", "httpcore"):  # both would log the full address
            logging.getLogger(name).setLevel(logging.WARNING)
        # No timeout in httpx: `_post` sets one deadline for the whole call. No bound on connections: held calls are bounded.
        self._client = httpx.AsyncClient(
            timeout=None,
            follow_redirects=False,
            headers=self._headers,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=16, keepalive_expiry=15),
        )
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with trio.CancelScope(shield=True):
            await self._client.aclose()

    async def ask(self, ask: GateAsk, within_s: float) -> GateAnswer:
        status, body = await self._post("", ask, within_s)
        return self._answer(status, body, ask.query_id)

    async def wait(self, wait: Wait, within_s: float) -> GateAnswer | None:
        status, body = await self._post("/wait", wait, within_s)
        return None if status == 404 else self._answer(status, body, wait.query_id)

    async def status(self, asked: StatusAsked, within_s: float) -> Status:
        status, body = await self._post("/status", asked, within_s)
        self._check(status)
        try:
            answer = read_status(body)
        except BadMessage as bad:
            raise self._unavailable(Unavailable(f"its answer does not count: {bad}")) from None
        self._answered()
        return answer

    async def outcome(self, outcome: Outcome, within_s: float) -> None:
        status, _ = await self._post("/outcome", outcome, within_s)
        if not 200 <= status < 300:
            raise Unavailable(f"it answered status {status}")

    # -- one POST

    async def _post(self, path: str, message: msgspec.Struct, within_s: float) -> tuple[int, bytes]:
        """The status and the body, unchecked. Raises Unavailable if no complete answer arrives in time."""
        try:
            with trio.fail_after(within_s):
                body = bytearray()
                too_long = trio.CancelScope()
                async with self._client.stream("POST", self._address(path), content=_json(message)) as response:
                    if response.status_code == 429:
                        retry_after_s = _seconds(response.headers.get("retry-after"))
                        raise self._unavailable(Unavailable("it has too many requests open", retry_after_s=retry_after_s))
                    if response.headers.get("content-encoding", "identity") != "identity":
                        raise self._unavailable(Unavailable("its answer is compressed, which was not asked for"))
                    with too_long:  # leaving the loop would leave httpx's generators to the collector
                        async for piece in response.aiter_raw():
                            if len(body) + len(piece) > BODY_BYTES:
                                too_long.cancel()
                            else:
                                body += piece
                if too_long.cancel_called:
                    raise self._unavailable(Unavailable(f"its answer is longer than {BODY_BYTES} bytes"))
                return response.status_code, bytes(body)
        except trio.TooSlowError:
            raise self._unavailable(Unavailable(f"no answer within {within_s:.3g} s", is_lost=True)) from None
        except (httpx.HTTPError, httpx.InvalidURL) as failure:  # their texts may hold the address
            raise self._unavailable(Unavailable(type(failure).__name__, is_lost=_is_lost(failure))) from None

    def _address(self, path: str) -> str:
        parts = urlsplit(self._url.reveal())
        return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path or "/"))

    def _answer(self, status: int, body: bytes, query_id: str) -> GateAnswer:
        self._check(status)
        try:
            answer = read_answer(body, query_id)
        except BadMessage as bad:
            raise self._unavailable(Unavailable(f"its answer does not count: {bad}")) from None
        self._answered()
        return answer

    def _check(self, status: int) -> None:
        if status in (401, 403):
            raise self._unavailable(Unavailable(f"it answered status {status}: GATEWAY_APPROVAL_TOKEN is not the one it takes"))
        if status != 200:
            raise self._unavailable(Unavailable(f"it answered status {status}"))

    # -- one log line when the gate stops answering, and one when it answers again

    def _unavailable(self, failure: Unavailable) -> Unavailable:
        if self._is_reachable and failure.retry_after_s is None:
            self._is_reachable = False
            log.warning(log.APPROVAL_GATE_UNREACHABLE, reason=failure.reason)
        return failure

    def _answered(self) -> None:
        if not self._is_reachable:
            self._is_reachable = True
            log.info(log.APPROVAL_GATE_REACHABLE)


def _json(message: msgspec.Struct) -> bytes:
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:  # a lone surrogate in the agent's name or version; a statement with one is never held
        import json

        return json.dumps(msgspec.to_builtins(message)).encode()


def _is_lost(failure: Exception) -> bool:
    """Whether the gate may have answered: True unless no connection was made."""
    return isinstance(failure, httpx.TransportError) and not isinstance(
        failure, httpx.ConnectError | httpx.UnsupportedProtocol | httpx.ProxyError
    )


def _seconds(header: str | None) -> int:
    """The seconds of a Retry-After header; its other form, a date, counts as 60."""
    text = (header or "").strip()
    return min(int(text), _RETRY_AFTER_MOST_S) if text.isascii() and text.isdigit() and len(text) < 10 else 60
