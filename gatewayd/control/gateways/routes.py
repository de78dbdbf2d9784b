"""Gateways for people and scripts: the fleet, enrolment, cut, restore and retire, registered URLs, findings that
somebody has seen."""

from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.control.audit.findings import SEE
from gatewayd.control.gateways import gateway as gateways
from gatewayd.control.gateways.enrol_tokens import make_token
from gatewayd.control.gateways.enrolment import EnrolCommand, command_of
from gatewayd.control.gateways.fleet import STATES_ROWS, Fleet, PastState, fleet, history
from gatewayd.control.gateways.gateway import Gateway, Standing
from gatewayd.control.gateways.identities import LAST_ENDED
from gatewayd.control.people.person import name_problem
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act, record
from gatewayd.control.web.answer import Answer, Refusal, json, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said

_PAGE: Final = "gateways/pages/gateways.html"
_ONE_PAGE: Final = "gateways/pages/gateway.html"
_ALL: Final = "/api/v1/projects/<project>/gateways"
_PAGES: Final = "/projects/<project>/gateways"
_NOTE: Final = 500
_URLS: Final = 20

Change = Literal["cut", "restore", "retire"]
STANDING_AFTER: Final[dict[Change, Standing]] = {"cut": "cut", "restore": "active", "retire": "retired"}


class EnrolForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str


class ChangeForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`cut`: it gets no more bundles and its link ends until it is restored. `retire`: for good. `restore` also ends
    `duplicated`."""

    change: Change
    note: str = ""


class UrlsForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One address a line."""

    urls: str


class GatewayPage(msgspec.Struct, frozen=True):
    states: list[PastState]


async def _list(call: Call) -> Answer:
    return json(await fleet(call.console, call.project.project_id))


async def _page(call: Call) -> Answer:
    return page(call, _PAGE, fleet=await fleet(call.console, call.project.project_id), command=None, problem=None)


async def _enrol_token(call: Call) -> Answer:
    return json(await _command(call, call.sent(EnrolForm).name), 201)


async def _enrol_page(call: Call) -> Answer:
    form = call.sent(EnrolForm)
    shown = await fleet(call.console, call.project.project_id)
    wrong = name_problem(form.name)
    if wrong is not None:
        return page(call, _PAGE, 400, fleet=shown, command=None, problem=wrong)
    return page(call, _PAGE, fleet=shown, command=await _command(call, form.name), problem=None)


async def _command(call: Call, name: str) -> EnrolCommand:
    wrong = name_problem(name)
    if wrong is not None:
        raise Refusal(400, f"name: {wrong}")
    token = await make_token(call.console, call.org_id, call.project.project_id, name.strip(), call.person.person_id)
    return command_of(call.console, token)


async def _one(call: Call) -> Answer:
    shown = await fleet(call.console, call.project.project_id)
    found = next((each for each in shown.gateways if each.id == call.args["gateway"].upper()), None)
    if found is None:
        raise Refusal(404, "there is nothing here")
    before = call.incoming.query.get("before", "")
    below = int(before) if before.isascii() and before.isdigit() and len(before) < 18 else 1 << 62
    past = await history(call.console, call.project.project_id, found.id, below)
    more = f"{call.incoming.path}?before={past[-1].since_ms}" if len(past) == STATES_ROWS else None
    since_ms = await call.console.store.value(LAST_ENDED, call.project.project_id, found.id)
    return page(
        call, _ONE_PAGE, gateway=found, newest=shown.newest_bundle, states=past, more=more, key_since_ms=since_ms
    )  # fmt: skip


async def _history(call: Call) -> Answer:
    return json(GatewayPage(await history(call.console, call.project.project_id, _id(call, "gateway"))))


async def _change_page(call: Call) -> Answer:
    await _change(call, call.sent(ChangeForm))
    return said(call, to(f"/projects/{call.project.project_id}/gateways/{_id(call, 'gateway')}"), "saved")


async def _change_json(call: Call) -> Answer:
    await _change(call, call.sent(ChangeForm))
    return await _list(call)


async def _change(call: Call, form: ChangeForm) -> None:
    console, project_id, gateway_id = call.console, call.project.project_id, _id(call, "gateway")
    note = form.note.strip()
    if len(note) > _NOTE or "\0" in note:
        raise Refusal(400, f"note: expected at most {_NOTE} characters")
    event_id, salt, now_ms = console.new_id(), console.entropy(32), console.now_ms()

    async def work(tx: Transaction) -> None:
        found = await tx.row(Gateway, gateways.FIND_LOCKED, project_id, gateway_id)
        if found is None:
            raise Refusal(404, "there is nothing here")
        if not await tx.run(gateways.SET_STANDING, project_id, gateway_id, STANDING_AFTER[form.change], note or None):
            raise Refusal(409, "this gateway is retired; enrol a new one")
        details = {"name": found.name, "before": found.standing, "note": note}
        act = Act(f"gateway.{form.change}", call.person.person_id, project_id, gateway_id, details)
        await record(tx, call.org_id, act, event_id, salt, now_ms)

    await console.store.transaction(work)


async def _urls(call: Call) -> Answer:
    console, project_id, gateway_id = call.console, call.project.project_id, _id(call, "gateway")
    urls = [line.strip() for line in call.sent(UrlsForm).urls.splitlines() if line.strip()]
    if len(urls) > _URLS or not all(_is_url(each) for each in urls):
        raise Refusal(400, f"urls: expected at most {_URLS} lines, each an address of http or https")
    event_id, salt, now_ms = console.new_id(), console.entropy(32), console.now_ms()
    text = msgspec.json.encode(urls).decode()

    async def work(tx: Transaction) -> None:
        if not await tx.run(gateways.SET_URLS, project_id, gateway_id, text):
            raise Refusal(404, "there is nothing here")
        act = Act("gateway.urls", call.person.person_id, project_id, gateway_id, {"urls": " ".join(urls)})
        await record(tx, call.org_id, act, event_id, salt, now_ms)

    await console.store.transaction(work)
    return said(call, to(f"/projects/{project_id}/gateways/{gateway_id}"), "saved")


async def _seen(call: Call) -> Answer:
    console, project_id, finding_id = call.console, call.project.project_id, _id(call, "finding")
    event_id, salt, now_ms = console.new_id(), console.entropy(32), console.now_ms()

    async def work(tx: Transaction) -> None:
        if not await tx.run(SEE, project_id, finding_id, call.person.person_id, now_ms):
            raise Refusal(404, "there is nothing here")
        act = Act("finding.seen", call.person.person_id, project_id, finding_id)
        await record(tx, call.org_id, act, event_id, salt, now_ms)

    await console.store.transaction(work)
    return said(call, to(f"/projects/{project_id}/gateways"), "seen")


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and len(text) <= 500 and text.isprintable()


def _id(call: Call, name: str) -> str:
    if not is_ulid(call.args[name]):
        raise Refusal(404, "there is nothing here")
    return call.args[name].upper()


ROUTES: Final = (
    Route("GET", _PAGES, _page, door="person", right="project.read"),
    Route("POST", "/projects/<project>/enrol-gateway", _enrol_page, door="person", right="project.gateways", body=EnrolForm),
    Route("GET", f"{_PAGES}/<gateway>", _one, door="person", right="project.read"),
    Route("POST", f"{_PAGES}/<gateway>/standing", _change_page, door="person", right="project.gateways", body=ChangeForm),
    Route("POST", f"{_PAGES}/<gateway>/urls", _urls, door="person", right="project.gateways", body=UrlsForm),
    Route("POST", "/projects/<project>/findings/<finding>/seen", _seen, door="person", right="project.audit"),
    Route("GET", _ALL, _list, door="key", right="project.read", answer=Fleet, summary="gateways and what is wrong with them"),
    Route(
        "POST", f"{_ALL}/tokens", _enrol_token, door="key", right="project.gateways", body=EnrolForm, answer=EnrolCommand,
        summary="an enrolment token, for one gateway and one hour",
    ),
    Route(
        "GET", f"{_ALL}/<gateway>/states", _history, door="key", right="project.read", answer=GatewayPage,
        summary="what its state was, newest first",
    ),
    Route(
        "POST", f"{_ALL}/<gateway>/standing", _change_json, door="key", right="project.gateways", body=ChangeForm, answer=Fleet,
        summary="cut, restore or retire one",
    ),
)  # fmt: skip
