"""The list of a project's tokens, newest first, a page at a time: one's own, or all for whoever may revoke others'."""

from typing import Final, Literal

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.control.store.statement import Statement
from gatewayd.control.tokens.token import Token
from gatewayd.control.web.answer import Refusal
from gatewayd.control.web.call import Call

PAGE: Final = 50
LAST_ID: Final = "7" + "Z" * 25
NAME_CHARACTERS: Final = 200
STATES: Final = ("", "valid", "over")

LISTED: Final = Statement(
    "SELECT token_id, kind, name, person_id, mac, shown, created_ms, ends_ms, used_ms, revoked_ms, calls_a_day, rows_a_day"
    " FROM agent_tokens WHERE project_id = $1 AND token_id < $2 AND ($3 OR person_id = $4)"
    " AND ($5 = '' OR ($5 = 'valid') = (revoked_ms IS NULL AND (ends_ms IS NULL OR ends_ms > $6)))"
    " AND ($7 = '' OR strpos(lower(name), $7) > 0) ORDER BY token_id DESC LIMIT $8"
)


class TokenFilter(msgspec.Struct, frozen=True):
    """`state`: `valid`, `over` (revoked or ended), or any. `name`: what the name has in it, upper and lower case alike."""

    state: Literal["", "valid", "over"] = ""
    name: str = ""

    @property
    def given(self) -> dict[str, str]:
        """What is asked for, as the address has it."""
        return {field: value for field, value in (("state", self.state), ("name", self.name)) if value}


def filter_of(call: Call) -> TokenFilter:
    """Raises Refusal."""
    state, name = call.incoming.query.get("state", ""), call.incoming.query.get("name", "")
    if state not in STATES:
        raise Refusal(400, f"state: found {state[:40]!r}; expected valid, over, or nothing")
    if len(name) > NAME_CHARACTERS or "\0" in name:
        raise Refusal(400, f"name: expected at most {NAME_CHARACTERS} characters")
    return TokenFilter(state, name)  # type: ignore[arg-type]  # one of STATES


async def listed(call: Call, wanted: TokenFilter, rows: int) -> tuple[list[Token], str | None]:
    """A page from the cursor in the address, and the cursor of the next one. Raises Refusal."""
    before = call.incoming.query.get("before", LAST_ID)
    if not is_ulid(before):
        raise Refusal(400, "before: expected the `next` of the page before")
    found = await call.console.store.rows(
        Token, LISTED, call.project.project_id, before, call.may("project.tokens_of_others"), call.person.person_id, wanted.state,
        call.console.now_ms(), wanted.name.lower(), rows + 1,
    )  # fmt: skip
    return found[:rows], found[rows - 1].token_id if len(found) > rows else None
