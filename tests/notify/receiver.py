"""An HTTP receiver on a real socket that behaves as badly as told."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import h11
import msgspec
import trio

Answer = Callable[[trio.SocketStream], Awaitable[None]]


class Receiver:
    """`requests` are the heads and JSON bodies received; `answer` says what is done then."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[tuple[h11.Request, dict[str, object]]] = []
        self.connections = 0
        self.most_at_once = 0
        self.url = ""
        self._at_once = 0
        self._news = trio.Condition()

    async def received(self, count: int) -> None:
        """Returns once `count` requests have arrived."""
        async with self._news:
            while len(self.requests) < count:
                await self._news.wait()

    async def talk(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await self._read_and_answer(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError):  # it gave up midway
            return
        finally:
            self._at_once -= 1

    async def _read_and_answer(self, stream: trio.SocketStream) -> None:
        parser = h11.Connection(h11.SERVER)
        head: h11.Request | None = None
        body = b""
        while True:
            match parser.next_event():
                case h11.NEED_DATA:
                    parser.receive_data(await stream.receive_some())
                case h11.Request() as head:
                    pass
                case h11.Data(data=data):
                    body += bytes(data)
                case _:
                    break
        if head is None:
            return
        async with self._news:
            self.requests.append((head, msgspec.json.decode(body)))
            self._news.notify_all()
        await self.answer(stream)


def status(line: str, headers: str = "") -> Answer:
    async def answer(stream: trio.SocketStream) -> None:
        await stream.send_all(f"HTTP/1.1 {line}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())

    return answer


async def silence(stream: trio.SocketStream) -> None:
    while await stream.receive_some():  # until the sender gives up
        pass


async def endless_body(stream: trio.SocketStream) -> None:
    await stream.send_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await stream.send_all(b"1000\r\n" + b"x" * 4096 + b"\r\n")


@asynccontextmanager
async def receiving(answer: Answer) -> AsyncGenerator[Receiver, None]:
    receiver = Receiver(answer)
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        receiver.url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}/hook/path-canary?key=query-canary"
        nursery.start_soon(trio.serve_listeners, receiver.talk, [listener])
        yield receiver
        nursery.cancel_scope.cancel()
