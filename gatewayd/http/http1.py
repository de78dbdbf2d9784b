"""HTTP/1.1 of one connection, without a socket: bytes in, requests and bodies out; answers in, bytes out.

h11 reads and writes it. One short cut leads past h11: a request whose head repeats another is recognised instead of read
(`repeated_heads.py`), and a plain answer is written here as h11 would write it. Without it w1 at 8 clients costs 1.62 ms of CPU a
call instead of 1.34 (medians of three alternating runs, busy machine, 2026-11-22): 17 %, so it stays. Each half needs the other.
The states of the connection and what leads from one to the next are in `connection_state.py`.
"""

from collections.abc import Sequence
from typing import Final, final

import h11

from gatewayd.http.connection_state import ConnectionState, Step, after
from gatewayd.http.date import DateHeader
from gatewayd.http.exchange import Header, HttpHead
from gatewayd.http.repeated_heads import RepeatedHead, repeated_head

HEAD_BYTES: Final = 16 * 1024  # h11 checks between reads, so reads of this size make the true bound twice it
_CLOSE: Final = (b"connection", b"close")
READ_AHEAD_BYTES: Final = 64 * 1024  # of requests that a client pipelines behind one in progress
_PLAIN: Final = b"HTTP/1.1 %d \r\ndate: %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_TURNED_AWAY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ndate: %s\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)


@final
class Http1:
    """One request after the other. A parser reads one request and is then replaced; in state `known` it is already the next
    request's. Methods that read raise h11.RemoteProtocolError, with the status to answer."""

    def __init__(self, date: DateHeader) -> None:
        self.state: ConnectionState = "idle"
        self.head: HttpHead
        self.body_bytes: int | None = None
        """What the request's Content-Length says, if it has one."""
        self.is_last = False
        """Set to end the connection after the request in progress; its answer then says so."""
        self._date: Final = date
        self._h11: h11.Connection
        self._fed: bytes | None
        """What this parser was fed: nothing, or one piece; None if it was fed several."""
        self._replace_parser(b"")
        self._recognised: tuple[bytes, bytes] | None = None
        """The request in progress, if it is one that h11 has not seen: its bytes, and the body in them."""
        self._repeated: RepeatedHead | None = None
        """The last head that h11 read and that may be repeated; it outlives its request."""

    # -- requests

    def recognises(self, data: bytes) -> bool:
        """Whether `data` is a whole request with a head seen before; it is then in progress. If not, `feed` it. In state
        `idle`."""
        body = None if self._repeated is None else self._repeated.body_of(data)
        if self._repeated is None or body is None:
            return False
        self.head, self.body_bytes = self._repeated.head, len(body)
        self._recognised = (data, body)
        self._take("recognised")
        return True

    def feed(self, data: bytes) -> None:
        """Takes bytes from the client; empty at the end of its side."""
        if self.state in ("idle", "head"):
            self._take("fed")
        self._fed = data if self._fed == b"" else None
        self._h11.receive_data(data)

    def begins(self) -> bool:
        """Whether the whole head of a request has arrived; it is then in progress. If not, feed more. In state `head`."""
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
        self.head = HttpHead(event.method.decode("ascii"), event.target, event.http_version.decode("ascii"), headers)
        self._take("begun")
        return True

    def body(self) -> tuple[bytes, bool]:
        """The bytes of the body that arrived since the last call, and whether more follow. A recognised request returns its whole
        body each time."""
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
    def ahead_bytes(self) -> int:
        """Bytes that arrived after the request in progress."""
        return len(self._h11.trailing_data[0])

    @property
    def may_feed_ahead(self) -> bool:
        """Whether there is room for more of them."""
        return self.ahead_bytes <= READ_AHEAD_BYTES

    @property
    def has_unread(self) -> bool:
        """Whether there are, or may soon be, bytes from the client that were not read."""
        return self._h11.their_state in (h11.SEND_BODY, h11.ERROR) or bool(self._h11.trailing_data[0])

    # -- answers

    @property
    def takes_plain_answer(self) -> bool:
        """Whether the request is a POST that was read to its end, on a connection that goes on."""
        if self.is_last:
            return False
        return self.state == "known" or (self._h11.their_state is h11.DONE and self.head.method == "POST")

    def plain_answer(self, status: int, body_bytes: int) -> bytes:
        """The head of a JSON answer; the body follows unchanged. The connection is then ready for the next request. Only if
        `takes_plain_answer`: h11 has read the whole request, and would write exactly these bytes."""
        was_known = self.state == "known"
        self._take("answered_plainly")
        if was_known:
            self._recognised = None
            if self._fed != b"":
                self._take("fed")  # the parser is the next request's already
        else:
            ahead = self._h11.trailing_data[0]
            if self._fed and not ahead:
                self._repeated = repeated_head(self._fed, self.head, self.body_bytes)
            self._replace_parser(ahead)  # the old one waits for an answer that it never sees
        return _PLAIN % (status, self._date.value(), body_bytes)

    def continue_(self) -> bytes:
        """100 Continue."""
        return self._h11.send(h11.InformationalResponse(status_code=100, headers=[])) or b""

    def start(self, status: int, headers: Sequence[Header]) -> bytes:
        """The head of an answer."""
        self._hand_to_h11()
        self._take("answer_begun")
        return self._head(status, [*headers, _CLOSE] if self.is_last else [*headers])

    def data(self, data: bytes) -> bytes:
        """A piece of the answer's body."""
        return self._h11.send(h11.Data(data=data)) or b""

    def end(self) -> bytes:
        """The end of the answer. After it the connection is recycled or closed."""
        out = self._h11.send(h11.EndOfMessage()) or b""
        self._take("answer_ended" if self._h11.our_state is h11.DONE else "ended")
        return out

    def error(self, status: int) -> bytes:
        """An answer without a body that ends the connection; empty if an answer has begun."""
        if self.state not in ("head", "read", "known"):
            return b""
        self._hand_to_h11()
        self._take("refused")
        return self._head(status, [(b"content-length", b"0"), _CLOSE]) + (self._h11.send(h11.EndOfMessage()) or b"")

    @property
    def needs_answer(self) -> bool:
        """Whether a request is in progress and no answer to it has begun."""
        return self.state in ("read", "known")

    def recycle(self) -> bool:
        """Prepares for the next request; False if the connection must end. Possible in state `answered`, once all was read."""
        try:
            self._h11.start_next_cycle()
        except h11.LocalProtocolError:
            self._take("ended")
            return False
        self._take("recycled")
        self._replace_parser(self._h11.trailing_data[0])
        return True

    # -- states and parsers

    def _take(self, step: Step) -> None:
        self.state = after(self.state, step)

    def _head(self, status: int, headers: list[Header]) -> bytes:
        dated = headers if any(name == b"date" for name, _ in headers) else [(b"date", self._date.value()), *headers]
        return self._h11.send(h11.Response(status_code=status, headers=dated)) or b""

    def _hand_to_h11(self) -> None:
        """Makes h11 read a recognised request after all, because its answer is not a plain one."""
        if self._recognised is None:
            return
        self._take("handed_to_h11")
        request, self._recognised = self._recognised[0], None
        self._replace_parser(request + self._h11.trailing_data[0])
        while self._h11.their_state in (h11.IDLE, h11.SEND_BODY):
            self._h11.next_event()

    def _replace_parser(self, data: bytes) -> None:
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._fed = b""
        if data:
            self.feed(data)


def turned_away(date: DateHeader) -> bytes:
    """The 503 for a connection or a request that is not read."""
    return _TURNED_AWAY % date.value()


def _refuse(request: h11.Request) -> None:
    """Refuses requests that h11 accepts and this server does not: other major versions, and a body framed in both ways (request
    smuggling)."""
    if request.http_version not in (b"1.1", b"1.0"):
        raise h11.RemoteProtocolError("only HTTP/1.1 and HTTP/1.0 are spoken", 505)
    names = [name for name, _ in request.headers]
    if b"transfer-encoding" in names and b"content-length" in names:
        raise h11.RemoteProtocolError("a body is framed in one way", 400)
