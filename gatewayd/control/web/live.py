"""Live pages: a stream of server-sent events says that something has changed, and the page then asks for itself again.

    GET /live/<project>/<topic>

The stream carries a mark and nothing of the project, so what a page shows is made in one place only, by the page's own route and
with its rights. It is written on the exchange itself, past quart: a stream costs the connection and a few small objects. One look
at the store a tick serves every stream here.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import trio

from gatewayd.control.console import Console
from gatewayd.control.people.rights import Right
from gatewayd.control.store.failures import StoreUnavailable
from gatewayd.control.web import gate
from gatewayd.control.web.answer import Redirect, Refusal
from gatewayd.control.web.call import Incoming
from gatewayd.control.web.live_marks import Topic
from gatewayd.http.exchange import Disconnected
from gatewayd.http.open_exchange import HttpExchange

PREFIX: Final = "/live"
STREAMS_MOST: Final = 10_000

RIGHTS: Final[Mapping[Topic, Right]] = {"audit": "project.audit", "approvals": "project.approvals"}
_HEAD: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
)


class _Allowed(msgspec.Struct, frozen=True):
    project_id: str
    topic: Topic


async def live(console: Console, exchange: HttpExchange, incoming: Incoming, stop: trio.Event) -> None:
    try:
        gate.check_host(console, incoming)
        if incoming.method != "GET":
            raise Refusal(405, "expected GET", headers=(("allow", "GET"),))
        asked = await _allowed(console, incoming)
        if console.live.streams >= STREAMS_MOST:
            raise Refusal(503, "too many pages are live here", headers=(("retry-after", "30"),))
    except Refusal as refusal:
        headers = [(name.lower().encode(), value.encode()) for name, value in refusal.headers]
        await exchange.answer(refusal.status, msgspec.json.encode({"error": refusal.text}), headers)
        return
    except Redirect:
        await exchange.answer(421, b'{"error":"another host"}')
        return
    except StoreUnavailable:
        await exchange.answer(503, b'{"error":"the store does not answer now"}', ((b"retry-after", b"2"),))
        return
    with trio.CancelScope() as scope:
        exchange.watch(scope)
        try:
            await _stream(console, exchange, incoming, asked, stop)
        except Disconnected:
            pass
        finally:
            exchange.watch(None)


async def _stream(console: Console, exchange: HttpExchange, incoming: Incoming, asked: _Allowed, stop: trio.Event) -> None:
    await exchange.start(200, _HEAD)
    await exchange.write(b"retry: 2000\n\n")
    with console.live.listening(asked.project_id, asked.topic) as listener:
        while not stop.is_set():
            with trio.move_on_after(console.bounds.beat_s):
                mark = await listener.next()
                await exchange.write(f"event: changed\ndata: {mark}\n\n".encode())
                continue
            try:
                await _allowed(console, incoming)
            except (Refusal, StoreUnavailable):
                break  # the page asks again, and is told
            await exchange.write(b":\n\n")
    await exchange.end()


async def _allowed(console: Console, incoming: Incoming) -> _Allowed:
    """Raises Refusal, as the page itself would be refused."""
    project_id, _, topic = incoming.path.removeprefix(f"{PREFIX}/").partition("/")
    right = RIGHTS.get(topic)  # type: ignore[call-overload]  # any text may be asked for
    standing = await gate.signed_in(console, incoming)
    if standing is None:
        raise Refusal(401, "sign in first")
    found = await gate.project_of(console, standing, project_id) if right is not None else None
    if found is None:
        raise Refusal(404, gate.NOTHING_HERE)
    if right not in found[1]:
        raise Refusal(403, "your role does not allow this")
    return _Allowed(found[0].project_id, topic)  # type: ignore[arg-type]  # a topic: it has a right
