"""HTTP that two parsers would read in two ways, or none at all: one answer, nothing hidden in it runs, gatewayd serves."""

import contextlib

import trio

from tests.faults.hostile import Target, unharmed
from tests.faults.raw_requests import JSON_HEAD, chunked, post, query, statuses, told
from tests.http.served import read_all, read_answer

HIDDEN = query("INSERT INTO written VALUES ('smuggled')")
BEHIND_NOTHING = b"0\r\n\r\n" + HIDDEN
TE, CL = b"transfer-encoding: chunked\r\n", b"content-length: %d\r\n"

# Each is one request with another hidden where a parser that frames bodies otherwise would find it.
SMUGGLING = {
    "length and chunked": post(BEHIND_NOTHING, framing=CL % len(BEHIND_NOTHING) + TE),
    "chunked and length": post(BEHIND_NOTHING, framing=TE + CL % len(BEHIND_NOTHING)),
    "chunked and length 0": post(chunked(HIDDEN), framing=TE + CL % 0),
    "two lengths": post(HIDDEN, framing=CL % 0 + CL % len(HIDDEN)),
    "two lengths the other way": post(HIDDEN, framing=CL % len(HIDDEN) + CL % 0),
    "lengths in a list": post(HIDDEN, framing=b"content-length: 0, %d\r\n" % len(HIDDEN)),
    "the same length twice": post(HIDDEN, framing=CL % len(HIDDEN) * 2),
    "a signed length": post(HIDDEN, framing=b"content-length: +%d\r\n" % len(HIDDEN)),
    "a negative length": post(HIDDEN, framing=CL % -1),
    "a hexadecimal length": post(HIDDEN, framing=b"content-length: 0x%x\r\n" % len(HIDDEN)),
    "a length with an underscore": post(HIDDEN, framing=b"content-length: 1_0\r\n"),
    "a length of other digits": post(HIDDEN, framing="content-length: \u0663\r\n".encode()),
    "a length of twenty digits": post(HIDDEN, framing=b"content-length: 99999999999999999999\r\n"),
    "an empty length": post(HIDDEN, framing=b"content-length: \r\n"),
    "chunked twice": post(BEHIND_NOTHING, framing=TE * 2),
    "chunked, chunked": post(BEHIND_NOTHING, framing=b"transfer-encoding: chunked, chunked\r\n"),
    "identity": post(HIDDEN, framing=b"transfer-encoding: identity\r\n"),
    "identity, chunked": post(BEHIND_NOTHING, framing=b"transfer-encoding: identity, chunked\r\n"),
    "chunked, identity": post(BEHIND_NOTHING, framing=b"transfer-encoding: chunked, identity\r\n"),
    "gzip, chunked": post(BEHIND_NOTHING, framing=b"transfer-encoding: gzip, chunked\r\n"),
    "xchunked": post(BEHIND_NOTHING, framing=b"transfer-encoding: xchunked\r\n"),
    "quoted chunked": post(BEHIND_NOTHING, framing=b'transfer-encoding: "chunked"\r\n'),
    "chunked with a parameter": post(BEHIND_NOTHING, framing=b"transfer-encoding: chunked; q=1\r\n"),
    "chunked behind a vertical tab": post(BEHIND_NOTHING, framing=b"transfer-encoding: \x0bchunked\r\n"),
    "chunked behind a NUL": post(BEHIND_NOTHING, framing=b"transfer-encoding: \0chunked\r\n"),
    "a space before the colon": post(BEHIND_NOTHING, framing=b"transfer-encoding : chunked\r\n"),
    "a tab before the colon": post(BEHIND_NOTHING, framing=b"transfer-encoding\t: chunked\r\n"),
    "a name with an underscore": post(BEHIND_NOTHING, framing=b"transfer_encoding: chunked\r\n" + CL % len(BEHIND_NOTHING)),
    "a name behind a NUL": post(BEHIND_NOTHING, framing=b"\0transfer-encoding: chunked\r\n"),
    "a name without a value": post(BEHIND_NOTHING, framing=b"transfer-encoding\r\n" + CL % len(BEHIND_NOTHING)),
    "folded before the value": post(BEHIND_NOTHING, framing=b"transfer-encoding:\r\n chunked\r\n" + CL % len(BEHIND_NOTHING)),
    "folded into another header": post(HIDDEN, framing=b"x: y\r\n transfer-encoding: chunked\r\n" + CL % len(HIDDEN)),
    "folded at the first header": b"POST /mcp HTTP/1.1\r\n transfer-encoding: chunked\r\nhost: x\r\n\r\n" + BEHIND_NOTHING,
    "a bare LF in a value": post(BEHIND_NOTHING, framing=b"x: y\ntransfer-encoding: chunked\r\n" + CL % len(BEHIND_NOTHING)),
    "a bare CR in a value": post(BEHIND_NOTHING, framing=b"x: y\rtransfer-encoding: chunked\r\n" + CL % len(BEHIND_NOTHING)),
    "bare LF throughout": post(HIDDEN).replace(b"\r\n", b"\n", 6),
    "a bare CR for a blank line": b"POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r" + HIDDEN,
    "chunked in HTTP/1.0": post(BEHIND_NOTHING, framing=TE).replace(b"HTTP/1.1", b"HTTP/1.0", 1),
    "a chunk of 16 digits": post(b"ffffffffffffffff\r\n" + HIDDEN, framing=TE),
    "a chunk of 17 digits": post(b"10000000000000000\r\n\r\n" + HIDDEN, framing=TE),
    "a chunk of 40 digits": post(b"0" * 39 + b"5\r\nhello\r\n" + BEHIND_NOTHING, framing=TE),
    "a chunk with 0x": post(b"0x5\r\nhello\r\n" + BEHIND_NOTHING, framing=TE),
    "a signed chunk": post(b"+5\r\nhello\r\n" + BEHIND_NOTHING, framing=TE),
    "a negative chunk": post(b"-1\r\n\r\n" + BEHIND_NOTHING, framing=TE),
    "a blank before a chunk": post(b" 5\r\nhello\r\n" + BEHIND_NOTHING, framing=TE),
    "a chunk with bare LF": post(b"5\nhello\n0\n\n" + HIDDEN, framing=TE),
    "a chunk ended by other bytes": post(b"5\r\nhelloXX0\r\n\r\n" + HIDDEN, framing=TE),
    "a chunk extension with LF": post(b"5;\nxx\r\nhello\r\n0\r\n\r\n" + HIDDEN, framing=TE),
    "a chunk extension of 100 kB": post(b"5;" + b"x" * 100_000 + b"\r\nhello\r\n", framing=TE),
    "trailers that frame": post(b"0\r\ncontent-length: 1000\r\n: x\r\n\r\n" + HIDDEN, framing=TE),
    "endless trailers": post(b"0\r\n" + b"x: y\r\n" * 20_000 + b"\r\n", framing=TE),
    "a GET with a body": b"GET /mcp HTTP/1.1\r\nhost: x\r\n" + CL % len(HIDDEN) + b"\r\n" + HIDDEN,
    "two hosts": b"POST /mcp HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n" + HIDDEN,
    "no host": b"POST /mcp HTTP/1.1\r\n" + JSON_HEAD + b"\r\n" + HIDDEN,
    "an unknown expectation": post(HIDDEN, b"expect: 200-maybe\r\n"),
    "a target with a line": b"POST /mcp%0d%0a HTTP/1.1\r\nx: y HTTP/1.1\r\nhost: x\r\n" + CL % len(HIDDEN) + b"\r\n" + HIDDEN,
}

# What other protocols say first, and heads that are too much.
NOT_FOR_US = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    "HTTP/0.9": b"GET /health\r\n\r\n",
    "HTTP/9.9": b"GET /health HTTP/9.9\r\nhost: x\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "SOCKS 5": b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x1f\x90",
    "PROXY 1": b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n" + HIDDEN,
    "PROXY 2": b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(12) + HIDDEN,
    "PostgreSQL": b"\0\0\0\x08\x04\xd2\x16\x2f",
    "NULs": bytes(100_000),
    "no line end": b"x" * 1_000_000,
    "a target of 100 kB": b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
    "a NUL in the target": b"GET /mcp\0 HTTP/1.1\r\nhost: x\r\n\r\n",
    "a header of 100 kB": b"GET /health HTTP/1.1\r\nhost: x\r\nx: " + b"y" * 100_000 + b"\r\n\r\n",
    "ten thousand headers": b"GET /health HTTP/1.1\r\nhost: x\r\n" + b"x: y\r\n" * 10_000 + b"\r\n",
    "CONNECT": b"CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n",
    "a proxy's request": b"GET http://example.com/ HTTP/1.1\r\nhost: example.com\r\nconnection: close\r\n\r\n",
    "TRACE": b"TRACE /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n",
}

WEBSOCKET = (
    b"upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
H2C = b"upgrade: h2c\r\nconnection: upgrade, http2-settings\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n"

REFUSALS = {*range(400, 432), 501, 505}


async def test_what_is_hidden_would_run_if_it_were_found(target: Target) -> None:
    """Without this the tests below could not fail."""
    seen = query("INSERT INTO written VALUES ('seen')").replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1)
    assert statuses(await told(target.port, seen, all_said=False)) == [200]
    assert "seen" in target.written()


def refused(found: dict[str, list[int]]) -> None:
    """No shape has two answers or a good one. A busy gatewayd gives none to who has shut its half meanwhile; most are told."""
    assert {shape: answers for shape, answers in found.items() if len(answers) > 1 or not {*answers} <= REFUSALS} == {}
    assert sum(map(len, found.values())) > len(found) * 2 // 3


async def test_nothing_is_smuggled(target: Target) -> None:
    async with unharmed(target):
        refused({shape: statuses(await told(target.port, request)) for shape, request in SMUGGLING.items()})
    assert "smuggled" not in target.written()


async def test_nothing_is_smuggled_behind_requests_that_were_good(target: Target) -> None:
    """A connection recognises a head that it has seen: what differs from it, and be it by a byte, is read anew."""
    good = post(b"{}")
    found: dict[str, list[int]] = {}
    async with unharmed(target):
        for shape, request in SMUGGLING.items():
            async with await target.connect() as stream:
                for _ in range(3):
                    await stream.send_all(good)
                    assert (await read_answer(stream))[0] == 400  # its body is no message
                with contextlib.suppress(trio.BrokenResourceError):  # it closed already
                    await stream.send_all(request)
                    await stream.send_eof()
                found[shape] = statuses(await read_all(stream))
    refused(found)
    assert "smuggled" not in target.written()


async def test_what_is_not_for_us_is_refused(target: Target) -> None:
    async with unharmed(target):
        for shape, request in NOT_FOR_US.items():
            found = statuses(await told(target.port, request))
            assert len(found) <= 1, (shape, found)
            assert all(400 <= status <= 505 for status in found), (shape, found)
    assert "smuggled" not in target.written()


async def test_an_upgrade_is_never_taken_up(target: Target) -> None:
    """hypercorn #225: with one byte behind it, such a request ended the process."""
    async with unharmed(target):
        for path in (b"/mcp", b"/health", b"/metrics", b"/nowhere"):
            for upgrade in (WEBSOCKET, H2C):
                for behind in (b"", b"x", b"\x81\x05hello", b"\0" * 1000):
                    head = b"GET " + path + b" HTTP/1.1\r\nhost: 127.0.0.1\r\n" + upgrade + b"\r\n"
                    found = statuses(await told(target.port, head + behind))
                    assert found, head
                    assert 101 not in found, head


async def test_pipelined_requests_are_answered_in_order_and_garbage_behind_them_once(target: Target) -> None:
    async with unharmed(target):
        health = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"
        for count in (1, 300):
            for garbage in (b"\0garbage\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\xff" * 100 + b"\r\n\r\n"):
                found = statuses(await told(target.port, health * count + garbage))
                assert found[:count] == [200] * count
                assert len(found) == count + 1
                assert 400 <= found[count] <= 505
        calls = b"".join(query(f"SELECT {number} AS one", number) for number in range(100))
        answers = await told(target.port, calls + b"POST /mcp HTTP/1.1\r\nhost : x\r\n\r\n", all_said=False)
        assert statuses(answers) == [200] * 100 + [400]
        ids = [int(piece.split(b",")[0]) for piece in answers.split(b'"id":')[1:]]
        assert ids == list(range(100))
