"""The sign-in providers of an organisation (OpenID Connect): what is configured, adding one, removing one."""

import re
from typing import Final

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.control.keyring.sealing import NONCE_BYTES, seal
from gatewayd.control.moment import moment
from gatewayd.control.outbound.ask import url_problem
from gatewayd.control.people import oidc
from gatewayd.control.people.oidc import OidcRefused
from gatewayd.control.people.person import name_problem
from gatewayd.control.people.rights import ROLES, Role
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Answer, Refusal, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said

_PAGE: Final = "people/pages/providers.html"
_PATH: Final = "/sign-in-providers"
_MOST: Final = 10
_TEXT: Final = 500
_DOMAIN: Final = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")
NEW_ROLES: Final = tuple(role for role in ROLES if role != "owner")

OF_ORGANISATION: Final = Statement(
    "SELECT provider_id, name, issuer, client_id, new_role, email_domains, links_accounts, created_ms FROM oidc_providers"
    " WHERE org_id = $1 ORDER BY provider_id LIMIT 100"
)
ADD: Final = Statement(
    "INSERT INTO oidc_providers (provider_id, org_id, name, issuer, client_id, sealed_secret, new_role, email_domains,"
    " links_accounts, created_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
)
COUNT: Final = Statement("SELECT count(*) FROM (SELECT 1 FROM oidc_providers WHERE org_id = $1 LIMIT $2) AS few")
REMOVE: Final = Statement("DELETE FROM oidc_providers WHERE org_id = $1 AND provider_id = $2")
REMOVE_IDENTITIES: Final = Statement("DELETE FROM oidc_identities WHERE provider_id = $1")


class ProviderForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`new_role` empty: nobody new. `domains`: of mail addresses, apart by spaces or commas."""

    name: str
    issuer: str
    client_id: str
    client_secret: str
    domains: str
    new_role: str = ""
    links_accounts: bool = False


class ProviderShown(msgspec.Struct, frozen=True):
    provider_id: str
    name: str
    issuer: str
    client_id: str
    new_role: Role | None
    email_domains: str
    links_accounts: bool
    created_ms: int

    @property
    def domains(self) -> list[str]:
        return msgspec.json.decode(self.email_domains, type=list[str])


async def _providers(call: Call) -> Answer:
    return await _page(call)


async def _add(call: Call) -> Answer:
    form, console = call.sent(ProviderForm), call.console
    domains = form.domains.replace(",", " ").lower().split()
    wrong = _problem(call, form, domains)
    if wrong is None:
        try:
            await oidc.metadata_of(console, form.issuer.strip())
        except OidcRefused as refused:
            wrong = f"issuer: {refused}"
    if wrong is not None:
        return await _page(call, form, wrong, 400)
    now = moment(console)
    secret = seal(
        console.secrets.kms, oidc.SECRET, form.client_secret.strip().encode(), console.entropy(NONCE_BYTES), call.org_id,
        now.fresh_id,
    )  # fmt: skip
    kept = msgspec.json.encode(sorted(set(domains))).decode()

    async def work(tx: Transaction) -> None:
        if int(await tx.value(COUNT, call.org_id, _MOST)) >= _MOST:
            raise Refusal(409, f"there are {_MOST} providers, which is the most; remove one first")
        await tx.run(
            ADD, now.fresh_id, call.org_id, form.name.strip(), form.issuer.strip(), form.client_id.strip(), secret,
            form.new_role or None, kept, form.links_accounts, now.now_ms,
        )  # fmt: skip
        details = {
            "name": form.name.strip(), "issuer": form.issuer.strip(), "domains": " ".join(domains), "new_role": form.new_role,
            "links_accounts": str(form.links_accounts).lower(),
        }  # fmt: skip
        await now.record(tx, call.org_id, Act("provider.added", call.person.person_id, target=now.fresh_id, details=details))

    await console.store.transaction(work)
    return said(call, to(_PATH), "saved")


async def _remove(call: Call) -> Answer:
    """Who signed in by it can do so no more; their sessions go on until they end."""
    provider_id, now = call.args["provider"], moment(call.console)

    async def work(tx: Transaction) -> None:
        if not is_ulid(provider_id) or not await tx.run(REMOVE, call.org_id, provider_id):
            raise Refusal(404, "there is nothing here")
        await tx.run(REMOVE_IDENTITIES, provider_id)
        await now.record(tx, call.org_id, Act("provider.removed", call.person.person_id, target=provider_id))

    await call.console.store.transaction(work)
    return said(call, to(_PATH), "removed")


def _problem(call: Call, form: ProviderForm, domains: list[str]) -> str | None:
    wrong = name_problem(form.name)
    if wrong is not None:
        return f"name: {wrong}"
    wrong = url_problem(form.issuer.strip())
    if wrong is not None:
        return f"issuer: {wrong}"
    for field, text in (("client_id", form.client_id), ("client_secret", form.client_secret)):
        if not text.strip() or len(text) > _TEXT or not text.isprintable():
            return f"{field}: expected 1 to {_TEXT} characters"
    if not domains or not all(_DOMAIN.fullmatch(each) for each in domains):
        return "domains: expected those of your people's mail addresses, such as example.com"
    if form.new_role not in ("", *NEW_ROLES):
        return f"new_role: expected one of {', '.join(NEW_ROLES)}, or nothing"
    if form.new_role == "admin" and not call.may("org.people"):
        return "new_role: you may not make admins"
    return None


async def _page(call: Call, form: ProviderForm | None = None, problem: str | None = None, status: int = 200) -> Answer:
    listed = await call.console.store.rows(ProviderShown, OF_ORGANISATION, call.org_id)
    shown = msgspec.structs.replace(form, client_secret="") if form is not None else ProviderForm("", "", "", "", "")
    return page(
        call, _PAGE, status, providers=listed, form=shown, problem=problem, roles=NEW_ROLES, callback=oidc.callback(call.console),
        public_url=call.console.settings.public_url, is_listed=call.console.settings.self_host,
    )  # fmt: skip


ROUTES: Final = (
    Route("GET", _PATH, _providers, door="person", right="org.settings"),
    Route("POST", _PATH, _add, door="person", right="org.owners", again=True, body=ProviderForm),
    Route("POST", f"{_PATH}/<provider>/remove", _remove, door="person", right="org.owners", again=True),
)
