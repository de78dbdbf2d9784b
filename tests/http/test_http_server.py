"""The fence, on real sockets: what crashes or blocks hypercorn leaves this server serving; stopping has an order and an end."""

import fcntl
import re
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from gatewayd.config.bounds import HTTP_BOUNDS, HttpBounds
from gatewayd.fairness.loop_share import LoopShare
from gatewayd.fairness.unsent_budget import UnsentBudget
from gatewayd.http import http1
from gatewayd.http.asgi import asgi
from gatewayd.http.connection import HttpConnection
from gatewayd.http.connection_sweep import ConnectionSweep
from gatewayd.http.listeners import open_listeners
from tests.http.served import HELLO, App, read_all, read_answer, served


def unread_bytes(fd: int) -> int:
    """What has arrived at a socket and was not read."""
    return int(struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0])


def status_of(answer: bytes) -> int:
    return int(answer[9:12]) if answer else 0


UPGRADE = b"GET / HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n"
CLOSE = b"connection: close\r\n"


@pytest.mark.parametrize("extra", [b"", b"x", b"\x81\x05hello", b"GET / HTTP/1.1\r\n\r\n"])
async def test_a_websocket_upgrade_is_not_taken_up(extra: bytes) -> None:
    """hypercorn #225: one byte behind such a request ended the whole process."""
    async with served() as serving:
        async with await serving.connect() as stream:
            await stream.send_all(UPGRADE + b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" + extra)
            assert await read_answer(stream) == (200, b"hello")
        await serving.hello()


async def test_http2_is_not_taken_up() -> None:
    async with served() as serving:
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)
        assert status_of(await serving.talk(preface)) == 505
        h2c = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAM\r\n\r\n"
        async with await serving.connect() as stream:
            await stream.send_all(h2c)
            assert await read_answer(stream) == (200, b"hello")
        await serving.hello()


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x00",
        b"\xff" * 100 + b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost : x\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nbad\x00name: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nname: \x00\r\n\r\n",
        b"GET / HTTP/9.9\r\nhost: x\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nhost: x\r\n\r\n",
        b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 1e3\r\n\r\n",
        b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 1, 2\r\n\r\nab",
        b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"POST /body HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST /body HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        (
            b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
            b"GET /smuggled HTTP/1.1\r\n\r\n"
        ),
        b"POST /body HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
        b"POST /body HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        b"POST /body HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n\r\n",
        b"POST /body HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhelloGET /smuggled HTTP/1.1\r\n\r\n",
        b" GET / HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n folded: x\r\nhost: x\r\n\r\n",
    ],
)
async def test_bad_http_is_answered_and_ends_the_connection(request_bytes: bytes) -> None:
    async with served() as serving:
        answer = await serving.talk(request_bytes)
        assert 400 <= status_of(answer) <= 505
        assert answer.count(b"HTTP/1.1 ") == 1
        assert "/smuggled" not in serving.app.paths
        assert serving.app.bodies == []
        await serving.hello()


async def test_a_folded_header_is_one_header() -> None:
    """RFC 9112 section 5.2: unfolded into a space, so it cannot hide another header."""
    async with served() as serving:
        folded = b"GET / HTTP/1.1\r\nhost: x\r\nname: a\r\n transfer-encoding: chunked\r\n" + CLOSE + b"\r\n"
        assert status_of(await serving.talk(folded)) in (200, 400)
        assert serving.app.paths in (["/"], [])


async def test_a_head_that_grows_too_large() -> None:
    async with served() as serving:
        head = b"GET / HTTP/1.1\r\nhost: x\r\n" + b"".join(b"h%d: %s\r\n" % (i, b"v" * 100) for i in range(400))
        answer = await serving.talk(head + b"\r\n")
        assert status_of(answer) in (400, 431)
        assert serving.app.paths == []
        await serving.hello()


async def test_one_byte_at_a_time() -> None:
    async with served() as serving:
        request = b"POST /body HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n" + CLOSE + b"\r\n5\r\nhello\r\n0\r\n\r\n"
        answer = await serving.talk(*(request[i : i + 1] for i in range(len(request))))
        assert answer.endswith(b"\r\n\r\n5")
        assert serving.app.bodies == [b"hello"]


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with served() as serving:
        post = b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc"
        answer = await serving.talk(HELLO + post + b"GET / HTTP/1.1\r\nhost: x\r\n" + CLOSE + b"\r\n")
        assert answer.count(b"HTTP/1.1 200") == 3
        assert serving.app.paths == ["/", "/body", "/"]


async def test_garbage_behind_a_request() -> None:
    async with served() as serving:
        answer = await serving.talk(HELLO + b"\x00garbage\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.count(b"HTTP/1.1 400") == 1
        await serving.hello()


async def test_a_client_that_pipelines_endlessly_behind_a_held_request() -> None:
    """What is kept of it stays small; it is not read while the application does not ask."""
    async with served(grace_s=0.1) as serving, await serving.connect() as stream:
        await stream.send_all(b"GET /gone HTTP/1.1\r\nhost: x\r\n\r\n")
        await serving.app.started.wait()
        with trio.move_on_after(0.5):
            while True:
                await stream.send_all(HELLO * 1000)
        assert serving.server.statistics().ahead_bytes <= http1.READ_AHEAD_BYTES + http1.HEAD_BYTES
        serving.app.release.set()
        serving.stop.set()


async def test_expect_continue() -> None:
    async with served() as serving, await serving.connect() as stream:
        await stream.send_all(b"POST /body HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 100 ")
        await stream.send_all(b"ab")
        assert await read_answer(stream) == (200, b"2")


async def test_head_and_body_travel_in_one_segment() -> None:
    async with served() as serving, await serving.connect() as stream:
        await stream.send_all(HELLO)
        assert (await stream.receive_some()).endswith(b"\r\n\r\nhello")


async def test_http_1_0_and_head() -> None:
    async with served() as serving:
        assert (await serving.talk(b"GET / HTTP/1.0\r\n\r\n")).endswith(b"hello")
        answer = await serving.talk(b"HEAD / HTTP/1.1\r\nhost: x\r\n" + CLOSE + b"\r\n")
        assert b"content-length: 5" in answer
        assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("path", ["/boom", "/silent"])
async def test_an_application_that_fails_is_a_500(path: str, capfd: pytest.CaptureFixture[str]) -> None:
    async with served() as serving:
        answer = await serving.talk(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        assert status_of(answer) == 500
        await serving.hello()
    logged = capfd.readouterr().err
    assert "hunter2" not in logged
    assert ("connection failed" in logged) == (path == "/boom")


async def test_an_answer_cut_short_by_a_failure_is_seen_as_cut() -> None:
    async with served() as serving:
        answer = await serving.talk(b"GET /half HTTP/1.1\r\nhost: x\r\n\r\n")
        assert b"some" in answer
        assert not answer.endswith(b"0\r\n\r\n")
        await serving.hello()


@pytest.mark.parametrize("reset", [True, False])
async def test_the_application_learns_that_the_client_is_gone(reset: bool) -> None:
    async with served() as serving:
        stream = await serving.connect()
        await stream.send_all(b"GET /gone HTTP/1.1\r\nhost: x\r\n\r\n")
        await serving.app.started.wait()
        if reset:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await stream.aclose()
        while serving.server.statistics().open:
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert serving.app.cancelled == 1


async def test_a_half_closed_client_still_gets_its_answer() -> None:
    async with served() as serving, await serving.connect() as stream:
        await stream.send_all(b"GET /held HTTP/1.1\r\nhost: x\r\n\r\n")
        await stream.send_eof()
        await serving.app.started.wait()
        serving.app.release.set()
        assert await read_answer(stream) == (200, b"released")


async def test_a_refused_body_does_not_lose_the_answer() -> None:
    """Closing over unread bytes would reset the connection before the client reads why."""
    async with served() as serving, await serving.connect() as stream:
        await stream.send_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 50000000\r\n\r\n" + b"x" * 1_000_000)
        answer = await read_all(stream)
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b"hello")


@asynccontextmanager
async def one_connection() -> AsyncIterator[tuple[trio.SocketStream, int, trio.Event]]:
    """A client's end, the descriptor of the server's end, and what is set when the server has let go of it."""
    theirs, ours = trio.socket.socketpair()
    ended = trio.Event()
    sweep = ConnectionSweep((), HTTP_BOUNDS.keep_alive_s)
    connection = HttpConnection(asgi(App()), trio.SocketStream(theirs), LoopShare(1, 1), sweep, UnsentBudget(1000))
    descriptor = theirs.fileno()

    async def serve() -> None:
        await connection.serve()
        ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        async with trio.SocketStream(ours) as stream:
            yield stream, descriptor, ended
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("framing", "answer"), [(b"", (200, b"hello")), (b"transfer-encoding: chunked\r\n", (400, b""))], ids=["refused", "bad"]
)
async def test_a_client_that_goes_on_sending_a_refused_body_is_read_on(
    mock_clock: trio.testing.MockClock, framing: bytes, answer: tuple[int, bytes]
) -> None:
    """A client that writes its whole body before it reads: over a slow line that takes longer than a moment."""
    async with one_connection() as (stream, descriptor, ended):
        await stream.send_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 50000000\r\n" + framing + b"\r\n")
        assert await read_answer(stream) == answer

        async def send_and_wait(seconds: float) -> None:
            await stream.send_all(b"x" * 1000)
            while unread_bytes(descriptor):
                await trio.lowlevel.checkpoint()
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(seconds)
            await trio.testing.wait_all_tasks_blocked()

        for _ in range(10):
            await send_and_wait(HTTP_BOUNDS.linger_s - 0.1)
            assert not ended.is_set()
        await send_and_wait(HTTP_BOUNDS.linger_s + 0.1)
        assert ended.is_set()


@pytest.mark.parametrize("stopping", [False, True])
async def test_a_refused_body_that_never_ends_has_a_deadline(mock_clock: trio.testing.MockClock, stopping: bool) -> None:
    async with served(grace_s=100) as serving, await serving.connect() as stream:
        await stream.send_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 50000000\r\n\r\n")
        assert await read_answer(stream) == (200, b"hello")
        if stopping:
            serving.stop.set()
        most_s = HTTP_BOUNDS.linger_s if stopping else HTTP_BOUNDS.linger_most_s
        began = trio.current_time()
        while serving.server.statistics().open:
            await stream.send_all(b"x")
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(0.5)
            await trio.testing.wait_all_tasks_blocked()
        assert began + most_s <= trio.current_time() <= began + most_s + 1


async def test_over_the_cap_connections_are_turned_away() -> None:
    async with served(HttpBounds(connections=2)) as serving:
        async with await serving.connect() as first, await serving.connect() as second:
            for stream in (first, second):
                await stream.send_all(HELLO)
                assert await read_answer(stream) == (200, b"hello")
            answer = await serving.talk(b"")
            assert status_of(answer) == 503
            assert b"retry-after: 1" in answer
            assert serving.server.statistics().refused == 1
        while serving.server.statistics().open:
            await trio.testing.wait_all_tasks_blocked(0.01)
        await serving.hello()


async def test_stop_ends_idle_connections_at_once_and_lets_held_requests_finish() -> None:
    async with served(HttpBounds(linger_s=0.1), grace_s=20) as serving:
        idle, half_head, held = await serving.connect(), await serving.connect(), await serving.connect()
        await idle.send_all(HELLO)
        assert await read_answer(idle) == (200, b"hello")
        await half_head.send_all(b"GET / HT")
        await held.send_all(b"GET /held HTTP/1.1\r\nhost: x\r\n\r\n")
        await serving.app.started.wait()
        serving.stop.set()
        assert await read_all(idle) == b""
        assert await read_all(half_head) == b""
        with pytest.raises(OSError, match="all attempts to connect"):
            await serving.connect()
        assert not serving.ended.is_set()
        serving.app.release.set()
        answer = await read_all(held)
        assert answer.endswith(b"released")
        assert b"connection: close" in answer.lower()
        await serving.ended.wait()
        for stream in (idle, half_head, held):
            await stream.aclose()


async def test_what_outlasts_the_grace_is_cancelled() -> None:
    async with served(grace_s=0.1) as serving, await serving.connect() as held:
        await held.send_all(b"GET /held HTTP/1.1\r\nhost: x\r\n\r\n")
        await serving.app.started.wait()
        serving.stop.set()
        assert await read_all(held) == b""
        await serving.ended.wait()
        assert serving.app.cancelled == 1


async def test_a_client_that_stops_reading_does_not_block_the_stop() -> None:
    """hypercorn shields a send without a deadline: such a client kept the process alive for ever."""
    async with served(grace_s=0.1) as serving, await serving.connect() as stream:
        await stream.send_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
        await serving.app.started.wait()
        await stream.receive_some(1)
        serving.stop.set()
        with trio.fail_after(HTTP_BOUNDS.send_s - 5):  # the write itself is given up only then
            await serving.ended.wait()


async def test_a_client_that_stops_reading_is_dropped() -> None:
    async with served(HttpBounds(send_s=0.05)) as serving, await serving.connect() as stream:
        await stream.send_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
        await serving.app.started.wait()
        while serving.server.statistics().open:
            await trio.testing.wait_all_tasks_blocked(0.01)
        await serving.hello()


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nhost"])
async def test_idle_and_slow_clients_are_dropped(sent: bytes) -> None:
    async with served(HttpBounds(keep_alive_s=0.05)) as serving:
        assert await serving.talk(sent) == b""


async def test_a_client_that_is_idle_after_its_answer_is_dropped(mock_clock: trio.testing.MockClock) -> None:
    async with served() as serving, await serving.connect() as stream:
        await stream.send_all(HELLO)
        assert await read_answer(stream) == (200, b"hello")
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(HTTP_BOUNDS.keep_alive_s * 0.9)
        await trio.testing.wait_all_tasks_blocked()
        assert serving.server.statistics().open == 1
        mock_clock.jump(HTTP_BOUNDS.keep_alive_s * 0.2)
        assert await read_all(stream) == b""


async def test_the_deadline_of_a_head_is_not_that_of_an_idle_connection(mock_clock: trio.testing.MockClock) -> None:
    async with served() as serving, await serving.connect() as stream:
        for _ in range(2):
            await stream.send_all(HELLO)
            assert await read_answer(stream) == (200, b"hello")
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(HTTP_BOUNDS.head_s + 1)


async def test_a_head_that_trickles_has_its_own_deadline() -> None:
    async with served(HttpBounds(head_s=0.05)) as serving:
        assert await serving.talk(b"GET / HTTP/1.1\r\n") == b""


async def test_every_answer_has_a_date() -> None:
    """RFC 9110 section 6.6.1, in its preferred form."""
    date = re.compile(rb"\r\ndate: (Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r\n", re.IGNORECASE)
    async with served(HttpBounds(connections=1)) as serving:
        for path in (b"/", b"/boom", b"/silent", b"/half"):
            answer = await serving.talk(b"GET " + path + b" HTTP/1.1\r\nhost: x\r\n" + CLOSE + b"\r\n")
            assert len(date.findall(answer)) == 1, answer
        assert len(date.findall(await serving.talk(b"\x00"))) == 1
        async with await serving.connect() as only:
            await only.send_all(HELLO)
            assert await read_answer(only) == (200, b"hello")
            assert len(date.findall(await serving.talk(b""))) == 1


@pytest.mark.parametrize(
    ("wanted", "soft", "hard", "fit"), [(10, 1024, 4096, 10), (2000, 1024, 4096, 2000), (9000, 1024, 4096, 3840)]
)
def test_the_descriptor_limit_follows_the_cap(wanted: int, soft: int, hard: int, fit: int) -> None:
    """In a process of its own: a hard limit once lowered stays so."""
    code = f"""
import resource
from gatewayd.http.connection import HttpConnection
from gatewayd.http.connection_sweep import ConnectionSweep
from gatewayd.http.server import connections_that_fit
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(connections_that_fit({wanted}), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.split() == [str(fit), str(max(soft, min(hard, wanted + 256)))]


async def test_a_port_in_use() -> None:
    async with served() as serving:
        with pytest.raises(OSError, match="in use"):
            await open_listeners("127.0.0.1", serving.port)


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this machine")
async def test_double_colon_takes_both_families() -> None:
    (listener,) = await open_listeners("::", 0)
    async with listener:
        port = listener.socket.getsockname()[1]
        for host in ("127.0.0.1", "::1"):
            async with await trio.open_tcp_stream(host, port), await listener.accept():
                pass
