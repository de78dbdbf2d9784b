"""The table of HTTP sessions of the handshake era (docs/mcp.md): unguessable ids, idle age, a bound on their number.

A session is idle when no call is in flight and no event stream is open. The time is an argument.

Where an id carries its session (`session_ids.py`) the table is what this engine has seen of them: one that it does not know was
opened by another engine, or before a restart, and is taken in. Only one that was ended here stays unknown.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, final

import msgspec
import trio

from gatewayd.audit.events import Agent
from gatewayd.config.bounds import MCP_BOUNDS
from gatewayd.mcp.eras.handshake import Peer
from gatewayd.mcp.eras.session_ids import SessionIds


class Session(Peer):
    """`stream` is the open GET of this session, if any; a newer one replaces it."""

    __slots__ = ("id", "last_used_s", "stream")

    def __init__(self, id_: str, version: str, agent: Agent, now_s: float) -> None:
        super().__init__(version, agent)
        self.id = id_
        self.last_used_s = now_s
        self.stream: trio.CancelScope | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no call is in flight and no stream is open."""
        return self.calls is None and self.stream is None


class SessionStatistics(msgspec.Struct, frozen=True):
    """Counts of one table of sessions, all of the same moment."""

    open: int
    opened: int  # since start
    expired: int  # since start
    refused: int  # since start, because the table was full


@final
class Sessions:
    """Sessions in order of last use, so that the oldest are in front. No task expires them: each new session first drops those
    that have expired, and an expired one is not found."""

    def __init__(
        self,
        *,
        most: int = MCP_BOUNDS.sessions,
        idle_s: float = MCP_BOUNDS.session_idle_s,
        ids: SessionIds | None = None,
    ) -> None:
        self._most: Final = most
        self._idle_s: Final = idle_s
        self._ids: Final = ids or SessionIds()
        self._by_id: OrderedDict[str, Session] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._opened = 0
        self._expired = 0
        self._refused = 0

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._by_id.values()))

    def open(self, peer: Peer, now_s: float) -> Session | None:
        """A new session for `peer`, or None when the table is full."""
        session = self._added(self._ids.new(peer), peer, now_s)
        if session is not None:
            self._opened += 1
        return session

    def find(self, id_: str, now_s: float) -> Session | None:
        """The live session of that id, marked as used now."""
        session = self._by_id.get(id_)
        if session is not None and session.is_idle and now_s - session.last_used_s > self._idle_s:
            del self._by_id[id_]
            self._expired += 1
            session = None
        if session is None:
            return self._taken_in(id_, now_s)
        self.touch(session, now_s)
        return session

    def touch(self, session: Session, now_s: float) -> None:
        """Called too when a call or stream ends: a session's idle age starts there."""
        session.last_used_s = now_s
        if session.id in self._by_id:
            self._by_id.move_to_end(session.id)

    def end(self, session: Session) -> None:
        """Forgets the session, cancels its calls and closes its stream."""
        self._by_id.pop(session.id, None)
        self._ended[session.id] = None
        if len(self._ended) > self._most:
            self._ended.popitem(last=False)
        session.cancel_all()
        if session.stream is not None:
            session.stream.cancel()

    def statistics(self) -> SessionStatistics:
        """The counts now."""
        return SessionStatistics(len(self._by_id), self._opened, self._expired, self._refused)

    def _taken_in(self, id_: str, now_s: float) -> Session | None:
        peer = self._ids.read(id_) if id_ not in self._ended else None
        return self._added(id_, peer, now_s) if peer is not None else None

    def _added(self, id_: str, peer: Peer, now_s: float) -> Session | None:
        self._drop_expired(now_s)
        if len(self._by_id) >= self._most:
            self._refused += 1
            return None
        session = self._by_id[id_] = Session(id_, peer.version, peer.agent, now_s)
        return session

    def _drop_expired(self, now_s: float) -> None:
        while self._by_id:
            session = next(iter(self._by_id.values()))
            if now_s - session.last_used_s <= self._idle_s:
                return
            if session.is_idle:
                del self._by_id[session.id]
                self._expired += 1
            else:
                self.touch(session, now_s)
