"""OIDC sign-in: authorization code with PKCE; state, nonce and verifier travel in a sealed cookie.

The token's algorithm is one of a fixed list, its keys are the issuer's.

A person is found by (provider, subject), never by an address alone. An address is believed where the provider says that it is
verified and it is of a domain that the provider is for; then it makes a new person or, where that is allowed, finds one.

Issuers and endpoints are addresses that people give: they are asked as webhooks are (`outbound/`).
"""

import base64
import contextlib
import hashlib
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from gatewayd.control.console import Console
from gatewayd.control.keyring.sealing import NONCE_BYTES, Unsealable, key_id, seal, unseal
from gatewayd.control.outbound.ask import Outbound, Unreachable, url_problem
from gatewayd.control.people.rights import Role
from gatewayd.control.projects.find import FIRST_ID
from gatewayd.control.store.statement import Statement

ALGORITHMS: Final = ["RS256", "ES256", "Ed25519"]
LIFE_MS: Final = 10 * 60_000
_SKEW_S: Final = 60
SECRET: Final = "oidc secret"
_REPLY_BYTES: Final = 256 * 1024
_SUBJECT: Final = 255
T = TypeVar("T")

OF_ANYBODY: Final = Statement("SELECT provider_id, name FROM oidc_providers ORDER BY provider_id LIMIT 20")
BY_ID: Final = Statement(
    "SELECT provider_id, org_id, name, issuer, client_id, sealed_secret, new_role, email_domains, links_accounts"
    " FROM oidc_providers WHERE provider_id = $1"
)
SECRETS: Final = Statement(
    "SELECT provider_id, org_id, sealed_secret FROM oidc_providers WHERE provider_id > $1 ORDER BY provider_id LIMIT 500"
)
SEAL_ANEW: Final = Statement("UPDATE oidc_providers SET sealed_secret = $3 WHERE provider_id = $1 AND sealed_secret = $2")
OF_PERSON: Final = Statement("SELECT person_id FROM oidc_identities WHERE provider_id = $1 AND person_id = $2")
IDENTITY: Final = Statement("SELECT person_id FROM oidc_identities WHERE provider_id = $1 AND subject = $2")
ADD_IDENTITY: Final = Statement(
    "INSERT INTO oidc_identities (provider_id, subject, person_id, created_ms) VALUES ($1, $2, $3, $4)"
)


class ProviderName(msgspec.Struct, frozen=True):
    provider_id: str
    name: str


class Provider(msgspec.Struct, frozen=True):
    provider_id: str
    org_id: str
    name: str
    issuer: str
    client_id: str
    sealed_secret: bytes
    new_role: Role | None
    email_domains: str  # JSON list, lower case
    links_accounts: bool

    def is_for(self, email: str) -> bool:
        """Whether it is believed for an address of this domain."""
        return email.rpartition("@")[2].lower() in msgspec.json.decode(self.email_domains, type=list[str])


class _Sealed(msgspec.Struct, frozen=True):
    provider_id: str
    org_id: str
    sealed_secret: bytes


class OidcRefused(Exception):
    """The sign-in does not hold; the text is for its person."""


class Flow(msgspec.Struct, frozen=True):
    """What the browser carries, sealed, from the start to the callback."""

    provider_id: str
    state: str
    nonce: str
    verifier: str
    next: str
    ends_ms: int


class Claims(msgspec.Struct, frozen=True):
    """Of an ID token that was checked."""

    subject: str
    email: str | None
    email_verified: bool
    name: str | None


class _Metadata(msgspec.Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str


class _Tokens(msgspec.Struct, frozen=True):
    id_token: str


def callback(console: Console) -> str:
    return f"{console.settings.public_url}/sign-in/oidc/callback"


async def begin(console: Console, provider: Provider, next_path: str) -> tuple[str, str]:
    """Where the browser goes, and the sealed flow for its cookie. Raises OidcRefused."""
    metadata = await metadata_of(console, provider.issuer)
    state, nonce, verifier = (base64.urlsafe_b64encode(console.entropy(32)).rstrip(b"=").decode() for _ in range(3))
    flow = Flow(provider.provider_id, state, nonce, verifier, next_path, console.now_ms() + LIFE_MS)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    query = urlencode(
        {
            "response_type": "code", "client_id": provider.client_id, "redirect_uri": callback(console),
            "scope": "openid email profile", "state": state, "nonce": nonce, "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
    )  # fmt: skip
    joined = "&" if urlsplit(metadata.authorization_endpoint).query else "?"
    sealed = seal(console.secrets.auth, "oidc flow", msgspec.json.encode(flow), console.entropy(NONCE_BYTES))
    return f"{metadata.authorization_endpoint}{joined}{query}", base64.urlsafe_b64encode(sealed).decode()


def flow_of(console: Console, cookie: str) -> Flow:
    """Raises OidcRefused."""
    try:
        flow = msgspec.json.decode(unseal(console.secrets.auth, "oidc flow", base64.urlsafe_b64decode(cookie)), type=Flow)
    except (ValueError, Unsealable):
        raise OidcRefused("this sign-in was not begun here; begin again") from None
    if console.now_ms() > flow.ends_ms:
        raise OidcRefused("this took too long; begin again")
    return flow


async def seal_providers_anew(console: Console) -> None:
    """Every client secret under the current key. One that cannot be opened stays as it is; its sign-in says so."""
    ring, after = console.secrets.kms, FIRST_ID
    while found := await console.store.rows(_Sealed, SECRETS, after):
        after = found[-1].provider_id
        for each in found:
            if key_id(each.sealed_secret) == ring.current.key_id:
                continue
            with contextlib.suppress(Unsealable):
                secret = unseal(ring, SECRET, each.sealed_secret, each.org_id, each.provider_id)
                sealed = seal(ring, SECRET, secret, console.entropy(NONCE_BYTES), each.org_id, each.provider_id)
                await console.store.run(SEAL_ANEW, each.provider_id, each.sealed_secret, sealed)


async def finish(console: Console, provider: Provider, flow: Flow, code: str) -> Claims:
    """Exchange the code and check the token: signature, algorithm, issuer, audience, expiry, nonce. Raises OidcRefused."""
    metadata = await metadata_of(console, provider.issuer)
    try:
        secret = unseal(console.secrets.kms, SECRET, provider.sealed_secret, provider.org_id, provider.provider_id).decode()
    except Unsealable:
        raise OidcRefused("the provider's secret cannot be opened: CONTROL_KMS_KEY lacks its key") from None
    form = {
        "grant_type": "authorization_code", "code": code, "redirect_uri": callback(console), "client_id": provider.client_id,
        "client_secret": secret, "code_verifier": flow.verifier,
    }  # fmt: skip
    tokens = await _ask(console, "POST", metadata.token_endpoint, _Tokens, form)
    keys = await _ask(console, "GET", metadata.jwks_uri, dict[str, Any])
    return check_token(tokens.id_token, keys, provider, flow.nonce, console.now_ms() // 1000)


def check_token(token: str, keys: Any, provider: Provider, nonce: str, now_s: int) -> Claims:
    """Pure: what an ID token says, once everything about it holds. Raises OidcRefused."""
    try:
        found = jwt.decode(token, KeySet.import_key_set(keys), algorithms=ALGORITHMS).claims
    except (JoseError, ValueError, KeyError, TypeError):
        raise OidcRefused("the provider's token does not verify") from None
    audience = found.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    expiry, begins = found.get("exp"), found.get("nbf", now_s)
    holds = (
        found.get("iss") == provider.issuer
        and provider.client_id in audiences
        and (len(audiences) == 1 or found.get("azp") == provider.client_id)
        and isinstance(expiry, int | float)
        and now_s < expiry + _SKEW_S
        and isinstance(begins, int | float)
        and begins <= now_s + _SKEW_S
        and found.get("nonce") == nonce
        and isinstance(found.get("sub"), str)
        and 0 < len(found["sub"]) <= _SUBJECT
        and "\0" not in found["sub"]
    )
    if not holds:
        raise OidcRefused("the provider's token is not for this sign-in")
    email, name = found.get("email"), found.get("name")
    return Claims(
        found["sub"],
        email if isinstance(email, str) else None,
        found.get("email_verified") is True,
        name if isinstance(name, str) else None,
    )


async def metadata_of(console: Console, issuer: str) -> _Metadata:
    """What the issuer says of itself. Raises OidcRefused."""
    found = await _ask(console, "GET", issuer.rstrip("/") + "/.well-known/openid-configuration", _Metadata)
    if found.issuer != issuer:
        raise OidcRefused("the provider names another issuer than was configured")
    if url_problem(found.authorization_endpoint) is not None:
        raise OidcRefused("the provider's authorization_endpoint is no address")
    return found


async def _ask(console: Console, method: str, url: str, shape: type[T], form: dict[str, str] | None = None) -> T:
    """The JSON of an answer. Raises OidcRefused."""
    body, headers = urlencode(form or {}).encode(), {"accept": "application/json"}
    if form is not None:
        headers["content-type"] = "application/x-www-form-urlencoded"
    try:
        answer = await Outbound(console.settings.outbound_networks).ask(method, url, body, headers, most_bytes=_REPLY_BYTES)
    except Unreachable as unreachable:
        raise OidcRefused(f"the provider cannot be asked: {unreachable}") from None
    if answer.status != 200:
        raise OidcRefused(f"the provider answered {answer.status}")
    try:
        return msgspec.json.decode(answer.body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise OidcRefused("the provider's answer is not what OpenID Connect says") from None
