"""Signing in and out: by password, by passkey, and once more where something needs a fresh sign-in."""

from typing import Final

import msgspec

from gatewayd.control.people import passkeys, sessions
from gatewayd.control.people.enter import enter, set_cookie
from gatewayd.control.people.oidc import OF_ANYBODY, ProviderName
from gatewayd.control.people.passkeys import PasskeyRefused
from gatewayd.control.people.person import BY_EMAIL, BY_ID, Person, email_key
from gatewayd.control.people.throttle import Throttled, count_try, succeeded
from gatewayd.control.store.store import Transaction
from gatewayd.control.web.answer import Answer, json, own_path, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page

_PAGE: Final = "people/pages/sign_in.html"
_AGAIN: Final = "people/pages/again.html"
WRONG: Final = "address or password is wrong"


class SignInForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    email: str
    password: str
    next: str = "/"


class AgainForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    password: str
    next: str = "/"


async def sign_in_page(call: Call) -> Answer:
    if call.is_signed_in:
        return to(own_path(call.incoming.query.get("next")))
    return await _page(call, own_path(call.incoming.query.get("next")))


async def sign_in(call: Call) -> Answer:
    form = call.sent(SignInForm)
    console = call.console
    key = email_key(form.email)
    next_path = own_path(form.next)
    try:
        await count_try(console.store, console.now_ms(), account=key, address=call.incoming.client)
    except Throttled as throttled:
        answer = await _page(call, next_path, form.email, str(throttled), 429)
        return answer.with_header("Retry-After", str(throttled.wait_s))
    person = await console.store.row(Person, BY_EMAIL, key)
    right = await console.hashes.is_right(form.password, person.password if person is not None else None)
    if not right or person is None or person.disabled_ms is not None:
        return await _page(call, next_path, form.email, WRONG, 400)
    await succeeded(console.store, account=key)
    entered = enter(call, person.person_id, "password")
    await console.store.transaction(lambda tx: entered.begin(tx, None))
    return entered.with_cookie(to(next_path))


async def sign_out(call: Call) -> Answer:
    await call.console.store.run(sessions.END, call.session.session_hash)
    return to("/sign-in").with_header("Set-Cookie", set_cookie("", call.console.settings))


async def again_page(call: Call) -> Answer:
    return page(call, _AGAIN, next=own_path(call.incoming.query.get("next")), problem=None)


async def again(call: Call) -> Answer:
    """The password once more; the session stays the same."""
    form = call.sent(AgainForm)
    console = call.console
    key = email_key(call.person.email)
    try:
        await count_try(console.store, console.now_ms(), account=key, address=call.incoming.client)
    except Throttled as throttled:
        return page(call, _AGAIN, 429, next=own_path(form.next), problem=str(throttled))
    if not await console.hashes.is_right(form.password, call.person.password):
        return page(call, _AGAIN, 400, next=own_path(form.next), problem="this is not your password")
    await succeeded(console.store, account=key)
    await console.store.run(sessions.PROVED, call.session.session_hash, console.now_ms())
    return to(own_path(form.next))


async def passkey_options(call: Call) -> Answer:
    console = call.console
    await _slowed(call)
    site = passkeys.site_of(console.settings.public_url)
    options = await passkeys.begin_sign_in(console.store, site, console.entropy(32), console.now_ms())
    return Answer(200, options, "application/json")


async def passkey_sign_in(call: Call) -> Answer:
    """Also what signs in once more: a new session takes the place of the one there was."""
    console = call.console
    await _slowed(call)
    site, now_ms, answer = passkeys.site_of(console.settings.public_url), console.now_ms(), call.sent(bytes)
    cookie, session_id = sessions.new_cookie(console.entropy(32)), console.new_id()
    before = call.session if call.is_signed_in else None

    async def work(tx: Transaction) -> None:
        person = await tx.row(Person, BY_ID, await passkeys.finish_sign_in(tx, site, answer, now_ms))
        if person is None or person.disabled_ms is not None:
            raise PasskeyRefused("this account is closed")
        if before is not None:
            await tx.run(sessions.END, before.session_hash)
        org_id = before.org_id if before is not None and before.person_id == person.person_id else None
        await sessions.begin(tx, cookie, session_id, person.person_id, org_id, now_ms, "passkey", call.incoming.visitor)

    try:
        await console.store.transaction(work)
    except PasskeyRefused as refused:
        return json({"error": str(refused)}, 400)
    return json({"ok": True}).with_header("Set-Cookie", set_cookie(cookie, console.settings))


async def _slowed(call: Call) -> None:
    await count_try(call.console.store, call.console.now_ms(), address=call.incoming.client)


async def _page(call: Call, next_path: str, email: str = "", problem: str | None = None, status: int = 200) -> Answer:
    # Where there are many organisations, the list would show each one's name and offer strangers' providers to everybody.
    is_one = call.console.settings.self_host
    providers = await call.console.store.rows(ProviderName, OF_ANYBODY) if is_one else []
    return page(call, _PAGE, status, next=next_path, email=email, problem=problem, providers=providers)
