"""Bodies of the wrong size and JSON that parsers stumble over, before a whole gatewayd: refused in its words, never a crash."""

import contextlib
import json

import pytest
import trio

from gatewayd.config.bounds import MCP_BOUNDS
from gatewayd.mcp.messages import INVALID_REQUEST, MESSAGE_BYTES, PARSE_ERROR
from tests.daemon.daemon_rig import Agent, chains, until
from tests.faults.hostile import PATIENCE_S, Target, message, unharmed
from tests.faults.raw_requests import chunked, post, query, statuses, told

DEPTH = 100_000
CLOSE = b"connection: close\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n"
LIST = json.dumps(message("tools/list")).encode()
PING = b'{"jsonrpc":"2.0","id":%s,"method":"ping","params":{}}'
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query","arguments":%s}}'
DEEP = {"lists": b"[" * DEPTH + b"]" * DEPTH, "objects": b'{"a":' * DEPTH + b"1" + b"}" * DEPTH, "half": b"[" * DEPTH}

# What stands in the body -> the code of the JSON-RPC error; HTTP 400 with each.
REFUSED = {
    "nothing": (b"", PARSE_ERROR),
    "blanks": (b" \r\n\t", PARSE_ERROR),
    "no UTF-8": (PING % b'"\xff\xfe"', PARSE_ERROR),
    "half a character": (PING % b'"\xe2\x82"', PARSE_ERROR),
    "surrogates as bytes": (PING % b'"\xed\xa0\x80"', PARSE_ERROR),
    "UTF-16": (LIST.decode().encode("utf-16"), PARSE_ERROR),
    "a byte order mark": (b"\xef\xbb\xbf" + LIST, PARSE_ERROR),
    "a NUL behind": (LIST + b"\0", PARSE_ERROR),
    "two documents": (LIST + LIST, PARSE_ERROR),
    "a comma too many": (LIST[:-1] + b",}", PARSE_ERROR),
    "a comment": (b"/* */" + LIST, PARSE_ERROR),
    "single quotes": (LIST.replace(b'"', b"'"), PARSE_ERROR),
    "NaN": (PING.replace(b"{}", b"NaN") % b"1", PARSE_ERROR),
    "a number cut short": (PING % b"1e", PARSE_ERROR),
    "a batch": (b"[" + LIST + b"]", INVALID_REQUEST),
    "an empty batch": (b"[]", INVALID_REQUEST),
    "a batch of ten thousand": (b"[" + b",".join([LIST] * 10_000) + b"]", INVALID_REQUEST),
    "a batch in a batch": (b"[[" + LIST + b"]]", INVALID_REQUEST),
    "a string": (b'"tools/list"', INVALID_REQUEST),
    "null": (b"null", INVALID_REQUEST),
    "an id of 65 bits": (PING % b"18446744073709551616", INVALID_REQUEST),
    "an id of 10 000 digits": (PING % (b"9" * 10_000), INVALID_REQUEST),
    "an id that is infinite": (PING % b"1e999999999", INVALID_REQUEST),
    "an id that is no number": (PING % b"1.5", INVALID_REQUEST),
    "an id of null": (PING % b"null", INVALID_REQUEST),
    "an id that is a list": (PING % b"[1]", INVALID_REQUEST),
    "another JSON-RPC": (PING.replace(b"2.0", b"1.0") % b"1", INVALID_REQUEST),
    "deep lists": (DEEP["lists"], PARSE_ERROR),
    "deep objects": (DEEP["objects"], PARSE_ERROR),
    "deep and cut short": (DEEP["half"], PARSE_ERROR),
    "deep in an id": (PING % DEEP["lists"], PARSE_ERROR),
    "deep in params": (PING.replace(b"{}", DEEP["objects"]) % b"1", PARSE_ERROR),
    "deep in arguments": (CALL % DEEP["lists"], PARSE_ERROR),
    "deep in an unknown key": (b'{"x":' + DEEP["lists"] + b"," + LIST[1:], PARSE_ERROR),
}


async def code_of(target: Target, body: bytes) -> tuple[int, int | None]:
    """The HTTP status and the code of the JSON-RPC error in one answer."""
    answer = await told(target.port, post(body, CLOSE), all_said=False)
    (status,) = statuses(answer)
    error = json.loads(answer.partition(b"\r\n\r\n")[2]).get("error", {})
    return status, error.get("code")


async def test_json_that_parsers_stumble_over(target: Target) -> None:
    async with unharmed(target):
        found = {what: await code_of(target, body) for what, (body, _) in REFUSED.items()}
    assert found == {what: (400, code) for what, (_, code) in REFUSED.items()}


async def test_arguments_that_are_odd(target: Target) -> None:
    """In a session, so that they reach the tools: each is an answer, and none runs something."""
    odd = {
        b'{"sql":"SELECT 1","intent":"test","x":' + b"9" * 10_000 + b"}": "invalid_arguments",
        b'{"sql":1e999999999,"intent":"test"}': "invalid_arguments",
        b'{"sql":"SELECT \\u0000","intent":"test"}': "parse_error",
        b'{"sql":"SELECT 1' + b" " * (1 << 20) + b'","intent":"test"}': "parse_error",
    }
    async with unharmed(target), Agent(target.port) as agent:
        for arguments, expected in odd.items():
            answer = await agent.http.post(
                agent.url, content=CALL % arguments, headers=agent.headers | {"content-type": "application/json"}
            )
            told_agent = json.loads(answer.json()["result"]["content"][0]["text"])
            assert not told_agent["allowed"], arguments[:60]
            assert expected in (told_agent.get("error"), told_agent.get("policy_rule")), (arguments[:60], told_agent)


async def test_of_a_key_given_twice_one_counts_everywhere(target: Target) -> None:
    """What is decided, recorded and run is one and the same statement, whichever of them it is."""
    async with unharmed(target):
        body = query("SELECT 1 AS twice").replace(b'"sql": ', b'"sql": "DELETE FROM written", "sql": ')
        head, _, content = body.partition(b"\r\n\r\n")
        head = b"\r\n".join(line for line in head.split(b"\r\n") if not line.startswith(b"content-length"))
        whole = head + b"\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(content) + content
        answer = await told(target.port, whole, all_said=False)
        result = json.loads(json.loads(answer.partition(b"\r\n\r\n")[2])["result"]["content"][0]["text"])
    (chain,) = [chain for chain in chains(target.folder).values() if "twice" in chain[0][1]["sql_raw"]]
    assert result["rows"] == [{"twice": 1}]
    assert chain[0][1]["sql_raw"] == "SELECT 1 AS twice"


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_eight_mebibytes_and_one_byte_more(is_chunked: bool, target: Target) -> None:
    async with unharmed(target):
        for size, expected in ((MESSAGE_BYTES, 400), (MESSAGE_BYTES + 1, 413)):
            body = LIST + b" " * (size - len(LIST))
            given = post(chunked(body), framing=CHUNKED + CLOSE) if is_chunked else post(body, CLOSE)
            assert statuses(await told(target.port, given, all_said=False)) == [
                expected
            ]  # 400: it was read, and no session is named


async def test_a_body_longer_or_shorter_than_it_says(target: Target) -> None:
    async with unharmed(target):
        for length, expected in ((len(LIST) + 1, [400]), (10**15, [413]), (len(LIST) - 1, [400, 400])):
            found = statuses(await told(target.port, post(LIST, framing=b"content-length: %d\r\n" % length)))
            assert found in (expected, []), length  # a busy gatewayd tells nothing to who has shut its half meanwhile


async def test_many_bodies_that_are_almost_there(target: Target) -> None:
    """Each keeps back its last byte. What is held of them all is bounded, the rest is told when to return, and calls go on."""
    clients = 2 * MCP_BOUNDS.bodies_bytes // MESSAGE_BYTES
    refused = held = 0
    body = LIST + b" " * (MESSAGE_BYTES - len(LIST))

    async def send(stream: trio.SocketStream) -> None:
        nonlocal refused, held
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await stream.send_all(post(body)[:-1])
            held += 1
            answer = await stream.receive_some()
            held -= 1
            if answer:
                assert statuses(answer) == [503]
                assert b"retry-after: 1\r\n" in answer
                refused += 1

    async with unharmed(target):
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                streams = [await target.connect() for _ in range(clients)]
                for stream in streams:
                    nursery.start_soon(send, stream)
                await until(lambda: refused + held == clients)
                await target.serves()  # small bodies always pass
                most = target.now().resident_kib - target.start.resident_kib
                for stream in streams:
                    await trio.aclose_forcefully(stream)
                nursery.cancel_scope.cancel()
    assert refused >= clients // 2
    assert most < 3 * MCP_BOUNDS.bodies_bytes // 1024
