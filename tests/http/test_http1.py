"""HTTP/1.1 without a socket: whose the bytes are that a client sends ahead, however the request before was read and answered."""

import pytest

from gatewayd.http.date import DateHeader
from gatewayd.http.http1 import Http1

POST = b"POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n"


def begun(http: Http1, body: bytes, *, recognised: bool) -> None:
    assert http.state == "idle"
    if recognised:
        assert http.recognises(POST + body)
    else:
        http.feed(POST + body)
        assert http.begins()
    assert http.body() == (body, False)
    assert http.needs_answer


def answered(http: Http1, *, plain: bool) -> None:
    if plain:
        assert http.plain_answer(200, 2).endswith(b"content-length: 2\r\n\r\n")
    else:
        assert b"HTTP/1.1 202 " in http.start(202, [(b"content-length", b"0")]) + http.end()
        assert http.state == "answered"
        assert http.recycle()
    assert http.state in ("idle", "head")


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("recognised", [True, False])
def test_what_is_sent_ahead_is_the_next_request(recognised: bool, plain: bool) -> None:
    http = Http1(DateHeader(lambda: 784111777.0))
    begun(http, b"one", recognised=False)
    answered(http, plain=True)
    begun(http, b"two", recognised=recognised)
    for piece in (POST, b"thr"):
        http.feed(piece)
    assert http.has_unread
    answered(http, plain=plain)
    assert http.state == "head"
    assert http.begins()
    assert http.body() == (b"thr", False)
    answered(http, plain=plain)
    begun(http, b"fou", recognised=True)


@pytest.mark.parametrize("recognised", [True, False])
def test_the_last_answer_says_so(recognised: bool) -> None:
    http = Http1(DateHeader(lambda: 784111777.0))
    begun(http, b"one", recognised=False)
    answered(http, plain=True)
    begun(http, b"two", recognised=recognised)
    http.is_last = True
    assert not http.takes_plain_answer
    assert b"\r\nconnection: close\r\n" in http.start(200, [(b"content-length", b"0")]).lower()
    http.end()
    assert http.state == "closing"


@pytest.mark.parametrize("recognised", [True, False])
def test_an_error_is_one_answer_and_none_behind_another(recognised: bool) -> None:
    http = Http1(DateHeader(lambda: 784111777.0))
    begun(http, b"one", recognised=False)
    answered(http, plain=True)
    begun(http, b"two", recognised=recognised)
    assert http.error(500) == (
        b"HTTP/1.1 500 \r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )
    assert http.error(500) == b""
    assert http.state == "closing"
