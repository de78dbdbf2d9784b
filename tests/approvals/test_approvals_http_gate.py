"""The HTTP client of the gate before gates that lie, break and stall: none of that is a decision (docs/approvals.md)."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import h11
import pytest
import trio
import trio.testing

from gatewayd.approvals.desk.service import PATH
from gatewayd.approvals.gate import Unavailable
from gatewayd.approvals.http_gate import BODY_BYTES, HttpGate
from gatewayd.approvals.messages import TEXT_BYTES, Approved, Expired, GateDenied, Outcome, Pending, Status, StatusAsked, Wait
from gatewayd.config.credentials import Secret
from tests.approvals.desks import TOKEN, an_ask, desk, gate
from tests.approvals.gates import FAR

Speak = Callable[[trio.SocketStream, bytes], Awaitable[None]]
SOON = 0.2
ASK = an_ask("Q1")


def says(body: bytes | str | dict[str, object], status: str = "200 OK", headers: str = "") -> Speak:
    data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()

    async def speak(stream: trio.SocketStream, _: bytes) -> None:
        head = f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(data)}\r\n\r\n"
        await stream.send_all(head.encode() + data)

    return speak


async def silence(stream: trio.SocketStream, _: bytes) -> None:
    while await stream.receive_some():
        pass


async def half_a_body(stream: trio.SocketStream, _: bytes) -> None:
    await stream.send_all(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"status": "approved"')
    await stream.aclose()


async def drip(stream: trio.SocketStream, _: bytes) -> None:
    await stream.send_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await stream.send_all(b"1\r\n \r\n")
        await trio.sleep(0.01)


async def hang_up(stream: trio.SocketStream, _: bytes) -> None:
    await stream.aclose()


@asynccontextmanager
async def lying(speak: Speak) -> AsyncIterator[tuple[HttpGate, list[tuple[str, dict[str, str]]]]]:
    """A gate that answers each request so, and what was asked of it: target and headers."""
    seen: list[tuple[str, dict[str, str]]] = []

    async def serve(stream: trio.SocketStream) -> None:
        parser = h11.Connection(h11.SERVER)
        body = b""
        try:
            while True:
                event = parser.next_event()
                if event is h11.NEED_DATA:
                    parser.receive_data(await stream.receive_some())
                elif isinstance(event, h11.Request):
                    seen.append((event.target.decode(), {name.decode(): value.decode() for name, value in event.headers}))
                elif isinstance(event, h11.Data):
                    body += bytes(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    await speak(stream, body)
                    return
                else:
                    return
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError):
            return

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        async with HttpGate(Secret(f"http://127.0.0.1:{port}/path-canary/?key=query-canary"), Secret(TOKEN), "1.2") as client:
            yield client, seen
        nursery.cancel_scope.cancel()


WRONG = {
    "html": says("<html>approved</html>"),
    "html as an error page": says("<html>", "502 Bad Gateway"),
    "401": says({"status": "approved"}, "401 Unauthorized"),
    "403": says({"status": "denied"}, "403 Forbidden"),
    "404": says({"status": "approved"}, "404 Not Found"),
    "201": says({"status": "approved"}, "201 Created"),
    "302 to an approval": says("", "302 Found", "Location: http://127.0.0.1:1/\r\n"),
    "307": says("", "307 Temporary Redirect", "Location: /elsewhere\r\n"),
    "500": says("oops", "500 Oops"),
    "429 without a time": says("", "429 Too Many Requests"),
    "half a body": half_a_body,
    "silence": silence,
    "a drip without end": drip,
    "hangs up": hang_up,
    "no HTTP": lambda stream, _: stream.send_all(b"approved\r\n\r\n"),
    "empty": says(""),
    "a list": says("[]"),
    "null": says("null"),
    "no status": says({}),
    "unknown status": says({"status": "maybe"}),
    "status in capitals": says({"status": "APPROVED"}),
    "a status that is no text": says({"status": 1}),
    "pending without an id": says({"status": "pending", "expires_at": FAR}),
    "pending without a deadline": says({"status": "pending", "approval_id": "a"}),
    "pending with a date": says({"status": "pending", "approval_id": "a", "expires_at": "2026-11-22"}),
    "pending in the year 100000": says({"status": "pending", "approval_id": "a", "expires_at": 10**16}),
    "an id with a line end": says({"status": "pending", "approval_id": "a\n", "expires_at": FAR}),
    "an id too long": says({"status": "pending", "approval_id": "a" * 65, "expires_at": FAR}),
    "a link that runs script": says({"status": "pending", "approval_id": "a", "expires_at": FAR, "review_url": "javascript:x"}),
    "negative rows": says({"status": "approved", "rows_at_most": -1}),
    "rows as text": says({"status": "approved", "rows_at_most": "5"}),
    "half a row": says({"status": "approved", "rows_at_most": 1.5}),
    "yes as rows": says({"status": "approved", "rows_at_most": True}),
    "a note that is no text": says({"status": "approved", "note": ["x"]}),
    "a note too long": says({"status": "approved", "note": "x" * (TEXT_BYTES + 1)}),
    "a note too long in bytes": says({"status": "denied", "note": "ä" * (TEXT_BYTES // 2 + 1)}),
    "another query's approval": says({"status": "approved", "query_id": "Q2"}),
    "another query's denial": says({"status": "denied", "query_id": "Q2"}),
    "a body too long": says(b'{"status": "approved"' + b" " * BODY_BYTES + b"}"),
    "compressed": says({"status": "approved"}, headers="Content-Encoding: gzip\r\n"),
    "two answers": says('{"status": "approved"}{"status": "approved"}'),
    "broken UTF-8": says(b'{"status": "approved", "note": "\xff"}'),
    "half a character": says(b'{"status": "approved", "note": "\\ud800"}'),
    "nested without end": says("[" * 100_000),
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_wrong_answer_is_no_decision(wrong: str, capfd: pytest.CaptureFixture[str]) -> None:
    is_slow = wrong in ("silence", "a drip without end")
    async with lying(WRONG[wrong]) as (client, seen):
        with trio.fail_after(30):
            for _ in range(2):
                with pytest.raises(Unavailable) as failure:
                    await client.ask(ASK, SOON if is_slow else 20)
            if wrong != "404":
                with pytest.raises(Unavailable):
                    await client.wait(Wait("a", "Q1"), SOON if is_slow else 20)
    assert failure.value.is_lost == (wrong in ("half a body", "silence", "a drip without end", "hangs up", "no HTTP"))
    assert len(seen) == (2 if wrong == "404" else 3)  # a redirect leads nowhere
    told = capfd.readouterr().err
    assert told.count("approval gate unreachable") == (not wrong.startswith("429"))
    for secret in ("path-canary", "query-canary", TOKEN):
        assert secret not in told + str(failure.value) + failure.value.reason


async def test_nobody_listens(free_port: int) -> None:
    async with gate(f"http://127.0.0.1:{free_port}/") as client:
        with pytest.raises(Unavailable) as failure:
            await client.ask(ASK, 10)
    assert (failure.value.reason, failure.value.is_lost) == ("ConnectError", False)


RIGHT: dict[str, tuple[dict[str, object], object]] = {
    "approved": ({"status": "approved"}, Approved()),
    "approved in full": (
        {"status": "approved", "by": "ann", "note": "x" * TEXT_BYTES, "rows_at_most": 0, "query_id": "Q1", "more": [1]},
        Approved(by="ann", note="x" * TEXT_BYTES, rows_at_most=0, query_id="Q1"),
    ),
    "denied": ({"status": "denied", "by": "\x1b[2J", "note": None}, GateDenied(by="\x1b[2J")),
    "expired": ({"status": "expired", "approval_id": "a"}, Expired(approval_id="a")),
    "pending": (
        {"status": "pending", "approval_id": "a", "expires_at": FAR, "review_url": "https://h/r?a=1"},
        Pending(approval_id="a", expires_at=FAR, review_url="https://h/r?a=1"),
    ),
}


@pytest.mark.parametrize("right", RIGHT)
async def test_the_answers_of_the_protocol(right: str) -> None:
    body, meant = RIGHT[right]
    async with lying(says(body)) as (client, seen):
        assert await client.ask(ASK, 20) == meant
        assert await client.wait(Wait("a", "Q1"), 20) == meant
    assert [target for target, _ in seen] == ["/path-canary?key=query-canary", "/path-canary/wait?key=query-canary"]
    assert seen[0][1]["authorization"] == f"Bearer {TOKEN}"
    assert seen[0][1]["user-agent"] == "gatewayd/1.2"


async def test_a_gate_without_wait_is_not_unreachable(capfd: pytest.CaptureFixture[str]) -> None:
    async with lying(says({}, "404 Not Found")) as (client, _):
        assert await client.wait(Wait("a", "Q1"), 20) is None
    assert "unreachable" not in capfd.readouterr().err


async def test_too_many_requests_say_when_to_come_back() -> None:
    async with lying(says("", "429 Slow Down", "Retry-After: 17\r\n")) as (client, _):
        with pytest.raises(Unavailable) as failure:
            await client.ask(ASK, 20)
    assert failure.value.retry_after_s == 17


async def test_a_gate_that_takes_another_token_says_which_variable_gives_it(tmp_path: Path) -> None:
    async with desk(tmp_path / "r.db") as open_desk, gate(open_desk.url, "another") as stranger:
        with pytest.raises(Unavailable, match="GATEWAY_APPROVAL_TOKEN"):
            await stranger.status(StatusAsked("a"), 10)


async def test_a_gate_that_comes_back_is_told_of_once(tmp_path: Path, free_port: int, capfd: pytest.CaptureFixture[str]) -> None:
    async with gate(f"http://127.0.0.1:{free_port}{PATH}") as client:
        for _ in range(2):
            with pytest.raises(Unavailable):
                await client.status(StatusAsked("a"), 10)
        async with desk(tmp_path / "r.db", port=free_port):
            for _ in range(2):
                assert await client.status(StatusAsked("a"), 10) == Status("not_found")
    told = capfd.readouterr().err
    assert [told.count(f'"approval gate {state}"') for state in ("unreachable", "reachable")] == [1, 1]


async def test_the_whole_protocol_against_the_gate_at_a_terminal(tmp_path: Path) -> None:
    async with desk(tmp_path / "r.db") as open_desk, gate(open_desk.url) as client:
        pending = await client.ask(ASK, 10)
        assert isinstance(pending, Pending)
        assert (await client.status(StatusAsked(pending.approval_id), 10)).status == "pending"
        for wait_s in (0.05, 0, -1):
            assert await client.wait(Wait(pending.approval_id, "Q1", None, wait_s), 10) == pending
        answers: list[object] = []

        async def wait() -> None:
            answers.append(await client.wait(Wait(pending.approval_id, "Q1", None, 30), 40))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            open_desk.decide(pending.approval_id, note="ok", rows_at_most=2)
        assert answers == [Approved(by="ann", note="ok", rows_at_most=2, approval_id=pending.approval_id, query_id="Q1")]
        assert (await client.status(StatusAsked(pending.approval_id), 10)).status == "consumed"
        await client.outcome(Outcome("Q1", "executed", 2), 10)
        assert (await client.status(StatusAsked(pending.approval_id), 10)).status == "executed"
        with pytest.raises(Unavailable, match="409"):
            await client.wait(Wait("nosuch", "Q1"), 10)
