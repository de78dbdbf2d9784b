"""Agent tokens: made, listed and revoked. Each change issues a bundle, so every gateway that polls knows within seconds."""

from typing import Final

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.control.moment import moment
from gatewayd.control.organisation.caps import check_cap
from gatewayd.control.organisation.routes import PLAN
from gatewayd.control.people.person import name_problem
from gatewayd.control.policies.issue import issue_bundle
from gatewayd.control.projects.find import FIRST_ID
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.store import Transaction
from gatewayd.control.tokens.text import RANDOM_BYTES, SHOWN, TokenKind, token_text
from gatewayd.control.tokens.token import FIND, MOST, OF_PROJECT, REVOKE, Token, add_token
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Answer, Refusal, json
from gatewayd.control.web.call import Call
from gatewayd.control.web.route import Route

_DAYS_MOST: Final = 3650
_DAY_MS: Final = 86_400_000


class NewToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`days`: how long it is valid; None: until it is revoked."""

    name: str
    kind: TokenKind = "live"
    days: int | None = 90
    calls_a_day: int | None = None
    rows_a_day: int | None = None


class TokenShown(msgspec.Struct, frozen=True):
    """`text` only in the answer that makes it."""

    id: str
    name: str
    kind: TokenKind
    begins: str
    person: str
    created_ms: int
    ends_ms: int | None
    used_ms: int | None
    revoked_ms: int | None
    text: str | None = None


class Tokens(msgspec.Struct, frozen=True):
    tokens: list[TokenShown]


def shown(token: Token, text: str | None = None) -> TokenShown:
    return TokenShown(
        token.token_id, token.name, token.kind, token.shown, token.person_id, token.created_ms, token.ends_ms, token.used_ms,
        token.revoked_ms, text,
    )  # fmt: skip


async def tokens_of(call: Call) -> list[TokenShown]:
    """One's own tokens, or all of the project for whoever may revoke others'."""
    found = await call.console.store.rows(Token, OF_PROJECT, call.project.project_id, FIRST_ID, MOST)
    if not call.may("project.tokens_of_others"):
        found = [token for token in found if token.person_id == call.person.person_id]
    return [shown(token) for token in found]


async def make_token(call: Call, wanted: NewToken) -> TokenShown:
    """The new token with its text, which is shown this once. Raises Refusal with what is wrong, CapReached."""
    wrong = name_problem(wanted.name)
    if wrong is None and wanted.days is not None and not 1 <= wanted.days <= _DAYS_MOST:
        wrong = f"days: found {wanted.days}; expected 1 to {_DAYS_MOST}, or none"
    for field in ("calls_a_day", "rows_a_day"):
        value = getattr(wanted, field)
        if wrong is None and value is not None and value < 1:
            wrong = f"{field}: found {value}; expected 1 or more, or none"
    if wrong is not None:
        raise Refusal(400, wrong)
    console, project = call.console, call.project
    now, issuer = moment(console), console.new_id()
    text = token_text(wanted.kind, console.entropy(RANDOM_BYTES))
    ends_ms = now.now_ms + wanted.days * _DAY_MS if wanted.days is not None else None
    token = Token(
        now.fresh_id, wanted.kind, wanted.name.strip(), call.person.person_id, b"", text[:SHOWN], now.now_ms, ends_ms, None, None,
        wanted.calls_a_day, wanted.rows_a_day,
    )  # fmt: skip

    async def work(tx: Transaction) -> None:
        caps = console.settings.plans.of(await tx.value(PLAN, call.org_id))
        held = await tx.rows(Token, OF_PROJECT, project.project_id, FIRST_ID, MOST)
        check_cap("tokens", sum(each.is_valid(now.now_ms) for each in held), caps.tokens)
        check_cap("tokens of one project", len(held), MOST)
        await add_token(tx, console, ProjectPlace(call.org_id, project.project_id, token.token_id), text, token)
        await issue_bundle(tx, console, call.org_id, project.project_id, "token made", now_ms=now.now_ms, issuer=issuer)
        act = Act("token.made", call.person.person_id, project.project_id, token.token_id, {"name": token.name})
        await now.record(tx, call.org_id, act)

    await console.store.transaction(work)
    return shown(token, text)


async def revoke_token(call: Call, token_id: str) -> None:
    """Raises Refusal 404 for a token that is not there, or is somebody else's and not this person's to revoke."""
    console, project = call.console, call.project
    now = moment(console)

    async def work(tx: Transaction) -> None:
        token = await tx.row(Token, FIND, project.project_id, token_id) if is_ulid(token_id) else None
        mine = token is not None and token.person_id == call.person.person_id
        if token is None or not (mine or call.may("project.tokens_of_others")):
            raise Refusal(404, "there is nothing here")
        if await tx.run(REVOKE, project.project_id, token_id, now.now_ms):
            await issue_bundle(
                tx, console, call.org_id, project.project_id, "token revoked", now_ms=now.now_ms, issuer=now.fresh_id
            )
            act = Act("token.revoked", call.person.person_id, project.project_id, token_id, {"name": token.name})
            await now.record(tx, call.org_id, act)

    await console.store.transaction(work)


async def _list(call: Call) -> Answer:
    return json(Tokens(await tokens_of(call)))


async def _make(call: Call) -> Answer:
    return json(await make_token(call, call.sent(NewToken)), 201)


async def _revoke(call: Call) -> Answer:
    await revoke_token(call, call.args["token"])
    return json(Tokens(await tokens_of(call)))


_ALL: Final = "/api/v1/projects/<project>/tokens"
ROUTES: Final = (
    Route("GET", _ALL, _list, door="key", right="project.tokens", answer=Tokens, summary="agent tokens"),
    Route("POST", _ALL, _make, door="key", right="project.tokens", body=NewToken, answer=TokenShown, summary="make one"),
    Route("DELETE", f"{_ALL}/<token>", _revoke, door="key", right="project.tokens", answer=Tokens, summary="revoke one"),
)
