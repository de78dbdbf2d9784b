"""The session table with a clock given by the test."""

import trio

from gatewayd.audit.events import Agent
from gatewayd.mcp.eras.handshake import Peer
from gatewayd.mcp.eras.sessions import Session, Sessions

PEER = Peer("2025-06-18", Agent("a", "1", None))


def opened(sessions: Sessions, now_s: float) -> Session:
    session = sessions.open(PEER, now_s)
    assert session is not None
    return session


def test_ids_are_visible_ascii_and_never_the_same() -> None:
    sessions = Sessions()
    ids = [opened(sessions, 0).id for _ in range(1000)]
    assert len(set(ids)) == 1000
    for id_ in ids:
        assert len(id_) >= 32
        assert all(0x21 <= ord(character) <= 0x7E for character in id_)


def test_idle_sessions_expire() -> None:
    sessions = Sessions(idle_s=10)
    session = opened(sessions, 0)
    assert sessions.find(session.id, 10) is session
    assert sessions.find(session.id, 20) is session
    assert sessions.find(session.id, 30.1) is None
    assert sessions.statistics().expired == 1


def test_a_call_or_stream_keeps_a_session() -> None:
    sessions = Sessions(idle_s=10, most=2)
    calling, streaming = opened(sessions, 0), opened(sessions, 0)
    calling.calls = {1: trio.CancelScope()}
    streaming.stream = trio.CancelScope()
    assert sessions.open(PEER, 1000) is None
    assert sessions.find(calling.id, 1000) is calling
    assert sessions.find(streaming.id, 1000) is streaming


def test_a_full_table_refuses_until_one_is_idle() -> None:
    sessions = Sessions(most=3, idle_s=10)
    first = opened(sessions, 0)
    second = opened(sessions, 1)
    opened(sessions, 2)
    assert sessions.open(PEER, 5) is None
    assert sessions.find(first.id, 9) is first
    fresh = opened(sessions, 11.5)  # the second was used last at 1
    assert sessions.find(second.id, 11.5) is None
    assert sessions.find(first.id, 11.5) is first
    assert sessions.statistics().open == 3
    assert sessions.statistics().refused == 1
    sessions.end(fresh)
    assert sessions.find(fresh.id, 12) is None


def test_the_end_cancels_calls_and_stream() -> None:
    sessions = Sessions()
    session = opened(sessions, 0)
    call, stream = trio.CancelScope(), trio.CancelScope()
    session.calls = {"x": call}
    session.stream = stream
    sessions.end(session)
    assert call.cancel_called
    assert stream.cancel_called
