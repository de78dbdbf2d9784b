"""One's own account: name and zone, password, sessions, passkeys, which organisation is looked at.

The worked example of a folder: routes and rules here, pages beside them; what several folders need is in `people/`.
"""

from typing import Final

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.control.people import passkeys, sessions
from gatewayd.control.people.passkeys import Passkey, PasskeyRefused
from gatewayd.control.people.passwords import problem as password_problem
from gatewayd.control.people.person import SET_PASSWORD, SET_PROFILE, name_problem
from gatewayd.control.people.sessions import Session
from gatewayd.control.store.store import Transaction
from gatewayd.control.web.answer import Answer, Refusal, json, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said
from gatewayd.control.web.times import is_zone

_PAGE: Final = "account/pages/account.html"
_PASSKEY_NAME: Final = 100


class ProfileForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    zone: str


class PasswordForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    password: str


class OrganisationForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    organisation: str


async def account(call: Call) -> Answer:
    return await _page(call)


async def set_profile(call: Call) -> Answer:
    form = call.sent(ProfileForm)
    wrong = name_problem(form.name) or (None if is_zone(form.zone) else "no such time zone; expected one like Europe/Vienna")
    if wrong is not None:
        return await _page(call, wrong, 400)
    await call.console.store.run(SET_PROFILE, call.person.person_id, form.name.strip(), form.zone)
    return said(call, to("/account"), "saved")


async def set_password(call: Call) -> Answer:
    """Every other session of the account ends: a password is changed because somebody else may know it."""
    form, person = call.sent(PasswordForm), call.person
    wrong = password_problem(form.password, person.email)
    if wrong is not None:
        return await _page(call, wrong, 400)
    password, now_ms = await call.console.hashes.make(form.password), call.console.now_ms()

    async def work(tx: Transaction) -> None:
        await tx.run(SET_PASSWORD, person.person_id, password, now_ms)
        await tx.run(sessions.END_OTHERS, person.person_id, call.session.session_hash)

    await call.console.store.transaction(work)
    return said(call, to("/account"), "password-set")


async def end_session(call: Call) -> Answer:
    ended = await call.console.store.run(sessions.END_ONE, call.person.person_id, _id(call, "session"))
    if not ended:
        raise Refusal(404, "there is nothing here")
    return said(call, to("/account"), "ended")


async def end_others(call: Call) -> Answer:
    await call.console.store.run(sessions.END_OTHERS, call.person.person_id, call.session.session_hash)
    return said(call, to("/account"), "ended")


async def choose_organisation(call: Call) -> Answer:
    wanted = call.sent(OrganisationForm).organisation
    if wanted not in {each.org_id for each in call.memberships}:
        raise Refusal(404, "there is nothing here")
    await call.console.store.run(sessions.CHOOSE_ORGANISATION, call.session.session_hash, wanted)
    return to("/")


async def passkey_options(call: Call) -> Answer:
    console = call.console
    site = passkeys.site_of(console.settings.public_url)
    options = await passkeys.begin_registration(console.store, site, call.person, console.entropy(32), console.now_ms())
    return Answer(200, options, "application/json")


async def add_passkey(call: Call) -> Answer:
    console = call.console
    site, name = passkeys.site_of(console.settings.public_url), call.incoming.query.get("name", "passkey")[:_PASSKEY_NAME]
    try:
        await passkeys.finish_registration(
            console.store, site, call.person, call.sent(bytes), name, console.new_id(), console.now_ms()
        )
    except PasskeyRefused as refused:
        return json({"error": str(refused)}, 400)
    return json({"ok": True})


async def remove_passkey(call: Call) -> Answer:
    if not await call.console.store.run(passkeys.REMOVE, call.person.person_id, _id(call, "passkey")):
        raise Refusal(404, "there is nothing here")
    return said(call, to("/account"), "removed")


async def _page(call: Call, problem: str | None = None, status: int = 200) -> Answer:
    store, now_ms = call.console.store, call.console.now_ms()
    listed = await store.rows(Session, sessions.OF_PERSON, call.person.person_id, now_ms, now_ms - sessions.IDLE_MS)
    keys = await store.rows(Passkey, passkeys.OF_PERSON, call.person.person_id)
    return page(call, _PAGE, status, sessions=listed, passkeys=keys, problem=problem)


def _id(call: Call, name: str) -> str:
    if not is_ulid(call.args[name]):
        raise Refusal(404, "there is nothing here")
    return call.args[name]


ROUTES: Final = (
    Route("GET", "/account", account, door="person"),
    Route("POST", "/account/profile", set_profile, door="person", body=ProfileForm),
    Route("POST", "/account/password", set_password, door="person", again=True, body=PasswordForm),
    Route("POST", "/account/sessions/<session>/end", end_session, door="person"),
    Route("POST", "/account/sessions/end-others", end_others, door="person"),
    Route("POST", "/account/organisation", choose_organisation, door="person", body=OrganisationForm),
    Route("POST", "/account/passkeys/options", passkey_options, door="person", again=True),
    Route("POST", "/account/passkeys", add_passkey, door="person", again=True, body=bytes),
    Route("POST", "/account/passkeys/<passkey>/remove", remove_passkey, door="person", again=True),
)
