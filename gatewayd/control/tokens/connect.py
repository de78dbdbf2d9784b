"""Connect: agent tokens, and what is pasted into each client. A token's text is on the page that makes it and nowhere else."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

import msgspec

from gatewayd.control.databases.routes import databases_of
from gatewayd.control.gateways.fleet import fleet
from gatewayd.control.people.person import NAMES, Named
from gatewayd.control.tokens.listed import PAGE, TokenFilter, filter_of, listed
from gatewayd.control.tokens.routes import NewToken, TokenShown, make_token, revoke_token, shown
from gatewayd.control.tokens.snippets import PLACEHOLDER, server_name, snippets
from gatewayd.control.tokens.text import TokenKind
from gatewayd.control.tokens.token import Token
from gatewayd.control.web.answer import Answer, Refusal, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.csv_file import ROWS_MOST, as_csv, csv_file
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said

_PAGE: Final = "tokens/pages/connect.html"
_PATH: Final = "/mcp"
_COLUMNS: Final = ("token_id", "name", "kind", "begins", "person", "created_ms", "ends_ms", "used_ms", "revoked_ms")


class TokenForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Empty numbers: no end, no limit."""

    name: str
    kind: TokenKind = "live"
    days: str = "90"
    calls_a_day: str = ""
    rows_a_day: str = ""


async def _connect(call: Call) -> Answer:
    return await _page(call, TokenForm(""))


async def _make(call: Call) -> Answer:
    form = call.sent(TokenForm)
    try:
        wanted = NewToken(
            form.name, form.kind, _number("days", form.days), _number("calls_a_day", form.calls_a_day),
            _number("rows_a_day", form.rows_a_day),
        )  # fmt: skip
        made = await make_token(call, wanted)
    except Refusal as refusal:
        return await _page(call, form, problem=refusal.text, status=refusal.status)
    return await _page(call, TokenForm(""), made)


async def _revoke(call: Call) -> Answer:
    await revoke_token(call, call.args["token"])
    return said(call, to(f"/projects/{call.project.project_id}/connect"), "revoked")


async def _page(
    call: Call, form: TokenForm, made: TokenShown | None = None, problem: str | None = None, status: int = 200
) -> Answer:
    urls = await addresses(call)
    wanted = call.incoming.query.get("at", "")
    url = wanted if wanted in urls else urls[0]
    wanted_tokens = filter_of(call)
    found, more = await listed(call, wanted_tokens, PAGE)
    return page(
        call, _PAGE, status, tokens=[shown(each) for each in found], people=await _names(call, found), form=form, made=made,
        problem=problem, urls=urls, url=url, now_ms=call.console.now_ms(), has_token=made is not None,
        filters=wanted_tokens.given, next=_address(call, wanted_tokens, before=more) if more is not None else None,
        export=_address(call, wanted_tokens, "/tokens.csv"),
        snippets=snippets(server_name(call.project.name), url, (made and made.text) or PLACEHOLDER),
    )  # fmt: skip


async def _export(call: Call) -> Answer:
    wanted = filter_of(call)
    found, more = await listed(call, wanted, ROWS_MOST)
    people = await _names(call, found)
    rows = [
        (each.token_id, each.name, each.kind, each.shown, people.get(each.person_id), each.created_ms, each.ends_ms, each.used_ms,
         each.revoked_ms)
        for each in found
    ]  # fmt: skip
    following = _address(call, wanted, "/tokens.csv", more) if more is not None else None
    return csv_file("tokens", as_csv(rows, None if "before" in call.incoming.query else _COLUMNS), following)


async def _names(call: Call, tokens: Sequence[Token]) -> dict[str, str]:
    named = await call.console.store.rows(Named, NAMES, sorted({each.person_id for each in tokens}))
    return {each.person_id: each.name for each in named}


def _address(call: Call, wanted: TokenFilter, under: str = "/connect", before: str | None = None) -> str:
    asked = urlencode(wanted.given | ({"before": before} if before is not None else {}))
    return f"/projects/{call.project.project_id}{under}" + (f"?{asked}" if asked else "")


async def addresses(call: Call) -> list[str]:
    """Where agents of this project go, the likeliest first: our own where an address is kept here, what gateways are known by."""
    here = call.console.settings.public_url + _PATH
    gateways = (await fleet(call.console, call.project.project_id)).gateways
    known = [url.rstrip("/") for each in gateways if each.standing == "active" for url in each.public_urls]
    elsewhere = [url if url.endswith(_PATH) else url + _PATH for url in known]
    is_here = any(each.has_address for each in await databases_of(call)) or not elsewhere
    return list(dict.fromkeys(([here] if is_here else []) + elsewhere))


def _number(field: str, text: str) -> int | None:
    """None for nothing. Raises Refusal."""
    found = text.strip()
    if not found:
        return None
    if not (found.isascii() and found.isdigit() and len(found) < 16):
        raise Refusal(400, f"{field}: found {found[:40]!r}; expected a whole number, or nothing")
    return int(found)


_PAGES: Final = "/projects/<project>/connect"
ROUTES: Final = (
    Route("GET", _PAGES, _connect, door="person", right="project.tokens"),
    Route("GET", "/projects/<project>/tokens.csv", _export, door="person", right="project.tokens"),
    Route("POST", _PAGES, _make, door="person", right="project.tokens", body=TokenForm),
    Route("POST", "/projects/<project>/tokens/<token>/revoke", _revoke, door="person", right="project.tokens"),
)
