"""Requests as bytes, for clients that no HTTP library would be, and what comes back."""

import contextlib
import json

import trio

from tests.faults.hostile import ACCEPT, PATIENCE_S, message
from tests.mcp.mcp_rig import META, STATELESS

JSON_HEAD = f"content-type: application/json\r\naccept: {ACCEPT}\r\n".encode()


def post(body: bytes, headers: bytes = b"", *, framing: bytes | None = None) -> bytes:
    """POST /mcp; `framing` stands in the place of a true content-length."""
    length = b"content-length: %d\r\n" % len(body) if framing is None else framing
    return b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n" + JSON_HEAD + headers + length + b"\r\n" + body


def chunked(body: bytes, size: int = 64 * 1024) -> bytes:
    pieces = (body[at : at + size] for at in range(0, len(body), size))
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def query(sql: str, id_: object = 1) -> bytes:
    """A call of the stateless era, whole in itself: no session has to be opened for it."""
    params = {"name": "query", "arguments": {"sql": sql, "intent": "test"}, "_meta": META}
    mirrored = f"mcp-protocol-version: {STATELESS}\r\nmcp-method: tools/call\r\nmcp-name: query\r\n"
    return post(json.dumps(message("tools/call", params, id_)).encode(), mirrored.encode())


async def told(port: int, *pieces: bytes, all_said: bool = True) -> bytes:
    """Sends, says that nothing more comes (unless not `all_said`), and reads meanwhile until gatewayd closes."""
    data = bytearray()

    async def say(stream: trio.SocketStream) -> None:
        with contextlib.suppress(trio.BrokenResourceError):  # it closed over what it did not want to read
            for piece in pieces:
                await stream.send_all(piece)
            if all_said:
                await stream.send_eof()

    with trio.fail_after(PATIENCE_S):
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream, trio.open_nursery() as nursery:
            nursery.start_soon(say, stream)
            with contextlib.suppress(trio.BrokenResourceError):
                while more := await stream.receive_some():
                    data += more
            nursery.cancel_scope.cancel()
    return bytes(data)


def statuses(answers: bytes) -> list[int]:
    """The status of each answer; bodies of ours hold no such line."""
    return [int(answer[:3]) for answer in answers.split(b"HTTP/1.1 ")[1:]]
