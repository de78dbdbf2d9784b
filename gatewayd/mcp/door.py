"""Admission to /mcp before a message is read: the agent's token, and whether there is a policy (docs/link-protocol.md, Agents).

Decided for each request, unlike the facts of a head alone (`request_head.py`): a token may be revoked, a bundle may arrive.
"""

import hmac
import re
import time
from collections.abc import Callable
from typing import Final, Literal, final

import msgspec

from gatewayd.link.formats.agent_tokens import AgentTable
from gatewayd.mcp.request_head import RequestHead

_BEARER: Final = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +([\x21-\x7e]{1,512})")
_NS_PER_MS: Final = 1_000_000


class UsedUp(msgspec.Struct, frozen=True):
    """The token has used what it may in a day; it may again after so many seconds."""

    retry_after_s: int


Turned = Literal["waiting", "unauthorized"] | UsedUp
"""Not in: there is no policy yet; the token is missing, unknown or has expired; it has used its day up."""


@final
class Door:
    """Admits requests. `agents` gives the tokens in force, None if none is needed; `is_waiting` says whether there is no policy
    yet.

    With `proxy_secret` the header X-Gateway-Token-Id counts only beside that secret, which then stands for the bearer. Where
    `is_linked` it counts only so: agents reach a linked gateway directly.
    """

    def __init__(
        self,
        agents: Callable[[], AgentTable | None] = lambda: None,
        is_waiting: Callable[[], bool] = lambda: False,
        *,
        proxy_secret: str | None = None,
        is_linked: bool = False,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._agents: Final = agents
        self._is_waiting: Final = is_waiting
        self._secret: Final = proxy_secret.encode() if proxy_secret is not None else None
        self._is_linked: Final = is_linked
        self._clock_ns: Final = clock_ns

    @property
    def binds(self) -> bool:
        """Whether a session belongs to the token that opened it, because every request carries an authenticated token."""
        return self._secret is not None or self._agents() is not None

    def enter(self, asked: RequestHead) -> RequestHead | Turned:
        """The head with the token's id for the audit, or the refusal. The id is None if no token is needed and no proxy names
        one."""
        if self._is_waiting():
            return "waiting"
        if self._from_proxy(asked):
            return asked
        table = self._agents()
        if table is None:
            return asked if self._secret is None and not self._is_linked else _as(asked, None)
        match = _BEARER.fullmatch(asked.found.get(b"authorization", b"").strip(b" \t"))
        if match is None or b"authorization" in asked.repeated:
            return "unauthorized"
        now_ms = self._clock_ns() // _NS_PER_MS
        token = table.find(match[1].decode("ascii"), now_ms)
        if token is not None and token.used_up_until is not None and now_ms < token.used_up_until:
            return UsedUp(-((now_ms - token.used_up_until) // 1000))
        return "unauthorized" if token is None else _as(asked, token.id)

    def _from_proxy(self, asked: RequestHead) -> bool:
        given = asked.found.get(b"x-gateway-proxy-secret")
        if self._secret is None or given is None or b"x-gateway-proxy-secret" in asked.repeated:
            return False
        return hmac.compare_digest(given, self._secret)


def _as(asked: RequestHead, token_id: str | None) -> RequestHead:
    return asked if asked.token_id == token_id else msgspec.structs.replace(asked, token_id=token_id)


OPEN: Final = Door()
