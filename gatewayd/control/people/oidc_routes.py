"""The two requests of an OIDC sign-in: GETs, as redirects are. They change nothing but this browser's cookies and session."""

from typing import Final, cast

from gatewayd.audit.ids import is_ulid
from gatewayd.control.people import oidc
from gatewayd.control.people.enter import enter
from gatewayd.control.people.oidc import ADD_IDENTITY, BY_ID, IDENTITY, Claims, OidcRefused, Provider
from gatewayd.control.people.person import ADD, BY_EMAIL, JOIN_ORGANISATION, Person, email_key, email_problem
from gatewayd.control.people.person import BY_ID as PERSON
from gatewayd.control.people.rights import ROLES
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act, record
from gatewayd.control.web.answer import Answer, Refusal, own_path, to
from gatewayd.control.web.call import Call

FLOW: Final = "gatewayd-oidc"


async def start(call: Call) -> Answer:
    provider = await _provider(call, call.args["provider"])
    try:
        address, flow = await oidc.begin(call.console, provider, own_path(call.incoming.query.get("next")))
    except OidcRefused as refused:
        raise Refusal(502, str(refused)) from None
    return to(address).with_header("Set-Cookie", _cookie(call, flow, 600))


async def callback(call: Call) -> Answer:
    console, query = call.console, call.incoming.query
    held = [
        value for key, _, value in (part.strip().partition("=") for part in call.incoming.headers.get("cookie", "").split(";"))
        if key == _name(call)
    ]  # fmt: skip
    try:
        flow = oidc.flow_of(console, held[0] if len(held) == 1 else "")
        if not query.get("code") or query.get("state") != flow.state:
            raise OidcRefused("the provider refused, or this sign-in was not begun in this browser")
        provider = await _provider(call, flow.provider_id)
        claims = await oidc.finish(console, provider, flow, query["code"])
        person_id = await _person(call, provider, claims)
    except OidcRefused as refused:
        raise Refusal(403, str(refused)) from None
    entered = enter(call, person_id, "oidc")
    await console.store.transaction(lambda tx: entered.begin(tx, provider.org_id))
    return entered.with_cookie(to(flow.next)).with_header("Set-Cookie", _cookie(call, "", 0))


async def _person(call: Call, provider: Provider, claims: Claims) -> str:
    """Who the claims are: known by subject; or made here, where the provider may and the address is verified and new."""
    console = call.console
    person_id, now_ms, event_id, salt = console.new_id(), console.now_ms(), console.new_id(), console.entropy(32)

    async def work(tx: Transaction) -> str:
        known = cast(str | None, await tx.value(IDENTITY, provider.provider_id, claims.subject))
        if known is not None:
            person = await tx.row(Person, PERSON, known)
            if person is None or person.disabled_ms is not None:
                raise OidcRefused("this account is closed")
            return known
        if provider.new_role not in ROLES or provider.new_role == "owner":
            raise OidcRefused("you have no account here yet; ask for an invitation")
        if not claims.email_verified or claims.email is None or email_problem(claims.email):
            raise OidcRefused("the provider does not say that your address is verified")
        if await tx.row(Person, BY_EMAIL, email_key(claims.email)) is not None:
            raise OidcRefused("there is an account with this address; sign in with its password")
        name = (claims.name or claims.email)[:200]
        await tx.run(ADD, person_id, claims.email, email_key(claims.email), name, None, now_ms)
        await tx.run(ADD_IDENTITY, provider.provider_id, claims.subject, person_id, now_ms)
        await tx.run(JOIN_ORGANISATION, person_id, provider.org_id, provider.new_role, now_ms)
        act = Act(
            "person.joined", person_id, details={"email": claims.email, "provider": provider.name, "role": provider.new_role}
        )
        await record(tx, provider.org_id, act, event_id, salt, now_ms)
        return person_id

    return await console.store.transaction(work)


async def _provider(call: Call, provider_id: str) -> Provider:
    provider = await call.console.store.row(Provider, BY_ID, provider_id) if is_ulid(provider_id) else None
    if provider is None:
        raise Refusal(404, "there is nothing here")
    return provider


def _name(call: Call) -> str:
    return call.console.settings.cookie(FLOW)


def _cookie(call: Call, value: str, seconds: int) -> str:
    secure = "; Secure" if call.console.settings.is_https else ""
    return f"{_name(call)}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}"
