"""API keys: one's own, and for those who may, everybody's. The text of a key is shown once."""

from typing import Final

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.control.api_keys.api_key import FIND, LISTED, REVOKE, ApiKey, add_key, new_text
from gatewayd.control.people.person import name_problem
from gatewayd.control.people.rights import PEOPLE_ONLY, RIGHTS, scopes
from gatewayd.control.projects.visible import visible
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act, record
from gatewayd.control.web.answer import Answer, Refusal, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.gate import Standing, project_of
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said

_PAGE: Final = "api_keys/pages/api_keys.html"
_LISTED: Final = 50
LAST_ID: Final = "7" + "Z" * 25
_DAYS_MOST: Final = 3650
SCOPES: Final = tuple(sorted(RIGHTS - PEOPLE_ONLY))


class KeyForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    scopes: list[str] = []
    project: str = ""
    days: int = 90


async def keys(call: Call) -> Answer:
    return await _page(call)


async def make(call: Call) -> Answer:
    form, console = call.sent(KeyForm), call.console
    wrong = name_problem(form.name)
    unknown = set(form.scopes) - set(SCOPES)
    if wrong is None and (unknown or not form.scopes):
        wrong = "choose at least one scope of the list"
    if wrong is None and not 1 <= form.days <= _DAYS_MOST:
        wrong = f"expected a life of 1 to {_DAYS_MOST} days"
    if wrong is not None:
        return await _page(call, wrong, 400)
    standing = Standing(call.person, call.session, call.membership, call.memberships)
    if form.project and await project_of(console, standing, form.project) is None:
        raise Refusal(404, "there is nothing here")
    text, key_id, now_ms = new_text(console.entropy(32)), console.new_id(), console.now_ms()
    event_id, salt = console.new_id(), console.entropy(32)

    async def work(tx: Transaction) -> None:
        await add_key(
            tx, console, text, key_id, org_id=call.org_id, project_id=form.project or None, person_id=call.person.person_id,
            name=form.name.strip(), rights=scopes(form.scopes), now_ms=now_ms, ends_ms=now_ms + form.days * 86_400_000,
        )  # fmt: skip
        details = {"name": form.name.strip(), "scopes": " ".join(sorted(form.scopes))}
        act = Act("api_key.made", call.person.person_id, form.project or None, key_id, details)
        await record(tx, call.org_id, act, event_id, salt, now_ms)

    await console.store.transaction(work)
    return await _page(call, text=text)


async def revoke(call: Call) -> Answer:
    console, key_id = call.console, call.args["key"]
    event_id, salt, now_ms = console.new_id(), console.entropy(32), console.now_ms()

    async def work(tx: Transaction) -> None:
        key = await tx.row(ApiKey, FIND, call.org_id, key_id) if is_ulid(key_id) else None
        if key is None or (key.person_id != call.person.person_id and not call.may("org.keys")):
            raise Refusal(404, "there is nothing here")
        if await tx.run(REVOKE, call.org_id, key_id, now_ms):
            act = Act("api_key.revoked", call.person.person_id, key.project_id, key_id, {"name": key.name})
            await record(tx, call.org_id, act, event_id, salt, now_ms)

    await console.store.transaction(work)
    return said(call, to("/keys"), "key-revoked")


async def _page(call: Call, problem: str | None = None, status: int = 200, text: str | None = None) -> Answer:
    before = call.incoming.query.get("before", "")
    asked = (before if is_ulid(before) else LAST_ID, call.may("org.keys"), call.person.person_id, _LISTED + 1)
    found = await call.console.store.rows(ApiKey, LISTED, call.org_id, *asked)
    more = found[_LISTED - 1].key_id if len(found) > _LISTED else None
    options = [("", "every one that I may reach"), *((each.project_id, each.name) for each in await visible(call))]
    return page(
        call, _PAGE, status, keys=found[:_LISTED], more=more, scopes=SCOPES, options=options, problem=problem, text=text,
        now_ms=call.console.now_ms(),
    )  # fmt: skip


ROUTES: Final = (
    Route("GET", "/keys", keys, door="person", right="org.read"),
    Route("POST", "/keys", make, door="person", right="org.read", again=True, body=KeyForm),
    Route("POST", "/keys/<key>/revoke", revoke, door="person", right="org.read", again=True),
)
