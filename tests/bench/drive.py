"""Load on /mcp from raw sockets and epoll: cheap enough to offer more than a gatewayd can take from the same machine.

Closed loop (`rate` None: each connection asks again when it is answered, after `pause_s`) or open loop (`rate` requests a second,
whether or not answers come, as long as a connection is free). Each function blocks: run it in a process or thread of its own.
"""

import heapq
import json
import select
import socket
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

import msgspec

_ACCEPT: Final = "application/json, text/event-stream"
_WAIT_S: Final = 0.05

Sql = Callable[[int], str]


class Load(msgspec.Struct):
    """What was offered and what became of it. Latencies in seconds, from sending to the whole answer."""

    offered: int = 0
    unsent: int = 0  # open loop: due while no connection was free
    seconds: float = 0.0
    outcomes: dict[str, int] = {}  # "rows", "error" (other tool errors), "refused", "503", "lost"
    without_retry: int = 0  # refusals that do not say when to try again
    served_s: list[float] = []
    served_cpu_s: list[float] = []  # what the watched process computed meanwhile: its part of the wait if it had a core to itself
    refused_s: list[float] = []

    def a_second(self, outcome: str) -> float:
        return self.outcomes.get(outcome, 0) / self.seconds


def quantile(values: list[float], share: float) -> float:
    """0 where there is no value."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def cpu_s(pid: int) -> float:
    """CPU time of a process so far, to the nanosecond; 0 for process 0, which is none."""
    return time.clock_gettime((~pid << 3) | 2) if pid else 0.0  # clock_getcpuclockid(3)


class _Connection:
    """One keep-alive connection, one request in flight."""

    def __init__(self, port: int, session: bytes | None = None) -> None:
        self._port = port
        self.sent_s = self.sent_cpu_s = 0.0
        self.session = session or b""
        self.connect()

    def connect(self) -> None:
        """A new socket for the same session."""
        self._buffer = bytearray()
        self._unsent = memoryview(b"")
        self.socket = socket.create_connection(("127.0.0.1", self._port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.session = self.session or self._initialize()
        self.socket.setblocking(False)

    def _initialize(self) -> bytes:
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}
        body = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).encode()
        self.socket.sendall(_head(len(body), b"") + body)
        while (answer := self._answer()) is None:
            self._buffer += self.socket.recv(65536)
        head, _ = answer
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"mcp-session-id":
                return value.strip()
        raise ConnectionError(f"no session: {head!r}")

    def ask(self, sql: str, number: int) -> None:
        params = {"name": "query", "arguments": {"sql": sql, "intent": "load"}}
        body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()
        self.sent_s = time.perf_counter()
        self._unsent = memoryview(_head(len(body), self.session) + body)

    def push(self) -> bool:
        """Send on; whether something is left to be sent."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self.socket.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:  # closed meanwhile: reading will tell
            self._unsent = memoryview(b"")
        return bool(self._unsent)

    def pull(self) -> tuple[bytes, bytes] | None:
        """Head and body once they are whole. Raises ConnectionError at the end of the stream."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionResetError
        self._buffer += data
        return self._answer()

    def _answer(self) -> tuple[bytes, bytes] | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self._buffer[:end])
        at = head.lower().find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0])
        if len(self._buffer) < end + 4 + length:
            return None
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        self._buffer.clear()
        return head, body


def _head(length: int, session: bytes) -> bytes:
    lines = ["POST /mcp HTTP/1.1", "host: 127.0.0.1", "content-type: application/json", f"accept: {_ACCEPT}"]
    lines += [f"content-length: {length}", *([f"mcp-session-id: {session.decode()}"] if session else []), "", ""]
    return "\r\n".join(lines).encode()


def drive(
    port: int,
    sql: Sql,
    *,
    seconds: float,
    connections: int,
    rate: float | None = None,
    pause_s: float = 0.0,
    one_session: bool = False,
    pid: int = 0,
    on_ready: Callable[[], None] = lambda: None,
) -> Load:
    """Offer load. `sql` gives the statement of the n-th request; each connection is a session, or all are one (`one_session`)."""
    load = Load(outcomes={}, served_s=[], refused_s=[])
    outcomes: Counter[str] = Counter()
    peers: dict[int, _Connection] = {}
    session: bytes | None = None
    for _ in range(connections):
        peer = _Connection(port, session)
        peers[peer.socket.fileno()] = peer
        if one_session:
            session = peer.session
    on_ready()
    poll = select.epoll()
    for number in peers:
        poll.register(number, select.EPOLLIN)
    began = time.perf_counter()
    end = began + seconds
    idle = deque(peers.values())
    pausing: list[tuple[float, int]] = []
    asked = 0

    def ask(peer: _Connection) -> None:
        nonlocal asked
        asked += 1
        peer.sent_cpu_s = cpu_s(pid)
        peer.ask(sql(asked), asked)
        if peer.push():
            poll.modify(peer.socket.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def reconnect(peer: _Connection) -> int:
        poll.unregister(peer.socket.fileno())
        del peers[peer.socket.fileno()]
        peer.socket.close()
        peer.connect()
        peers[peer.socket.fileno()] = peer
        poll.register(peer.socket.fileno(), select.EPOLLIN)
        return peer.socket.fileno()

    while (now := time.perf_counter()) < end:
        if rate is None:
            while pausing and pausing[0][0] <= now:
                idle.append(peers[heapq.heappop(pausing)[1]])
            while idle:
                ask(idle.popleft())
            wait_s = min(_WAIT_S, max(0.0, pausing[0][0] - now)) if pausing else _WAIT_S
        else:
            due = int((now - began) * rate) - load.offered
            load.offered += due
            while due > 0 and idle:
                ask(idle.popleft())
                due -= 1
            load.unsent += due
            wait_s = 1 / rate
        for number, events in poll.poll(wait_s):
            peer = peers[number]
            if events & select.EPOLLOUT and not peer.push():
                poll.modify(number, select.EPOLLIN)
            if not events & ~select.EPOLLOUT:
                continue
            try:
                answer = peer.pull()
            except BlockingIOError:
                continue
            except OSError:
                answer = b"", b""
            if answer is None:
                continue
            took_s = time.perf_counter() - peer.sent_s
            outcome = _outcome(*answer)
            outcomes[outcome] += 1
            if outcome in ("refused", "503"):
                load.refused_s.append(took_s)
                load.without_retry += b"retry-after" not in answer[0].lower() and b"retry_after_s" not in answer[1]
            else:
                load.served_s.append(took_s)
                load.served_cpu_s.append(cpu_s(pid) - peer.sent_cpu_s)
            if outcome in ("503", "lost"):
                number = reconnect(peer)
            if pause_s:
                heapq.heappush(pausing, (time.perf_counter() + pause_s, number))
            else:
                idle.append(peer)
    load.seconds = time.perf_counter() - began
    load.offered = load.offered or asked
    load.outcomes = dict(outcomes)
    for peer in peers.values():
        peer.socket.close()
    poll.close()
    return load


def _outcome(head: bytes, body: bytes) -> str:
    if not head:
        return "lost"
    if b" 503 " in head[:16]:
        return "503"
    if b"too_many_calls" in body:
        return "refused"
    return "rows" if b'\\"allowed\\":true,\\"rows' in body else "error"


class Health(msgspec.Struct):
    """Of each GET /health: seconds until its answer, `inf` where there was none, and what the daemon computed meanwhile."""

    took_s: list[float] = []
    cpu_s: list[float] = []


def probe_health(port: int, *, seconds: float, pid: int = 0, pause_s: float = 0.02) -> Health:
    """Ask again and again, on a connection of its own each time, as load balancers do."""
    found = Health([], [])
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began, began_cpu_s = time.perf_counter(), cpu_s(pid)
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as probe:
                probe.sendall(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
                is_well = probe.recv(4096).startswith(b"HTTP/1.1 200")
        except OSError:
            is_well = False
        found.took_s.append(time.perf_counter() - began if is_well else float("inf"))
        found.cpu_s.append(cpu_s(pid) - began_cpu_s)
        time.sleep(pause_s)
    return found
