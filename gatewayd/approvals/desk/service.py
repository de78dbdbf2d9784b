"""The gate's side of the protocol over HTTP: four routes behind a bearer token (docs/approvals.md, Protocol)."""

import hmac
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final, TypeVar

import msgspec
import trio

from gatewayd.approvals.desk.requests import Requests
from gatewayd.approvals.messages import GateAnswer, GateAsk, Outcome, Pending, StatusAsked, Wait
from gatewayd.approvals.rules import NotAsked, TooManyOpen
from gatewayd.http.exchange import BodyTooLarge, BodyTooSlow, Disconnected, Header
from gatewayd.http.open_exchange import HttpExchange

PATH: Final = "/approvals"
BODY_BYTES: Final = 8 * 1024 * 1024
BODY_S: Final = 30.0
WAIT_MOST_S: Final = 60.0
_LOOK_S: Final = 1.0  # an expiry sends no event

T = TypeVar("T")


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class GateService:
    """An HTTP handler. Call `changed` after each decision; `asked` is set when there may be a new request to decide."""

    def __init__(self, requests: Requests, token: str, clock_ms: Callable[[], int] = now_ms) -> None:
        self.asked = trio.Event()
        self._requests = requests
        self._token = sha256(token.encode()).digest()
        self._clock_ms = clock_ms
        self._changed = trio.Event()

    def changed(self) -> None:
        """Wakes the gateways that wait, after a decision."""
        self._changed.set()
        self._changed = trio.Event()

    async def __call__(self, exchange: HttpExchange) -> None:
        try:
            await self._serve(exchange)
        except Disconnected:
            return

    async def _serve(self, exchange: HttpExchange) -> None:
        head = exchange.head
        routes: dict[str, Callable[[HttpExchange, bytes], Any]] = {
            PATH: self._ask,
            f"{PATH}/wait": self._wait,
            f"{PATH}/status": self._status,
            f"{PATH}/outcome": self._outcome,
        }
        route = routes.get(head.path.rstrip("/"))
        given = next((value for name, value in head.headers if name == b"authorization"), b"")
        scheme, _, token = given.partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(sha256(token.strip()).digest(), self._token):
            await _say(exchange, 401, {"error": "the bearer token is not the one of this gate"}, (b"www-authenticate", b"Bearer"))
        elif route is None:
            await _say(exchange, 404, {"error": "not found"})
        elif head.method != "POST":
            await _say(exchange, 405, {"error": "method not allowed"}, (b"allow", b"POST"))
        else:
            try:
                body = await exchange.body(BODY_BYTES, BODY_S)
            except BodyTooLarge:
                await _say(exchange, 413, {"error": f"the body is larger than {BODY_BYTES} bytes"})
                return
            except BodyTooSlow:
                await _say(exchange, 408, {"error": f"the body did not arrive within {BODY_S:.0f} s"})
                return
            await self._answer(exchange, route, body)

    async def _answer(self, exchange: HttpExchange, route: Callable[[HttpExchange, bytes], Any], body: bytes) -> None:
        try:
            status, content = await route(exchange, body)
        except msgspec.ValidationError as error:
            await _say(exchange, 400, {"error": str(error)[:300]})
        except (msgspec.DecodeError, UnicodeDecodeError):
            await _say(exchange, 400, {"error": "the body is no JSON"})
        except NotAsked:
            await _say(exchange, 409, {"error": "no such request of this token, or the query_id stands for another write"})
        except TooManyOpen as full:
            await _say(exchange, 429, {"error": str(full)}, (b"retry-after", b"%d" % full.retry_after_s))
        else:
            await _say(exchange, status, content)

    # -- the routes

    async def _ask(self, _exchange: HttpExchange, body: bytes) -> tuple[int, object]:
        ask = _read(body, GateAsk)
        answer = self._requests.answer(ask, self._clock_ms())
        self.asked.set()
        return 200, _about(answer, ask.query_id)

    async def _wait(self, exchange: HttpExchange, body: bytes) -> tuple[int, object]:
        wait = _read(body, Wait)
        answer: GateAnswer | None = None
        until = trio.current_time() + min(max(wait.wait_s, 0), WAIT_MOST_S)
        gone = trio.CancelScope()
        exchange.watch(gone)  # no approval is claimed for a gateway that has disconnected
        try:
            with gone:
                while True:
                    exchange.look()
                    await trio.lowlevel.checkpoint()  # ends here if the gateway has disconnected
                    changed = self._changed
                    answer = self._requests.wait(wait, self._clock_ms())
                    left_s = until - trio.current_time()
                    if not isinstance(answer, Pending) or left_s <= 0:
                        break
                    with trio.move_on_after(min(_LOOK_S, left_s)):
                        await changed.wait()
        finally:
            exchange.watch(None)
        if gone.cancelled_caught or answer is None:
            raise Disconnected
        self.asked.set()  # it may have opened a new request
        return 200, _about(answer, wait.query_id)

    async def _status(self, _exchange: HttpExchange, body: bytes) -> tuple[int, object]:
        asked = _read(body, StatusAsked)
        return 200, self._requests.status(asked.approval_id, asked.mcp_token_id, self._clock_ms())

    async def _outcome(self, _exchange: HttpExchange, body: bytes) -> tuple[int, object]:
        self._requests.note_outcome(_read(body, Outcome))
        return 200, {}


def _read(body: bytes, shape: type[T]) -> T:
    return msgspec.json.decode(body, type=shape)


def _about(answer: GateAnswer, query_id: str) -> GateAnswer:
    return msgspec.structs.replace(answer, query_id=query_id)


async def _say(exchange: HttpExchange, status: int, content: object, *headers: Header) -> None:
    await exchange.answer(status, msgspec.json.encode(content), headers)
