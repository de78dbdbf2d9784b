"""HTTP/1.1 of one connection without its socket: bytes in, requests and bodies out; answers in, bytes out.

h11 reads and writes it. Two short cuts lead past h11, for what it costs a call (PROFILE.md): a head that repeats another is
recognised instead of read (`repeated.py`), and a plain answer is written here as h11 would write it.
"""

from collections.abc import Sequence
from typing import Final, final

import h11

from gatewayd.http.exchange import Head, Header
from gatewayd.http.repeated_heads import RepeatedHead, repeated_head

HEAD_BYTES: Final = 16 * 1024  # h11 checks between reads, so reads of this size make the true bound twice it
_CLOSE: Final = (b"connection", b"close")
READ_AHEAD_BYTES: Final = 64 * 1024  # of requests that a client pipelines behind one in progress


@final
class Http1:
    """One request after the other. One is in progress from when `recognises` or `begins` is true until `plain_answer`, or until
    `recycle` after the other forms of an answer. What reads raises h11.RemoteProtocolError, with the status to answer.

    A parser reads one request and is then replaced. Whose it is tells what `feed` adds to:
    - while h11 reads the request in progress, to that one, and behind its end to the next;
    - while a recognised request is in progress, which h11 never sees, already to the next.
    """

    def __init__(self) -> None:
        self.head: Head
        self.body_bytes: int | None = None
        """What the request's Content-Length says, if it has one."""
        self.is_last = False
        """Set by who wants the connection to end behind the request in progress: its answer says so."""
        self._h11: h11.Connection
        self._fed: bytes | None
        """All that this parser was given: nothing, or one piece; None once it was more."""
        self._replace_parser(b"")
        self._recognised: tuple[bytes, bytes] | None = None
        """The request in progress, if it is one that h11 has not seen: its bytes, and the body in them."""
        self._repeated: RepeatedHead | None = None
        """The last head that h11 read and that may come again; outlives its request."""

    # -- requests

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the next request is here. Between requests."""
        return self._fed == b""

    def recognises(self, data: bytes) -> bool:
        """Whether `data` is a whole request whose head is known; it is in progress then. While `is_empty`; else `feed` it."""
        body = None if self._repeated is None else self._repeated.body_of(data)
        if self._repeated is None or body is None:
            return False
        self.head, self.body_bytes = self._repeated.head, len(body)
        self._recognised = (data, body)
        return True

    def feed(self, data: bytes) -> None:
        """What the client sent; empty at its end."""
        self._fed = data if self._fed == b"" else None
        self._h11.receive_data(data)

    def begins(self) -> bool:
        """Whether the head of a request is here; it is in progress then. Otherwise more must be fed."""
        event = self._h11.next_event()
        if event is h11.NEED_DATA:
            return False
        assert isinstance(event, h11.Request)  # an end without a head is an error to h11, once a byte was fed
        _refuse(event)
        headers: list[Header] = []
        self.body_bytes = None
        for name, value in event.headers:
            if name == b"content-length":
                self.body_bytes = int(value)
            else:
                headers.append((name, value))
        self.head = Head(event.method.decode("ascii"), event.target, event.http_version.decode("ascii"), headers)
        return True

    def body(self) -> tuple[bytes, bool]:
        """What is here of the body and was not given yet, and whether there is more; of a recognised request all, each time."""
        if self._recognised is not None:
            return self._recognised[1], False
        pieces: list[bytes] = []
        while self._h11.their_state is h11.SEND_BODY:
            event = self._h11.next_event()
            if isinstance(event, h11.Data):
                pieces.append(bytes(event.data))
            elif event is h11.NEED_DATA:
                return b"".join(pieces), True
        return b"".join(pieces), False

    @property
    def wants_continue(self) -> bool:
        """Whether the client waits for 100 Continue before it sends the body."""
        return self._h11.they_are_waiting_for_100_continue

    @property
    def may_feed_ahead(self) -> bool:
        """Whether what came behind the request in progress is still little."""
        return len(self._h11.trailing_data[0]) <= READ_AHEAD_BYTES

    @property
    def has_unread(self) -> bool:
        """Whether the client has sent, or may be sending, what was not read."""
        return self._h11.their_state in (h11.SEND_BODY, h11.ERROR) or bool(self._h11.trailing_data[0])

    # -- answers

    @property
    def takes_plain_answer(self) -> bool:
        """Whether the request is a POST that was read to its end, on a connection that goes on."""
        if self.is_last:
            return False
        return self._recognised is not None or (self._h11.their_state is h11.DONE and self.head.method == "POST")

    def plain_answer(self, status: int, body_bytes: int) -> bytes:
        """The head of an answer in JSON; its body follows as it is. The next request can come. Only if `takes_plain_answer`: h11
        has read all of the request and will read another, so what it would do for these bytes is what they take."""
        if self._recognised is not None:
            self._recognised = None  # the parser is the next request's already
        else:
            ahead = self._h11.trailing_data[0]
            if self._fed and not ahead:
                self._repeated = repeated_head(self._fed, self.head, self.body_bytes)
            self._replace_parser(ahead)  # it would want to be told of the answer
        return b"HTTP/1.1 %d \r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, body_bytes)

    def continue_(self) -> bytes:
        """100 Continue."""
        return self._h11.send(h11.InformationalResponse(status_code=100, headers=[])) or b""

    def start(self, status: int, headers: Sequence[Header]) -> bytes:
        return self._start(status, [*headers, _CLOSE] if self.is_last else [*headers])

    def data(self, data: bytes) -> bytes:
        return self._h11.send(h11.Data(data=data)) or b""

    def end(self) -> bytes:
        return self._h11.send(h11.EndOfMessage()) or b""

    def error(self, status: int) -> bytes:
        """An answer that ends the connection; nothing when another has begun."""
        if self._h11.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return b""
        return self._start(status, [(b"content-length", b"0"), _CLOSE]) + self.end()

    def _start(self, status: int, headers: list[Header]) -> bytes:
        if self._recognised is not None:
            self._read_recognised(self._recognised[0])
        return self._h11.send(h11.Response(status_code=status, headers=headers)) or b""

    @property
    def is_between(self) -> bool:
        """Whether no request is in progress."""
        return self._h11.our_state is h11.IDLE and self._recognised is None

    @property
    def is_done(self) -> bool:
        """Whether the request in progress has all of its answer, one that lets the connection go on."""
        return self._h11.our_state is h11.DONE

    def recycle(self) -> bool:
        """Whether the next request can come, when this one `is_done` and read; else the connection must end."""
        try:
            self._h11.start_next_cycle()
        except h11.LocalProtocolError:
            return False
        self._replace_parser(self._h11.trailing_data[0])
        return True

    # -- parsers

    def _replace_parser(self, data: bytes) -> None:
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._fed = b""
        if data:
            self.feed(data)

    def _read_recognised(self, request: bytes) -> None:
        """Has h11 read it after all, for an answer of another form than most."""
        self._recognised = None
        self._replace_parser(request + self._h11.trailing_data[0])
        while self._h11.their_state in (h11.IDLE, h11.SEND_BODY):
            self._h11.next_event()


def _refuse(request: h11.Request) -> None:
    """What h11 lets pass and we do not: other major versions, and both ways to frame a body (request smuggling)."""
    if request.http_version not in (b"1.1", b"1.0"):
        raise h11.RemoteProtocolError("only HTTP/1.1 and HTTP/1.0 are spoken", 505)
    names = [name for name, _ in request.headers]
    if b"transfer-encoding" in names and b"content-length" in names:
        raise h11.RemoteProtocolError("a body is framed in one way", 400)
