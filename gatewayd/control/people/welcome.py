"""/welcome/<token>: what a one-time link opens. GET shows, POST takes the link: the first owner, somebody invited, a recovery."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from gatewayd.control.people import sessions
from gatewayd.control.people.enter import Entered, enter
from gatewayd.control.people.links import Link, find_link, take_link
from gatewayd.control.people.passwords import problem as password_problem
from gatewayd.control.people.person import (
    ADD,
    BY_EMAIL,
    BY_ID,
    JOIN_ORGANISATION,
    SET_PASSWORD,
    Person,
    email_key,
    email_problem,
    name_problem,
)
from gatewayd.control.people.throttle import count_try
from gatewayd.control.projects.find import SET_ROLE
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act, new_organisation_trail, record
from gatewayd.control.web.answer import Answer, Refusal, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page

GONE: Final = "this link was used, has ended, or never was; ask for a new one"
_PAGE: Final = "people/pages/welcome.html"

ADD_ORGANISATION: Final = Statement("INSERT INTO organisations (org_id, name, created_ms) VALUES ($1, $2, $3)")

Work = Callable[[Transaction], Awaitable[None]]


class WelcomeForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What each kind of link asks for; the rest stays empty."""

    password: str
    email: str = ""
    name: str = ""
    organisation: str = ""


class _Taken(Exception):
    """Refused inside of the transaction, so that the link stays."""


async def welcome_page(call: Call) -> Answer:
    link = await _link(call)
    return page(call, _PAGE, **await _shown(call, link))


async def welcome(call: Call) -> Answer:
    link = await _link(call)
    form = call.sent(WelcomeForm)
    shown = await _shown(call, link)
    if link.kind == "recovery":
        return await _recover(call, form, shown)
    if shown["known"]:
        return await _join(call, link, form, shown)
    email = form.email if link.email is None else link.email
    wrong = email_problem(email) or name_problem(form.name) or password_problem(form.password, email)
    if link.founds:
        wrong = wrong or name_problem(form.organisation)
    if wrong is not None:
        return page(call, _PAGE, 400, **shown | {"problem": wrong, "form": form})
    return await _new_person(call, form, email, shown)


async def _new_person(call: Call, form: WelcomeForm, email: str, shown: dict[str, Any]) -> Answer:
    console = call.console
    now_ms, person_id, new_org = console.now_ms(), console.new_id(), console.new_id()
    password = await call.console.hashes.make(form.password)
    entered = enter(call, person_id, "link")
    trail = new_organisation_trail(console)
    act_id, salt = console.new_id(), console.entropy(32)

    async def work(tx: Transaction) -> None:
        link = await take_link(tx, call.args["token"], now_ms)
        if link is None:
            raise _Taken(GONE)
        if await tx.row(Person, BY_EMAIL, email_key(email)) is not None:
            raise _Taken("there is an account with this address already; sign in first")
        await tx.run(ADD, person_id, email.strip(), email_key(email), form.name.strip(), password, now_ms)
        org_id = link.org_id
        if org_id is None:
            org_id = new_org
            await tx.run(ADD_ORGANISATION, org_id, form.organisation.strip(), now_ms)
            await trail.begin(tx, org_id)
        await _place(tx, link, person_id, org_id, now_ms)
        action = "organisation.founded" if link.founds else "invitation.accepted"
        act = Act(action, person_id, details={"email": email.strip(), "name": form.name.strip(), "role": link.role or ""})
        await record(tx, org_id, act, act_id, salt, now_ms)
        await entered.begin(tx, org_id)

    return await _done(call, work, entered, shown, form)


async def _join(call: Call, link: Link, form: WelcomeForm, shown: dict[str, Any]) -> Answer:
    """Somebody who has an account is invited: they show that it is theirs by its password."""
    console = call.console
    assert link.email is not None
    await count_try(console.store, console.now_ms(), account=email_key(link.email), address=call.incoming.client)
    person = await console.store.row(Person, BY_EMAIL, email_key(link.email))
    right = await console.hashes.is_right(form.password, person.password if person is not None else None)
    if not right or person is None or person.disabled_ms is not None:
        return page(call, _PAGE, 400, **shown | {"problem": "this is not the password of that account", "form": form})
    now_ms = console.now_ms()
    entered = enter(call, person.person_id, "link")
    act_id, salt = console.new_id(), console.entropy(32)

    async def work(tx: Transaction) -> None:
        taken = await take_link(tx, call.args["token"], now_ms)
        if taken is None or taken.org_id is None:
            raise _Taken(GONE)
        await _place(tx, taken, person.person_id, taken.org_id, now_ms)
        act = Act("invitation.accepted", person.person_id, details={"email": person.email, "role": taken.role or ""})
        await record(tx, taken.org_id, act, act_id, salt, now_ms)
        await entered.begin(tx, taken.org_id)

    return await _done(call, work, entered, shown, form)


async def _recover(call: Call, form: WelcomeForm, shown: dict[str, Any]) -> Answer:
    """A new password; every session of the account ends."""
    console = call.console
    wrong = password_problem(form.password, str(shown["email"]))
    if wrong is not None:
        return page(call, _PAGE, 400, **shown | {"problem": wrong, "form": form})
    now_ms = console.now_ms()
    password = await console.hashes.make(form.password)
    entered = enter(call, str(shown["person_id"]), "link")

    async def work(tx: Transaction) -> None:
        taken = await take_link(tx, call.args["token"], now_ms)
        if taken is None or taken.person_id is None:
            raise _Taken(GONE)
        await tx.run(SET_PASSWORD, taken.person_id, password, now_ms)
        await tx.run(sessions.END_ALL, taken.person_id)
        await entered.begin(tx, None)

    return await _done(call, work, entered, shown, form)


async def _done(
    call: Call, work: Callable[[Transaction], Awaitable[None]], entered: Entered, shown: dict[str, Any], form: WelcomeForm
) -> Answer:
    try:
        await call.console.store.transaction(work)
    except _Taken as taken:
        return page(call, _PAGE, 409, **shown | {"problem": str(taken), "form": form})
    return entered.with_cookie(to("/"))


async def _place(tx: Transaction, link: Link, person_id: str, org_id: str, now_ms: int) -> None:
    await tx.run(JOIN_ORGANISATION, person_id, org_id, link.role, now_ms)
    for each in link.in_projects:
        await tx.run(SET_ROLE, each.project, person_id, each.role, now_ms)


async def _link(call: Call) -> Link:
    if call.incoming.method == "POST":
        await count_try(call.console.store, call.console.now_ms(), link=call.incoming.client)
    link = await find_link(call.console.store, call.args["token"], call.console.now_ms())
    if link is None:
        raise Refusal(404, GONE)
    return link


async def _shown(call: Call, link: Link) -> dict[str, Any]:
    """What the page says before anything is typed."""
    email, known, person_id = link.email or "", False, link.person_id
    if person_id is not None:
        person = await call.console.store.row(Person, BY_ID, person_id)
        if person is None:
            raise Refusal(404, GONE)
        email = person.email
    elif link.email is not None:
        known = await call.console.store.row(Person, BY_EMAIL, email_key(link.email)) is not None
    return {"link": link, "email": email, "known": known, "person_id": person_id, "problem": None, "form": WelcomeForm("")}
