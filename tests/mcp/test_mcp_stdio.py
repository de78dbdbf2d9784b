"""stdio as a client sees it: a real process, real pipes. stdout carries protocol and nothing else."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from gatewayd.mcp import messages
from tests.mcp.mcp_rig import META, PATIENCE_S

SERVER = str(Path(__file__).with_name("stdio_server.py"))


class Child:
    def __init__(self, process: trio.Process) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr
        self.lines: list[dict[str, Any]] = []
        self.errors = b""
        self._rest = b""

    async def say(self, *said: object) -> None:
        for message in said:
            line = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            await self.stdin.send_all(line)

    async def hear(self, count: int = 1) -> list[dict[str, Any]]:
        """The next messages; every byte on stdout must be part of one."""
        with trio.fail_after(PATIENCE_S):
            while len(self.lines) < count:
                data = await self.stdout.receive_some(1 << 20)
                assert data, self.errors
                *whole, self._rest = (self._rest + data).split(b"\n")
                self.lines += [json.loads(line) for line in whole]
        heard, self.lines = self.lines[:count], self.lines[count:]
        assert all(message["jsonrpc"] == "2.0" for message in heard)
        return heard

    async def one(self) -> dict[str, Any]:
        (message,) = await self.hear()
        return message

    async def until_logged(self, text: bytes) -> None:
        with trio.fail_after(PATIENCE_S):
            while text not in self.errors:
                data = await self.stderr.receive_some()
                assert data, self.errors
                self.errors += data

    async def end(self) -> int:
        """Waits for the exit and checks that nothing else came out."""
        with trio.fail_after(PATIENCE_S):
            rest = b""
            while data := await self.stdout.receive_some(1 << 20):
                rest += data
            while data := await self.stderr.receive_some():
                self.errors += data
            assert (self._rest + rest) == b""
            return await self.process.wait()


def request(id_: object, method: str, params: object = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, **({} if params is None else {"params": params})}


def call(id_: object, name: str, **params: Any) -> dict[str, Any]:
    return request(id_, "tools/call", {"name": name, "arguments": {}, **params})


INITIALIZE = request(0, "initialize", {"protocolVersion": "2025-11-25", "clientInfo": {"name": "a", "version": "1"}})


@asynccontextmanager
async def child(grace_s: float = 5) -> AsyncIterator[Child]:
    pipe = subprocess.PIPE
    async with trio.open_nursery() as nursery:

        async def start(task_status: trio.TaskStatus[trio.Process]) -> None:
            command = [sys.executable, SERVER, str(grace_s)]
            await trio.run_process(
                command, stdin=pipe, capture_stdout=False, capture_stderr=False, stdout=pipe, stderr=pipe, check=False,
                task_status=task_status,
            )  # fmt: skip

        started = Child(await nursery.start(start))
        yield started
        nursery.cancel_scope.cancel()
        for stream in (started.stdin, started.stdout, started.stderr):
            await trio.aclose_forcefully(stream)


async def test_a_conversation_and_its_end() -> None:
    async with child() as server:
        await server.say(INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (await server.one())["result"]["serverInfo"]["name"] == "stdio-rig"
        await server.say(request(1, "tools/list"), request(2, "ping"), call("x", "echo", arguments={"a": "é\n"}))
        listed, pinged, called = await server.hear(3)
        assert len(listed["result"]["tools"]) == 5
        assert pinged == {"jsonrpc": "2.0", "id": 2, "result": {}}
        assert (called["id"], json.loads(called["result"]["content"][0]["text"])) == ("x", {"a": "é\n"})
        await server.stdin.aclose()
        assert await server.end() == 0


async def test_nothing_but_protocol_on_stdout() -> None:
    async with child() as server:
        await server.say(INITIALIZE, call(1, "noisy"))
        await server.hear(1)
        answer = await server.one()
        assert answer["result"]["content"] == [{"type": "text", "text": ""}]  # its own stdin is empty, not ours
        await server.stdin.aclose()
        assert await server.end() == 0
        for stray in (b"printed by a library", b"written to descriptor 1", b"printed by a child"):
            assert stray in server.errors


async def test_it_imports_no_http() -> None:
    async with child() as server:
        await server.say(call(1, "loaded"))
        modules = set(json.loads((await server.one())["result"]["content"][0]["text"]))
        unwanted = {
            "hypercorn",
            "quart",
            "quart_trio",
            "httpx",
            "h11",
            "prometheus_client",
            "rich",
            "click",
            "asyncio",
            "pydantic",
        }
        assert not modules & unwanted


async def test_both_eras_and_no_handshake_needed() -> None:
    async with child() as server:
        await server.say(request(1, "server/discover", {"_meta": META}))
        assert (await server.one())["result"]["supportedVersions"] == list(messages.STATELESS_VERSIONS)
        await server.say(call(2, "echo", _meta=META), INITIALIZE, call(3, "echo"))
        first, second, third = sorted(await server.hear(3), key=lambda message: (message["id"] == 3, message["id"] == 0))
        assert first["result"]["resultType"] == "complete"
        assert second["result"]["protocolVersion"] == "2025-11-25"
        assert "resultType" not in third["result"]
        await server.say(request(4, "server/discover"), request(5, "initialize", {"_meta": META}))
        assert (await server.one())["error"]["code"] == messages.INVALID_PARAMS
        assert (await server.one())["error"]["code"] == messages.METHOD_NOT_FOUND


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"nonsense\n", messages.PARSE_ERROR),
        (b"\xff\xfe\n", messages.PARSE_ERROR),
        (b"[]\n", messages.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', messages.INVALID_REQUEST),
        (b" " * (messages.MESSAGE_BYTES + 1) + b"\n", messages.INVALID_REQUEST),
        (b"x" * (3 * messages.MESSAGE_BYTES) + b"\n", messages.INVALID_REQUEST),
    ],
)
async def test_bad_lines_are_answered_and_survived(line: bytes, code: int) -> None:
    async with child() as server:
        await server.say(b"\n  \n", line, request(1, "ping"))
        refused, pinged = await server.hear(2)
        assert (refused["id"], refused["error"]["code"]) == (None, code)
        assert pinged["id"] == 1


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_a_cancelled_call_gets_no_answer(era: str) -> None:
    extra = {"_meta": META} if era == "stateless" else {}
    async with child() as server:
        await server.say(call(7, "hang", **extra))
        await server.until_logged(b"hanging")
        await server.say(call(7, "echo", **extra))
        assert (await server.one())["error"]["code"] == messages.INVALID_REQUEST
        for id_ in ("7", 8, None, [7]):
            await server.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_}})
        await server.say(request(1, "ping"))
        assert (await server.one())["id"] == 1
        assert b"cancelled" not in server.errors
        await server.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
        await server.until_logged(b"cancelled")
        await server.say(call(7, "echo", **extra))
        assert "result" in await server.one()


async def test_the_end_of_input_cancels_calls_at_once() -> None:
    async with child(grace_s=60) as server:
        await server.say(call(1, "hang"), call(2, "hang"))
        await server.until_logged(b"hanging\nhanging")
        await server.stdin.aclose()
        assert await server.end() == 0
        assert server.errors.count(b"cancelled") == 2


async def test_an_unterminated_last_line_is_dropped() -> None:
    async with child() as server:
        await server.say(json.dumps(request(1, "ping")).encode())
        await server.stdin.aclose()
        assert await server.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_it_and_cancels_what_outlasts_the_grace(number: signal.Signals) -> None:
    async with child(grace_s=0.1) as server:
        await server.say(call(1, "hang"))
        await server.until_logged(b"hanging")
        os.kill(server.process.pid, number)
        assert await server.end() == 0
        assert b"cancelled" in server.errors


async def test_closed_stdout_ends_it() -> None:
    async with child() as server:
        await server.say(request(1, "ping"))
        await server.one()
        await server.stdout.aclose()
        await server.say(request(2, "ping"))
        with trio.fail_after(PATIENCE_S):
            assert await server.process.wait() == 0


async def test_a_client_that_writes_much_before_it_reads() -> None:
    """No deadlock of two full pipes: reading goes on while answers wait."""
    count = 20_000
    async with child() as server:
        lines = b"".join(json.dumps(request(number, "ping")).encode() + b"\n" for number in range(count))
        with trio.fail_after(PATIENCE_S):
            await server.stdin.send_all(lines)
        assert [answer["id"] for answer in await server.hear(count)] == list(range(count))


async def test_a_client_that_does_not_read_does_not_hold_the_end() -> None:
    async with child() as server:
        await server.say(*(call(number, "large") for number in range(8)))
        await server.say(call(99, "hang"))
        await server.until_logged(b"hanging")
        await server.stdin.aclose()
        with trio.fail_after(PATIENCE_S):
            assert await server.process.wait() == 0


async def test_answers_come_in_order_of_completion() -> None:
    async with child() as server:
        await server.say(call(1, "hang"))
        await server.until_logged(b"hanging")
        await server.say(*(call(number, "echo") for number in range(2, 60)))
        assert {answer["id"] for answer in await server.hear(58)} == set(range(2, 60))


async def test_who_calls_is_settled_once() -> None:
    async with child() as server:
        again = request(1, "initialize", {"protocolVersion": "2024-11-05", "clientInfo": {"name": "b", "version": "2"}})
        await server.say(INITIALIZE, again)
        first, second = await server.hear(2)
        assert first["result"]["protocolVersion"] == second["result"]["protocolVersion"] == "2025-11-25"
        await server.stdin.aclose()
        assert await server.end() == 0
        assert server.errors.count(b'"mcp client"') == 1
