"""Tainted grants for people: which there are, and clearing one, with the reason."""

from typing import Final

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.control.store.store import Transaction
from gatewayd.control.taint.grants import OPEN, Taint, clear
from gatewayd.control.tokens.token import FIND, Token
from gatewayd.control.trail.record import Act, record
from gatewayd.control.web.answer import Answer, Refusal, json, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said

_PAGE: Final = "taint/pages/taints.html"
_NOTE: Final = 500


class ClearForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`grant`: the hex name of the grant, as the list has it."""

    grant: str
    note: str


class TaintShown(msgspec.Struct, frozen=True):
    """`shown`: the token's id, or `gateway <id>`; `source`: `<database>:<table>`, read by `query_id`."""

    grant: str
    shown: str
    source: str
    query_id: str
    gateway: str
    tainted_ms: int


class Taints(msgspec.Struct, frozen=True):
    taints: list[TaintShown]


async def taints(call: Call) -> Taints:
    found = await call.console.store.rows(Taint, OPEN, call.project.project_id)
    return Taints(
        [TaintShown(each.grant_key.hex(), each.shown, each.source, each.query_id, each.gateway_id, each.tainted_ms)
        for each in found]
    )  # fmt: skip


async def _list(call: Call) -> Answer:
    return json(await taints(call))


async def _page(call: Call) -> Answer:
    found = (await taints(call)).taints
    names = {each: await _name(call, each) for each in {taint.shown for taint in found}}
    return page(call, _PAGE, taints=found, names=names)


async def _name(call: Call, shown: str) -> str:
    """Of the token, where the grant is one."""
    token = await call.console.store.row(Token, FIND, call.project.project_id, shown) if is_ulid(shown) else None
    return token.name if token is not None else shown


async def _clear_page(call: Call) -> Answer:
    await _clear(call)
    return said(call, to(f"/projects/{call.project.project_id}/taint"), "cleared")


async def _clear(call: Call) -> None:
    form, console, project_id = call.sent(ClearForm), call.console, call.project.project_id
    note = form.note.strip()
    if not note or len(note) > _NOTE or "\0" in note:
        raise Refusal(400, f"note: expected 1 to {_NOTE} characters")
    try:
        key = bytes.fromhex(form.grant)
    except ValueError:
        raise Refusal(404, "there is nothing here") from None
    ids = console.new_id(), console.new_id()
    salt, now_ms = console.entropy(32), console.now_ms()

    async def work(tx: Transaction) -> None:
        if not await clear(tx, project_id, key, call.person.person_id, note, ids[0], now_ms):
            raise Refusal(404, "there is nothing here")
        act = Act("taint.cleared", call.person.person_id, project_id, None, {"grant": form.grant, "note": note})
        await record(tx, call.org_id, act, ids[1], salt, now_ms)

    await console.store.transaction(work)


ROUTES: Final = (
    Route("GET", "/projects/<project>/taint", _page, door="person", right="project.read"),
    Route("POST", "/projects/<project>/taint/clear", _clear_page, door="person", right="project.taint", body=ClearForm),
    Route(
        "GET", "/api/v1/projects/<project>/taint", _list, door="key", right="project.read", answer=Taints,
        summary="grants that have read a source of foreign text",
    ),
)  # fmt: skip
