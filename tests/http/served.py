"""The server around an application that tests can hold still, and answers read from bare sockets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from gatewayd.config.bounds import HttpBounds
from gatewayd.http.asgi import asgi
from gatewayd.http.server import HttpServer

FIFTY = HttpBounds(connections=50)
HELLO = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
PATIENCE_S = 100  # nothing here takes long; a machine may


class App:
    """Answers by path; `held` calls wait for `release` and count what became of them."""

    def __init__(self) -> None:
        self.release = trio.Event()
        self.started = trio.Event()
        self.cancelled = 0
        self.bodies: list[bytes] = []
        self.paths: list[str] = []

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.paths.append(scope["path"])
        match scope["path"]:
            case "/held":
                self.started.set()
                try:
                    await self.release.wait()
                except trio.Cancelled:
                    self.cancelled += 1
                    raise
                await self.answer(send, b"released")
            case "/large":
                self.started.set()
                await self.answer(send, b"x" * 30_000_000)
            case "/boom":
                raise KeyError("hunter2")
            case "/half":
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"some", "more_body": True})
                raise KeyError("hunter2")
            case "/silent":
                return
            case "/body":
                body, more = b"", True
                while more:
                    event = await receive()
                    if event["type"] == "http.disconnect":
                        return
                    body += event["body"]
                    more = event["more_body"]
                self.bodies.append(body)
                await self.answer(send, b"%d" % len(body))
            case "/gone":
                self.started.set()
                while (await receive())["type"] != "http.disconnect":
                    pass
                self.cancelled += 1
                with pytest.raises(ConnectionError):
                    await self.answer(send, b"late")
            case _:
                await self.answer(send, b"hello")

    async def answer(self, send: Any, body: bytes) -> None:
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class Served:
    def __init__(self, app: App, server: HttpServer, stop: trio.Event) -> None:
        self.app, self.server, self.stop, self.port = app, server, stop, 0
        self.ended = trio.Event()

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self.port)

    async def talk(self, *pieces: bytes) -> bytes:
        """Sends the pieces as segments of their own and reads until the server closes or nothing more is due."""
        async with await self.connect() as stream:
            for piece in pieces:
                await stream.send_all(piece)
            return await read_all(stream)

    async def hello(self) -> None:
        """The server still serves."""
        async with await self.connect() as stream:
            await stream.send_all(HELLO)
            assert await read_answer(stream) == (200, b"hello")


@asynccontextmanager
async def served(bounds: HttpBounds = FIFTY, *, grace_s: float = 5) -> AsyncIterator[Served]:
    app = App()
    server = HttpServer(asgi(app), grace_s=grace_s, bounds=bounds)
    serving = Served(app, server, trio.Event())
    async with trio.open_nursery() as nursery:

        async def serve(task_status: trio.TaskStatus[int]) -> None:
            await server.serve("127.0.0.1", 0, stop=serving.stop, task_status=task_status)
            serving.ended.set()

        serving.port = await nursery.start(serve)
        with trio.fail_after(PATIENCE_S):
            yield serving
        app.release.set()
        serving.stop.set()
        nursery.cancel_scope.deadline = trio.current_time() + PATIENCE_S


async def read_all(stream: trio.SocketStream) -> bytes:
    data = b""
    with trio.fail_after(PATIENCE_S):
        try:
            while more := await stream.receive_some():
                data += more
        except trio.BrokenResourceError:
            pass
    return data


async def read_answer(stream: trio.SocketStream) -> tuple[int, bytes]:
    """One answer with a content-length."""
    data = b""
    with trio.fail_after(PATIENCE_S):
        while b"\r\n\r\n" not in data:
            more = await stream.receive_some()
            assert more, data
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(body) < length:
            body += await stream.receive_some()
    return int(head[9:12]), body[:length]
