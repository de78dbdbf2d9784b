"""The gate for engines without a link: docs/approvals.md's protocol at `/approvals/v1/<project>`, behind a bearer."""

from typing import Final, TypeVar

import msgspec
import trio

from gatewayd.approvals.messages import GateAnswer, GateAsk, Outcome, StatusAsked, Wait
from gatewayd.approvals.rules import NotAsked, TooManyOpen
from gatewayd.control.approvals import answer as answers
from gatewayd.control.approvals.answer import GateClosed
from gatewayd.control.approvals.bearers import find_bearer
from gatewayd.control.approvals.requests import Asker
from gatewayd.control.approvals.waiting import waited
from gatewayd.control.console import Console
from gatewayd.control.gateways.exchanges import Presence, answered, send, serve
from gatewayd.control.gateways.reply import NOT_KNOWN, Reply, refused
from gatewayd.control.web.call import Incoming
from gatewayd.http.open_exchange import HttpExchange

PREFIX: Final = "/approvals/v1"
BODY_BYTES: Final = 8 * 1024 * 1024
CALLS: Final = frozenset({"", "wait", "status", "outcome"})
_UNKNOWN: Final = refused(401, "the bearer token is none of this project", ((b"www-authenticate", b"Bearer"),))

T = TypeVar("T")


async def gate_service(console: Console, exchange: HttpExchange, incoming: Incoming, stop: trio.Event) -> None:
    project_id, _, call = incoming.path.removeprefix(PREFIX).strip("/").partition("/")
    asker: Asker | None = None

    async def let_in() -> Reply:
        nonlocal asker
        asker = await _asker(console, incoming, project_id)
        return NOT_KNOWN if asker is not None else _UNKNOWN

    reply = await answered(let_in)
    if asker is None or call not in CALLS:
        await send(exchange, reply)
        return
    if incoming.method != "POST":
        await send(exchange, refused(405, "expected POST", ((b"allow", b"POST"),)))
        return
    known, presence = asker, Presence(exchange, stop)
    await serve(console, exchange, BODY_BYTES, lambda data: _reply(console, known, call, data, presence))


async def _asker(console: Console, incoming: Incoming, project_id: str) -> Asker | None:
    scheme, _, given = incoming.headers.get("authorization", "").partition(" ")
    place = await find_bearer(console, given.strip()) if scheme.lower() == "bearer" else None
    if place is None or place.project_id != project_id.upper():
        return None
    return Asker(place.org_id, place.project_id, place.id)


async def _reply(console: Console, asker: Asker, call: str, data: bytes, presence: Presence) -> Reply:
    try:
        return Reply(200, msgspec.json.encode(await _said(console, asker, call, data, presence)))
    except msgspec.ValidationError as wrong:
        return refused(400, str(wrong)[:300])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return refused(400, "the body is no JSON")
    except NotAsked:
        return refused(409, "no such request of this token, or the query_id is no ULID or stands for another write")
    except GateClosed as closed:
        return refused(503, str(closed))
    except TooManyOpen as full:
        return refused(429, str(full), ((b"retry-after", b"%d" % full.retry_after_s),))


async def _said(console: Console, asker: Asker, call: str, data: bytes, presence: Presence) -> object:
    if call == "":
        ask = _read(data, GateAsk)
        return _about(await answers.answer(console, asker, ask), ask.query_id)
    if call == "wait":
        wait = _read(data, Wait)
        return _about(await waited(console, asker, wait, presence), wait.query_id)
    if call == "status":
        return await answers.status(console, asker, _read(data, StatusAsked))
    await answers.note_outcome(console, asker, _read(data, Outcome))
    return {}


def _read(data: bytes, shape: type[T]) -> T:
    return msgspec.json.decode(data, type=shape)


def _about(answer: GateAnswer, query_id: str) -> GateAnswer:
    return msgspec.structs.replace(answer, query_id=query_id)
