"""PostgreSQL's simple query protocol, as much as is needed to send a text as it stands and to see all that comes back.

No driver: one would prepare the statement, split it or refuse it. Blocking, over the unix socket, without a password.
"""

import socket
import struct
from dataclasses import dataclass, field

from gatewayd.postgres.embedded import EmbeddedPostgres


@dataclass
class Answer:
    rows: list[tuple[str | None, ...]] = field(default_factory=list)  # of all results, as text; COPY's lines too
    error: str = ""
    code: str = ""  # SQLSTATE of the error
    notices: list[str] = field(default_factory=list)
    notified: list[str] = field(default_factory=list)  # channels
    state: str = ""  # after it: "I" no transaction, "T" in one, "E" in a failed one; "" the connection is gone

    @property
    def text(self) -> str:
        lines = ["|".join("" if value is None else value for value in row) for row in self.rows]
        return "\n".join([*lines, self.error, *self.notices])


class Wire:
    """One session. `with Wire(server, database) as wire`."""

    def __init__(self, server: EmbeddedPostgres, database: str, *, user: str = "postgres", name: str = "corpus") -> None:
        running = server.postmaster()
        assert running is not None
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(30)
        self._socket.connect(str(running.socket_folder / f".s.PGSQL.{running.port}"))
        self._file = self._socket.makefile("rb")
        words = {"user": user, "database": database, "application_name": name, "client_encoding": "UTF8"}
        body = struct.pack("!i", 196608) + b"".join(f"{key}\0{value}\0".encode() for key, value in words.items()) + b"\0"
        self._socket.sendall(struct.pack("!i", len(body) + 4) + body)
        started = self._until_ready()
        assert started.state == "I", started.error

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def ask(self, sql: str) -> Answer:
        """Send one text, whatever it holds, and collect everything up to the next ready."""
        data = sql.encode() + b"\0"
        try:
            self._socket.sendall(b"Q" + struct.pack("!i", len(data) + 4) + data)
            return self._until_ready()
        except (ConnectionError, BrokenPipeError):
            return Answer(error="the connection is gone")

    def _until_ready(self) -> Answer:
        answer = Answer()
        while True:
            head = self._file.read(5)
            if len(head) < 5:
                return answer
            kind, (length,) = head[:1], struct.unpack("!i", head[1:])
            body = self._file.read(length - 4)
            if kind == b"Z":
                answer.state = body.decode()
                return answer
            if kind == b"D":
                answer.rows.append(_row(body))
            elif kind == b"d":
                answer.rows.append((body.decode(errors="replace").rstrip("\n"),))
            elif kind == b"E":
                fields = _fields(body)
                answer.code = fields["C"]
                answer.error = "\n".join(fields[key] for key in "MDHW" if key in fields)
            elif kind == b"N":
                answer.notices.append(_fields(body)["M"])
            elif kind == b"A":
                answer.notified.append(body[4:].split(b"\0")[0].decode())
            elif kind in b"GW":  # COPY FROM STDIN: there is nothing to give
                self._socket.sendall(b"f" + struct.pack("!i", 5) + b"\0")


def _row(body: bytes) -> tuple[str | None, ...]:
    (count,) = struct.unpack("!h", body[:2])
    values: list[str | None] = []
    at = 2
    for _ in range(count):
        (length,) = struct.unpack("!i", body[at : at + 4])
        at += 4
        if length < 0:
            values.append(None)
            continue
        values.append(body[at : at + length].decode(errors="replace"))
        at += length
    return tuple(values)


def _fields(body: bytes) -> dict[str, str]:
    return {chr(part[0]): part[1:].decode(errors="replace") for part in body.split(b"\0") if part}
