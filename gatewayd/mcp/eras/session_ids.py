"""Ids of sessions. Where engines share a key an id carries its session, so that each of them can serve it, and after a restart.

Not 404 for another engine's session, though the protocol allows it: the official clients do not initialize again by themselves,
their user sees a failed call. Nothing secret is in an id, and it opens nothing: each request still shows its own token.
"""

import base64
import hmac
import secrets
import time
from collections.abc import Callable
from typing import Final, final

import msgspec

from gatewayd.audit.events import Agent
from gatewayd.mcp.eras.handshake import Peer
from gatewayd.mcp.messages import HANDSHAKE_VERSIONS

LIFE_MS: Final = 7 * 24 * 3_600_000
"""From when it was opened. A session of an agent that runs for longer is opened anew."""
_CLOCKS_MS: Final = 5 * 60_000
"""How far the clocks of two engines may be apart."""
_ID_BYTES: Final = 24
_MAC_BYTES: Final = 32
_PREFIX: Final = "gws1."
_NS_PER_MS: Final = 1_000_000


class _Said(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    nonce: bytes
    opened_ms: int
    version: str
    agent_name: str | None
    agent_version: str | None
    token_id: str | None


@final
class SessionIds:
    """`key` gives the key that the engines behind one address share, at each use; None: ids that only their own engine knows."""

    def __init__(self, key: Callable[[], bytes | None] = lambda: None, *, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._key: Final = key
        self._clock_ns: Final = clock_ns

    def new(self, peer: Peer) -> str:
        """One that nobody can guess."""
        key = self._key()
        if key is None:
            return secrets.token_urlsafe(_ID_BYTES)
        agent = peer.agent
        said = msgspec.msgpack.encode(
            _Said(secrets.token_bytes(_ID_BYTES), self._now_ms(), peer.version, agent.name, agent.version, agent.token_id)
        )
        return _text(_mac(key, said) + said)

    def read(self, id_: str) -> Peer | None:
        """Whose session it is; None where the id does not say it, nobody with the key made it, or it is over."""
        key = self._key()
        if key is None or not id_.startswith(_PREFIX):
            return None
        text = id_.removeprefix(_PREFIX)
        try:
            data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            mac, said = data[:_MAC_BYTES], data[_MAC_BYTES:]
            if not hmac.compare_digest(mac, _mac(key, said)) or _text(data) != id_:  # one session has one id
                return None
            found = msgspec.msgpack.decode(said, type=_Said)
        except (ValueError, msgspec.DecodeError):
            return None
        if not -_CLOCKS_MS <= self._now_ms() - found.opened_ms < LIFE_MS or found.version not in HANDSHAKE_VERSIONS:
            return None
        return Peer(found.version, Agent(found.agent_name, found.agent_version, found.token_id))

    def _now_ms(self) -> int:
        return self._clock_ns() // _NS_PER_MS


def _text(data: bytes) -> str:
    return _PREFIX + base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _mac(key: bytes, said: bytes) -> bytes:
    return hmac.digest(key, b"gatewayd mcp session 1\n" + said, "sha256")
