"""The operator's side of the gate at a terminal: one request at a time is shown and decided by one line."""

import os
import re
import sys
import termios
from typing import Final, Literal

import msgspec
import trio

from gatewayd.approvals.desk.requests import DeskRequest, Requests
from gatewayd.approvals.desk.service import PATH, GateService, now_ms
from gatewayd.audit.ids import new_ulid
from gatewayd.cli.approve.shown import Piece, lines
from gatewayd.cli.output import Output, remark
from gatewayd.http.server import HttpServer

KEPT_MS: Final = 30 * 24 * 3600 * 1000
"""How long decided requests are kept after their expiry."""
_GRACE_S: Final = 1.0
_HOW: Final = "a [<=rows] [note] approves, d [note] denies, s shows the next one first"
_NOT_UNDERSTOOD: Final = f"not understood, nothing was decided: {_HOW}; a note begins with a word"
_WORD: Final = re.compile(r"(\S+)\s*")
_ROWS: Final = re.compile(r"<=\s*([0-9]{1,15})(?:\s+|$)")
_LIKE_A_BOUND: Final = re.compile(r"[<>=≤≥⩽\d]")


class Line(msgspec.Struct, frozen=True):
    """One line of the operator's. `approval_id` None: it means the request that is shown."""

    what: Literal["approved", "denied", "next"]
    approval_id: str | None = None
    rows_at_most: int | None = None
    note: str | None = None


def read_line(text: str, *, with_id: bool) -> Line | None:
    """None: not understood. `with_id`: the id stands behind the first word, for what nobody sees before deciding."""
    word = _WORD.match(text.strip())
    verbs: dict[str, Literal["approved", "denied", "next"]] = {"a": "approved", "d": "denied", "s": "next"}
    what = verbs.get(word[1]) if word is not None else None
    if word is None or what is None:
        return None
    rest = text.strip()[word.end() :]
    approval_id = None
    if with_id and what != "next":
        named = _WORD.match(rest)
        if named is None:
            return None
        approval_id, rest = named[1], rest[named.end() :]
    bound = _ROWS.match(rest) if what == "approved" else None
    if bound is not None:
        rest = rest[bound.end() :]
    elif what == "approved" and _LIKE_A_BOUND.match(rest):
        return None  # `a <12`, `a ≤12`, `a 12`: a bound that is none would be an approval without one
    return Line(what, approval_id, int(bound[1]) if bound is not None else None, rest.strip() or None)


class Desk:
    """The gate with its requests; `close` it."""

    def __init__(self, path: str, token: str, *, expires_ms: int, by: str | None) -> None:
        self._requests = Requests(path, lambda now: new_ulid(now, os.urandom), expires_ms=expires_ms)
        self._requests.forget_before(now_ms() - KEPT_MS)
        self._service = GateService(self._requests, token)
        self._by = by
        self._output = Output(as_json=False)
        self._is_terminal = sys.stdin.isatty() and self._output.is_table
        self._token = token

    def close(self) -> None:
        """Closes the file of requests."""
        self._requests.close()

    async def run(self, port: int) -> None:
        """Serves until the input ends. Raises OSError when the port cannot be bound."""
        stop = trio.Event()
        async with trio.open_nursery() as nursery:
            server = HttpServer(self._service, grace_s=_GRACE_S)
            bound: int = await nursery.start(_serve, server, port, stop)
            self._introduce(bound)
            await (self._decide_shown() if self._is_terminal else self._decide_named(nursery))
            stop.set()

    def _introduce(self, port: int) -> None:
        remark("Give gatewayd these, and a policy with `approvals: {writes: true}`:")
        remark(f"  GATEWAY_APPROVAL_URL=http://127.0.0.1:{port}{PATH}")
        remark(f"  GATEWAY_APPROVAL_TOKEN={self._token}" if self._is_terminal else "  GATEWAY_APPROVAL_TOKEN as configured here")
        remark(f"Held writes are shown here. {_HOW}; Ctrl-D ends.")

    # -- on a terminal

    async def _decide_shown(self) -> None:
        """Whatever was typed before a request was shown is thrown away: it cannot have meant it."""
        skipped: set[str] = set()
        while True:
            request = await self._next(skipped)
            self._show(request)
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
            text = await _line()
            if not text:
                return
            line = read_line(text, with_id=False)
            if line is None:
                remark(_NOT_UNDERSTOOD)
            elif line.what == "next":
                skipped.add(request.approval_id)
            else:
                self._decide(request.approval_id, line)

    async def _next(self, skipped: set[str]) -> DeskRequest:
        while True:
            asked = self._service.asked
            waiting = self._requests.open_requests(now_ms())
            for request in waiting:
                if request.approval_id not in skipped:
                    return request
            skipped.clear()
            if waiting:
                return waiting[0]
            await asked.wait()
            self._service.asked = trio.Event()

    # -- in a pipe

    async def _decide_named(self, nursery: trio.Nursery) -> None:
        nursery.start_soon(self._show_each)
        while text := await _line():
            line = read_line(text, with_id=True)
            if line is None or line.approval_id is None:
                remark("a ID [<=rows] [note], or d ID [note]")
            else:
                self._decide(line.approval_id, line)
        nursery.cancel_scope.cancel()

    async def _show_each(self) -> None:
        shown: set[str] = set()
        while True:
            asked = self._service.asked
            for request in self._requests.open_requests(now_ms()):
                if request.approval_id not in shown:
                    shown.add(request.approval_id)
                    self._output.json({"approval_id": request.approval_id, **msgspec.structs.asdict(request.ask)})
            await asked.wait()
            self._service.asked = trio.Event()

    # -- both

    def _show(self, request: DeskRequest) -> None:
        for pieces in lines(request, now_ms(), self._output.console.width):
            self._line(pieces)
        self._line([("approve? ", "bold"), (_HOW, "dim")])

    def _line(self, pieces: list[Piece]) -> None:
        self._output.line(*pieces)

    def _decide(self, approval_id: str, line: Line) -> None:
        assert line.what != "next"
        is_done = self._requests.decide(
            approval_id, line.what, now_ms(), by=self._by, note=line.note, rows_at_most=line.rows_at_most
        )
        self._service.changed()
        bound = f", {line.rows_at_most} rows at most" if line.rows_at_most is not None else ""
        remark(f"{line.what}{bound}: {approval_id}" if is_done else f"{approval_id} is not open any more; nothing was decided")


async def _line() -> str:
    """The next line of standard input; empty at its end."""
    return await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)


async def _serve(server: HttpServer, port: int, stop: trio.Event, *, task_status: trio.TaskStatus[int]) -> None:
    await server.serve("127.0.0.1", port, stop=stop, task_status=task_status)
