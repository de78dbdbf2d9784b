"""A head that is recognised by its bytes is the request that h11 would have read; anything else is h11's to read."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import h11
import pytest
import trio
import trio.testing
from hypothesis import example, given
from hypothesis import strategies as st

from gatewayd.fairness.loop_share import LoopShare
from gatewayd.fairness.unsent_budget import UnsentBudget
from gatewayd.http.connection import HttpConnection
from gatewayd.http.connection_sweep import ConnectionSweep
from gatewayd.http.date import DateHeader
from gatewayd.http.exchange import Exchange, HttpHead
from gatewayd.http.repeated_heads import RepeatedHead, repeated_head

NOW_S = 784111777.0  # RFC 9110 names it Sun, 06 Nov 1994 08:49:37 GMT
FIRST = (
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: keep-alive\r\n"
    b"Content-Length: 2\r\nX-Last: a:b\r\n\r\n{}"
)
HEAD, BODY = FIRST[:-2], FIRST[-2:]


def read_by_h11(data: bytes) -> tuple[list[tuple[bytes, bytes]], bytes] | None:
    """Headers but Content-Length, and the body, of data that is one whole POST to the same target; None for all else."""
    parser = h11.Connection(h11.SERVER)
    parser.receive_data(data)
    body = b""
    try:
        request = parser.next_event()
        while isinstance(event := parser.next_event(), h11.Data):
            body += event.data
    except h11.RemoteProtocolError:
        return None
    if not isinstance(request, h11.Request) or not isinstance(event, h11.EndOfMessage) or parser.trailing_data[0]:
        return None
    if (request.method, request.target, request.http_version) != (b"POST", b"/mcp", b"1.1"):
        return None
    return [header for header in request.headers if header[0] != b"content-length"], body


def known(data: bytes, body_bytes: int = 2) -> RepeatedHead | None:
    read = read_by_h11(data)
    assert read is not None
    return repeated_head(data, HttpHead("POST", b"/mcp", "1.1", read[0]), body_bytes)


DAMAGES = st.lists(
    st.tuples(
        st.integers(0, len(FIRST)),
        st.integers(0, 3),
        st.sampled_from(
            [b"", b"\r\n", b"\n", b"\r", b"0", b"1", b"2", b" ", b":", b"{}", b"\r\n\r\n", b"\0", b"content-length: 2\r\n"]
        ),
    ),
    max_size=3,
)


@given(DAMAGES)
@example([(HEAD.index(b"2\r\nX-Last"), 1, b"00")])
@example([(HEAD.index(b"2\r\nX-Last"), 0, b"0")])
@example([(HEAD.index(b"2\r\nX-Last"), 1, b"+2")])
@example([(HEAD.index(b"2\r\nX-Last"), 1, b"2 ")])
@example([(len(FIRST), 0, FIRST)])
def test_what_is_recognised_is_what_h11_reads(damages: list[tuple[int, int, bytes]]) -> None:
    repeated = known(FIRST)
    assert repeated is not None
    data = FIRST
    for at, cut, put in damages:
        data = data[:at] + put + data[at + cut :]
    body = repeated.body_of(data)
    if body is not None:
        assert read_by_h11(data) == (repeated.head.headers, body)


@given(st.binary(max_size=300))
def test_any_body_of_the_same_head_is_recognised(body: bytes) -> None:
    repeated = known(FIRST)
    assert repeated is not None
    assert repeated.body_of(HEAD.replace(b"Length: 2", b"Length: %d" % len(body)) + body) == body
    assert repeated.body_of(HEAD.replace(b"Length: 2", b"Length: %d" % (len(body) + 1)) + body) is None


@pytest.mark.parametrize(
    "head",
    [
        HEAD.replace(b"X-Last: a:b", b"Expect: 100-continue"),
        HEAD.replace(b"X-Last: a:b", b"X-Last: content-length"),
        HEAD.replace(b"Content-Length: 2", b"Content-Length:\t2"),
        HEAD.replace(b"Content-Length: 2", b"Content-Length: 2, 2"),
        HEAD.replace(b"Content-Length: 2", b"Content-Length: 2\r\nContent-Length: 2"),
        HEAD.replace(b"a:b", b"x" * 5000),
    ],
)
def test_heads_that_are_not_kept(head: bytes) -> None:
    assert known(head + BODY) is None


async def test_answers_are_the_same_however_the_request_was_read() -> None:
    """Each form of answer, to a request that h11 read and to the same one recognised; then one more, sent in two pieces."""
    bodies: list[bytes] = []
    heads: list[HttpHead] = []

    async def handler(exchange: Exchange) -> None:
        body = await exchange.body(100, 1)
        bodies.append(body)
        heads.append(exchange.head)
        match body:
            case b"plain":
                await exchange.answer(200, b'"plain"')
            case b"empty":
                await exchange.answer(202, b"")
            case b"stream":
                await exchange.start(200, [(b"content-type", b"text/event-stream")])
                await exchange.write(b"one")
                await exchange.end(b"two")
            case b"named":
                await exchange.answer(200, b"{}", [(b"x-name", b"1")])

    @asynccontextmanager
    async def connected() -> AsyncIterator[Callable[..., Awaitable[bytes]]]:
        server, client = trio.socket.socketpair()
        intake, sweep, unsent = LoopShare(a_pass=1_000_000, waiting=0), ConnectionSweep((), 75), UnsentBudget(1000)
        connection = HttpConnection(handler, trio.SocketStream(server), intake, sweep, unsent, date=DateHeader(lambda: NOW_S))

        async def asked(body: bytes, *, split: int = 0) -> bytes:
            data = HEAD.replace(b"Length: 2", b"Length: %d" % len(body)) + body
            await client.send(data[:split])
            if split:
                await trio.testing.wait_all_tasks_blocked()
            await client.send(data[split:])
            await trio.testing.wait_all_tasks_blocked()
            return await client.recv(65536)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.serve)
            yield asked
            client.close()

    for body in (b"plain", b"empty", b"stream", b"named"):
        async with connected() as asked:
            read = await asked(body)
        async with connected() as asked:
            for _ in range(2):
                await asked(b"plain")
            assert await asked(body) == read
            assert heads[-1] is heads[-2], "it was recognised"
            assert await asked(body, split=30) == read
            assert heads[-1] is not heads[-2], "it was read"
    async with connected() as asked:
        dated = b"HTTP/1.1 200 \r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
        assert await asked(b"plain") == dated + b'content-type: application/json\r\ncontent-length: 7\r\n\r\n"plain"'
        assert (await asked(b"silent")).startswith(b"HTTP/1.1 500 ")
    assert set(bodies) == {b"plain", b"empty", b"stream", b"named", b"silent"}
