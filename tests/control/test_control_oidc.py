"""Sign-in by OpenID Connect, against a provider on a real socket: who gets in, and every token and answer that lets nobody in."""

import base64
import hmac
import ipaddress
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from gatewayd.control.people.oidc import LIFE_MS
from gatewayd.control.settings import ControlSettings
from tests.conftest import Postgres
from tests.control.browser import Browser
from tests.control.conftest import OWNER, Plane
from tests.control.openid_provider import CLIENT, SECRET, OpenIdProvider, Sign, providing, signed

HERE = (ipaddress.ip_network("127.0.0.0/8"),)


@pytest.fixture
def settings(settings: ControlSettings) -> ControlSettings:
    return msgspec.structs.replace(settings, outbound_networks=HERE)


@pytest.fixture
async def provider() -> AsyncIterator[OpenIdProvider]:
    async with providing() as provider:
        yield provider


def form_of(provider: OpenIdProvider, **changes: str) -> dict[str, str]:
    return {
        "name": "Login", "issuer": provider.issuer, "client_id": CLIENT, "client_secret": SECRET, "domains": "example.com",
        "new_role": "reviewer",
    } | changes  # fmt: skip


async def add(owner: Browser, provider: OpenIdProvider, **changes: str) -> str:
    """Where its sign-in starts."""
    answer = await owner.post("/sign-in-providers", form_of(provider, **changes))
    assert answer.status_code == 303, answer.text
    shown = (await Browser(owner.url).get("/sign-in")).text
    return shown.partition('href="/sign-in/oidc/start/')[2].partition("?")[0]


async def begin(browser: Browser, provider_id: str, next_path: str = "/account") -> str:
    answer = await browser.get(f"/sign-in/oidc/start/{provider_id}?next={next_path}")
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def flow_of(browser: Browser) -> str:
    """The name of the cookie that carries a sign-in that has begun."""
    return browser.session.replace("gatewayd", "gatewayd-oidc")


def state_in(address: str) -> str:
    return httpx.URL(address).params["state"]


async def come_back(browser: Browser, state: str, code: str, more: str = "") -> httpx.Response:
    return await browser.get(f"/sign-in/oidc/callback?state={state}&code={code}{more}")


async def sign_in(
    browser: Browser, provider: OpenIdProvider, provider_id: str, sign: Sign = signed, **claims: Any
) -> httpx.Response:
    address = await begin(browser, provider_id)
    return await come_back(browser, state_in(address), provider.grant(address, sign, **claims))


async def test_somebody_new_joins_and_is_known_again(
    plane: Plane, owner: Browser, provider: OpenIdProvider, postgres: Postgres, store_url: str
) -> None:
    provider_id = await add(owner, provider)
    first, second = plane.browser(), plane.browser()
    first.cookies[first.session] = "fixed-by-somebody-else"
    answer = await sign_in(first, provider, provider_id)
    assert (answer.status_code, answer.headers["location"]) == (303, "/account")
    assert first.cookies[first.session] != "fixed-by-somebody-else"
    assert flow_of(first) not in first.cookies, "the flow is over"
    assert "Grace Hopper" in (await first.get("/account")).text
    assert "reviewer" in (await owner.get("/people")).text
    assert "person.joined" in (await owner.get("/trail")).text.replace("<wbr>", "")
    again = await sign_in(second, provider, provider_id, email="other@elsewhere.example", email_verified=None)
    assert again.status_code == 303, "known by subject, whatever the address is now"
    assert "Grace Hopper" in (await second.get("/account")).text
    assert len(postgres.query("SELECT 1 FROM people", store_url)) == 2


def none(_provider: OpenIdProvider, claims: dict[str, Any]) -> str:
    return ".".join([part({"alg": "none", "typ": "JWT"}), part(claims), ""])


def with_public_key(provider: OpenIdProvider, claims: dict[str, Any]) -> str:
    """HS256 with what everybody knows as the key: taken by whoever lets the token choose."""
    head = ".".join([part({"alg": "HS256", "kid": provider.kid}), part(claims)])
    return head + "." + encoded(hmac.digest(provider.key.as_pem(private=False), head.encode(), "sha256"))


def by_another(provider: OpenIdProvider, claims: dict[str, Any]) -> str:
    return jwt.encode({"alg": "RS256", "kid": provider.kid}, claims, RSAKey.generate_key(2048), algorithms=["RS256"])


def by_its_own_key(_provider: OpenIdProvider, claims: dict[str, Any]) -> str:
    key = RSAKey.generate_key(2048)
    return jwt.encode({"alg": "RS256", "jwk": key.as_dict(private=False)}, claims, key, algorithms=["RS256"])


def changed(provider: OpenIdProvider, claims: dict[str, Any]) -> str:
    head, _, mark = signed(provider, claims).split(".")
    return ".".join([head, part(claims | {"sub": "somebody-else"}), mark])


def weak(provider: OpenIdProvider, claims: dict[str, Any]) -> str:
    return jwt.encode({"alg": "RS384", "kid": provider.kid}, claims, provider.key, algorithms=["RS384"])


def not_a_token(_provider: OpenIdProvider, _claims: dict[str, Any]) -> str:
    return "a.b"


def part(value: object) -> str:
    return encoded(msgspec.json.encode(value))


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


async def test_tokens_that_do_not_hold_let_nobody_in(
    plane: Plane, owner: Browser, provider: OpenIdProvider, postgres: Postgres, store_url: str
) -> None:
    provider_id, now = await add(owner, provider), int(time.time())
    claims: tuple[dict[str, Any], ...] = (
        {"iss": "https://other.example"}, {"iss": provider.issuer + "/"}, {"iss": None}, {"aud": "another"}, {"aud": None},
        {"aud": [CLIENT, "another"]}, {"aud": ["another"]}, {"exp": now - 120}, {"exp": None}, {"exp": "tomorrow"},
        {"nbf": now + 3600}, {"nonce": "another"}, {"nonce": None}, {"sub": ""}, {"sub": None}, {"sub": 7}, {"sub": "a\0b"},
        {"sub": "x" * 300}, {"email_verified": False}, {"email_verified": None}, {"email_verified": "true"}, {"email": None},
        {"email": "grace@evil.example"}, {"email": "grace@example.com.evil.example"}, {"email": "grace@evil.example@example.com"},
        {"email": "two\nlines@example.com"}, {"email": "\ufb01nn@example.com"},
    )  # fmt: skip
    for wrong in claims:
        browser = plane.browser()
        answer = await sign_in(browser, provider, provider_id, **wrong)
        assert answer.status_code == 403, wrong
        assert browser.session not in browser.cookies, wrong
    for sign in (none, with_public_key, by_another, by_its_own_key, changed, weak, not_a_token):
        answer = await sign_in(plane.browser(), provider, provider_id, sign)
        assert answer.status_code == 403, sign
        assert "does not verify" in answer.text, sign
    assert len(postgres.query("SELECT 1 FROM people", store_url)) == 1
    assert len(postgres.query("SELECT 1 FROM sessions", store_url)) == 1


async def test_keys_of_the_provider_turn(plane: Plane, owner: Browser, provider: OpenIdProvider) -> None:
    provider_id = await add(owner, provider)
    assert (await sign_in(plane.browser(), provider, provider_id)).status_code == 303
    before, kid = provider.key, provider.kid

    def by_the_old(_provider: OpenIdProvider, claims: dict[str, Any]) -> str:
        return jwt.encode({"alg": "RS256", "kid": kid}, claims, before, algorithms=["RS256"])

    provider.turn_keys()
    assert (await sign_in(plane.browser(), provider, provider_id)).status_code == 303
    assert (await sign_in(plane.browser(), provider, provider_id, by_the_old)).status_code == 403
    provider.kept_keys = [before]
    assert (await sign_in(plane.browser(), provider, provider_id, by_the_old)).status_code == 303


async def test_an_answer_belongs_to_the_browser_and_the_flow_that_began_it(
    plane: Plane, owner: Browser, provider: OpenIdProvider
) -> None:
    provider_id = await add(owner, provider)
    browser, attacker = plane.browser(), plane.browser()
    address, theirs = await begin(browser, provider_id), await begin(attacker, provider_id)
    code = provider.grant(address)
    assert (await come_back(plane.browser(), state_in(address), code)).status_code == 403, "without the cookie"
    assert (await come_back(browser, state_in(theirs), provider.grant(theirs))).status_code == 403, "login CSRF"
    assert (await come_back(attacker, state_in(theirs), code)).status_code == 403, "a code injected: PKCE"
    address = await begin(browser, provider_id)
    assert (await browser.get(f"/sign-in/oidc/callback?state={state_in(address)}&error=access_denied")).status_code == 403
    address = await begin(browser, provider_id)
    mixed = await come_back(browser, state_in(address), provider.grant(address), "&iss=https://other.example")
    assert mixed.status_code == 403, "RFC 9207"
    address = await begin(browser, provider_id)
    held, code = browser.cookies[flow_of(browser)], provider.grant(address)
    browser.cookies[flow_of(browser)] = held[:-4] + "AAAA"
    assert (await come_back(browser, state_in(address), code)).status_code == 403
    browser.cookies[flow_of(browser)] = held
    assert (await come_back(browser, state_in(address), code)).status_code == 303
    browser.cookies[flow_of(browser)] = held
    assert (await come_back(browser, state_in(address), code)).status_code == 403, "a code works once"
    assert LIFE_MS == 600_000


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "/%5Cevil.example", "/%0Aevil", "evil"])
async def test_it_leads_nowhere_else(plane: Plane, owner: Browser, provider: OpenIdProvider, target: str) -> None:
    browser, provider_id = plane.browser(), await add(owner, provider)
    address = await begin(browser, provider_id, target)
    answer = await come_back(browser, state_in(address), provider.grant(address))
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


async def test_an_account_that_is_there_is_the_provider_s_only_where_it_may(
    plane: Plane, owner: Browser, provider: OpenIdProvider
) -> None:
    careful = await add(owner, provider)
    answer = await sign_in(plane.browser(), provider, careful, email=OWNER)
    assert answer.status_code == 403
    assert "sign in with its password" in answer.text
    await owner.post(f"/sign-in-providers/{careful}/remove")
    links = await add(owner, provider, links_accounts="true")
    for wrong in ({"email_verified": False}, {"email_verified": None}):
        assert (await sign_in(plane.browser(), provider, links, email=OWNER, **wrong)).status_code == 403
    browser = plane.browser()
    assert (await sign_in(browser, provider, links, email=OWNER.upper())).status_code == 303
    assert OWNER in (await browser.get("/account")).text
    other = await sign_in(plane.browser(), provider, links, email=OWNER, sub="mallory")
    assert other.status_code == 403, "one account has one subject at a provider"
    assert "person.linked" in (await owner.get("/trail")).text.replace("<wbr>", "")


async def test_who_left_or_belongs_elsewhere_too_is_not_signed_in(
    plane: Plane, owner: Browser, provider: OpenIdProvider, postgres: Postgres, store_url: str
) -> None:
    provider_id = await add(owner, provider)
    assert (await sign_in(plane.browser(), provider, provider_id)).status_code == 303
    grace = "(SELECT person_id FROM people WHERE email_key = 'grace@example.com')"
    another = "'01890000-0000-7000-8000-000000000000'"
    postgres.execute(f"INSERT INTO organisations (org_id, name, created_ms) VALUES ({another}, 'Other', 1)", store_url)
    postgres.execute(
        f"INSERT INTO memberships (person_id, org_id, role, since_ms) SELECT {grace}, {another}, 'owner', 1", store_url
    )  # fmt: skip
    answer = await sign_in(plane.browser(), provider, provider_id)
    assert answer.status_code == 403
    assert "other organisations" in answer.text
    postgres.execute(f"DELETE FROM memberships WHERE person_id = {grace} AND org_id <> {another}", store_url)
    assert (await sign_in(plane.browser(), provider, provider_id)).status_code == 403
    postgres.execute(f"DELETE FROM memberships WHERE person_id = {grace}", store_url)
    assert (await sign_in(plane.browser(), provider, provider_id)).status_code == 403
    await owner.post(f"/sign-in-providers/{provider_id}/remove")
    assert (await plane.browser().get(f"/sign-in/oidc/start/{provider_id}")).status_code == 404


async def test_without_a_role_for_somebody_new_nobody_new_comes(plane: Plane, owner: Browser, provider: OpenIdProvider) -> None:
    answer = await sign_in(plane.browser(), provider, await add(owner, provider, new_role=""))
    assert answer.status_code == 403
    assert "ask for an invitation" in answer.text


async def test_a_provider_that_answers_nonsense_is_an_answer_not_a_crash(
    plane: Plane, owner: Browser, provider: OpenIdProvider
) -> None:
    provider_id = await add(owner, provider)
    browser = plane.browser()
    address = await begin(browser, provider_id)
    code = provider.grant(address)
    start = f"/sign-in/oidc/start/{provider_id}"
    for raw in (b"", b"<html>", b"[]", b'{"issuer": 7}', b"\xff\xfe", b" " * 300_000):
        provider.raw = raw
        assert (await browser.get(start)).status_code == 502, raw[:20]
        assert (await come_back(browser, state_in(address), code)).status_code == 403, raw[:20]
    provider.raw = None
    for wrong in ({"issuer": "https://other.example"}, {"authorization_endpoint": "javascript:alert(1)"}):
        provider.metadata = wrong
        assert (await browser.get(start)).status_code == 502, wrong
    provider.metadata = {"token_endpoint": "http://169.254.169.254/latest/meta-data"}
    assert "CONTROL_OUTBOUND_NETWORKS" in (await come_back(browser, state_in(address), code)).text


async def test_what_is_configured_is_shown_without_the_secret(plane: Plane, owner: Browser, provider: OpenIdProvider) -> None:
    for field, value in (("issuer", "ftp://x"), ("domains", ""), ("domains", "com"), ("new_role", "owner"), ("client_id", " ")):
        answer = await owner.post("/sign-in-providers", form_of(provider, **{field: value}))
        assert answer.status_code == 400
        assert f"{field}: " in answer.text
        assert SECRET not in answer.text
    provider.metadata = {"issuer": "https://other.example"}
    assert (await owner.post("/sign-in-providers", form_of(provider))).status_code == 400
    provider.metadata = {}
    await add(owner, provider)
    shown = (await owner.get("/sign-in-providers")).text
    assert provider.issuer in shown
    assert f"{plane.url}/sign-in/oidc/callback" in shown
    assert SECRET not in shown + (await owner.get("/trail")).text


async def test_an_issuer_in_this_network_is_not_asked_unless_named(
    plane: Plane, owner: Browser, provider: OpenIdProvider
) -> None:
    local = provider.issuer.replace("127.0.0.1", "[::1]")
    answer = await owner.post("/sign-in-providers", form_of(provider, issuer=local))
    assert answer.status_code == 400
    assert "CONTROL_OUTBOUND_NETWORKS" in answer.text
    assert provider.requests == 0
