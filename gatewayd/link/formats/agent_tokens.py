"""Tokens of agents: how a bundle names them, and which one a bearer is (docs/link-protocol.md, Agents). Pure."""

import hashlib
import hmac
from collections.abc import Iterable

from gatewayd.link.formats.bundle import Agents, AgentToken


def token_mac(token_key: bytes, token: str) -> str:
    """What stands for a token in a bundle: HMAC-SHA256 under the project's token key, in hex."""
    return hmac.new(token_key, token.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()


class AgentTable:
    """The agents of one bundle. A look-up takes the same time whatever the bearer: it compares MACs, of which nobody without the
    token key can choose one."""

    def __init__(self, agents: Agents) -> None:
        self._key = bytes.fromhex(agents.token_key)
        self._by_mac = {token.mac: token for token in agents.tokens}
        self._by_id = {token.id: token for token in agents.tokens}

    @property
    def session_key(self) -> bytes:
        """What the project's engines make the ids of MCP sessions with."""
        return hmac.digest(self._key, b"gatewayd mcp sessions", "sha256")

    def find(self, bearer: str, now_ms: int) -> AgentToken | None:
        """The token that the bearer is, None when it is unknown or has expired."""
        mac = token_mac(self._key, bearer)
        token = self._by_mac.get(mac)
        if token is None or not hmac.compare_digest(token.mac, mac):
            return None
        return None if token.expires_at is not None and now_ms >= token.expires_at else token

    def person_of(self, token_id: str | None) -> str | None:
        """The person who made the token with this id; None if there is none."""
        token = self._by_id.get(token_id) if token_id is not None else None
        return token.person if token is not None else None


def problems(agents: Agents) -> Iterable[str]:
    """What is wrong with a bundle's agents."""
    try:
        key = bytes.fromhex(agents.token_key)
    except ValueError:
        key = b""
    if len(key) != 32:
        yield "agents.token_key: expected 32 bytes in hex"
    for token in agents.tokens:
        if len(token.mac) != 64:
            yield "agents.tokens: expected a mac of 64 hex digits"
            return
    if len({token.id for token in agents.tokens}) != len(agents.tokens):
        yield "agents.tokens: expected each id once"
