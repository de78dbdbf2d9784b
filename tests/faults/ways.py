"""What stands between gatewayd and PostgreSQL, or stops the latter: a port that leads elsewhere and loses packets, pgbouncer,
a server whose every process is stopped."""

import contextlib
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.conftest import PASSWORD, Postgres


class Way:
    """A port that leads to a server, each new connection anew. Of what passes, `chance` cuts and delays a share of `faults`."""

    def __init__(self, leads_to: Postgres, seed: int = 0, faults: float = 0.0) -> None:
        self.lead_to(leads_to)
        self.faults = faults
        self.delayed = self.cut = 0
        self._chance = random.Random(seed)
        self.port = 0

    def lead_to(self, postgres: Postgres) -> None:
        """From the next connection on; the server may be down then, but not now."""
        self._host, self._port = postgres.host, postgres.port

    def dsn(self, dsn: str) -> str:
        """The connection string of a database over TCP, by this way."""
        return dsn.replace(f":{self._port}/", f":{self.port}/")

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(partial(trio.serve_tcp, self._serve, 0, host="127.0.0.1"))
            self.port = listeners[0].socket.getsockname()[1]
            task_status.started()

    async def _serve(self, client: trio.SocketStream) -> None:
        with contextlib.suppress(OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            async with client, await trio.open_tcp_stream(self._host, self._port) as server:
                with contextlib.suppress(*_GONE):
                    async with trio.open_nursery() as nursery:
                        for source, target in ((client, server), (server, client)):
                            nursery.start_soon(self._pass_on, source, target, nursery.cancel_scope)

    async def _pass_on(self, source: trio.SocketStream, target: trio.SocketStream, both: trio.CancelScope) -> None:
        try:
            async for data in source:
                if self._chance.random() < self.faults:
                    if self._chance.random() < 0.5:
                        self.delayed += 1
                        await trio.sleep(self._chance.uniform(0.01, 0.5))
                    else:
                        self.cut += 1
                        await target.send_all(data[: self._chance.randrange(len(data) + 1)])
                        if self._chance.random() < 0.5:  # as a router does that has forgotten the connection: RST, no FIN
                            for end in (source, target):
                                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        break
                await target.send_all(data)
        except _GONE:
            pass
        both.cancel()


_GONE = (trio.BrokenResourceError, trio.ClosedResourceError)


@contextmanager
def frozen(postgres: Postgres) -> Iterator[None]:
    """No process of the server runs: its sockets take what is sent, and nobody answers."""
    running = postgres.server.postmaster()
    assert running is not None
    os.kill(running.pid, signal.SIGSTOP)  # first, so that it starts no more of them
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text(encoding="ascii").split()
    _tell(children, signal.SIGSTOP)
    try:
        yield
    finally:
        _tell([running.pid, *children], signal.SIGCONT)


def _tell(pids: Iterable[int | str], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), number)


@contextmanager
def pgbouncer(postgres: Postgres, folder: Path, port: int, *settings: str) -> Iterator[None]:
    """pgbouncer in transaction mode with three server connections a database."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    (folder / "users.txt").write_text(f'"postgres" "{PASSWORD}"\n', encoding="ascii")
    lines = [
        "[databases]", f"* = host={postgres.host} port={postgres.port}", "[pgbouncer]", "listen_addr = 127.0.0.1",
        f"listen_port = {port}", "unix_socket_dir =", "auth_type = plain", f"auth_file = {folder}/users.txt",
        "pool_mode = transaction", "default_pool_size = 3", *settings,
    ]  # fmt: skip
    (folder / "pgbouncer.ini").write_text("\n".join(lines) + "\n", encoding="ascii")
    words = [program, str(folder / "pgbouncer.ini")]
    if os.geteuid() == 0:  # it refuses to run as root
        words += ["--user", "nobody"]
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, "nobody")
    with (folder / "log").open("wb") as told, subprocess.Popen(words, stdout=told, stderr=told) as process:
        try:
            yield
        finally:
            process.terminate()


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
