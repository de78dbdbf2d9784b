"""The two requests of an OIDC sign-in: GETs, as redirects are. They change nothing but this browser's cookies and session."""

from typing import Final, cast

from gatewayd.audit.ids import is_ulid
from gatewayd.control.moment import Moment, moment
from gatewayd.control.organisation.caps import check_cap
from gatewayd.control.organisation.routes import COUNT_PEOPLE, PLAN
from gatewayd.control.people import oidc
from gatewayd.control.people.enter import enter
from gatewayd.control.people.oidc import ADD_IDENTITY, BY_ID, IDENTITY, OF_PERSON, Claims, OidcRefused, Provider
from gatewayd.control.people.person import (
    ADD,
    BY_EMAIL,
    JOIN_ORGANISATION,
    MEMBERSHIPS,
    NAME_CHARACTERS,
    Membership,
    Person,
    email_key,
    email_problem,
    name_problem,
)
from gatewayd.control.people.person import BY_ID as PERSON
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
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
        if query.get("iss", provider.issuer) != provider.issuer:  # RFC 9207: another provider's answer
            raise OidcRefused("this is another provider's answer than was asked")
        claims = await oidc.finish(console, provider, flow, query["code"])
        person_id = await _person(call, provider, claims)
    except OidcRefused as refused:
        raise Refusal(403, str(refused)) from None
    entered = enter(call, person_id, "oidc")
    await console.store.transaction(lambda tx: entered.begin(tx, provider.org_id))
    return entered.with_cookie(to(flow.next)).with_header("Set-Cookie", _cookie(call, "", 0))


async def _person(call: Call, provider: Provider, claims: Claims) -> str:
    """Who the claims are: known by subject; or found or made by a verified address, where the provider may."""
    console = call.console
    person_id, now = console.new_id(), moment(console)

    async def work(tx: Transaction) -> str:
        known = cast(str | None, await tx.value(IDENTITY, provider.provider_id, claims.subject))
        if known is not None:
            await _check_belongs(tx, provider, known)
            return known
        # Beyond ASCII two addresses that differ may be one account's: the letters fi and their ligature.
        if not claims.email_verified or claims.email is None or not claims.email.isascii() or email_problem(claims.email):
            raise OidcRefused("the provider does not say that your address is verified")
        if not provider.is_for(claims.email):
            raise OidcRefused("this provider is not for addresses of your domain")
        person = await tx.row(Person, BY_EMAIL, email_key(claims.email))
        if person is not None:
            return await _linked(tx, provider, claims, person.person_id, now)
        if provider.new_role is None or provider.new_role == "owner":
            raise OidcRefused("you have no account here yet; ask for an invitation")
        caps = console.settings.plans.of(await tx.value(PLAN, provider.org_id))
        if caps.people is not None:
            check_cap("people", await tx.value(COUNT_PEOPLE, provider.org_id, caps.people), caps.people)
        name = claims.name if claims.name is not None and name_problem(claims.name) is None else claims.email[:NAME_CHARACTERS]
        await tx.run(ADD, person_id, claims.email, email_key(claims.email), name, None, now.now_ms)
        await tx.run(ADD_IDENTITY, provider.provider_id, claims.subject, person_id, now.now_ms)
        await tx.run(JOIN_ORGANISATION, person_id, provider.org_id, provider.new_role, now.now_ms)
        details = {"email": claims.email, "provider": provider.name, "role": provider.new_role}
        await now.record(tx, provider.org_id, Act("person.joined", person_id, details=details))
        return person_id

    return await console.store.transaction(work)


async def _linked(tx: Transaction, provider: Provider, claims: Claims, person_id: str, now: Moment) -> str:
    """An account that was there before: the provider's only where it is allowed to, and once for each account."""
    if not provider.links_accounts:
        raise OidcRefused("there is an account with this address; sign in with its password")
    await _check_belongs(tx, provider, person_id)
    if await tx.value(OF_PERSON, provider.provider_id, person_id) is not None:
        raise OidcRefused("the account with this address belongs to somebody else at this provider")
    await tx.run(ADD_IDENTITY, provider.provider_id, claims.subject, person_id, now.now_ms)
    details = {"email": claims.email or "", "provider": provider.name}
    await now.record(tx, provider.org_id, Act("person.linked", person_id, details=details))
    return person_id


async def _check_belongs(tx: Transaction, provider: Provider, person_id: str) -> None:
    """A provider signs in people of its own organisation, who belong to no other: whoever runs it could else be anybody there."""
    person = await tx.row(Person, PERSON, person_id)
    if person is None or person.disabled_ms is not None:
        raise OidcRefused("this account is closed")
    organisations = {each.org_id for each in await tx.rows(Membership, MEMBERSHIPS, person_id)}
    if provider.org_id not in organisations:
        raise OidcRefused("you belong to this provider's organisation no more; ask for an invitation")
    if organisations != {provider.org_id}:
        raise OidcRefused("you belong to other organisations, too; sign in with your password or a passkey")


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
