"""Where the server listens: Unix sockets, and sockets that the service manager passes on."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from gatewayd.config.settings import SettingsErrors, load_settings
from gatewayd.http.listeners import open_listeners, passed_on

PATIENCE_S = 120
NO_DATABASE = "postgresql://nobody@127.0.0.1:1/none"


def variables(folder: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
    return {**kept, "DATABASE_URL": NO_DATABASE, "DB_PATH": str(folder / "audit.db"), "GATEWAY_TELEMETRY": "0", **more}


@contextmanager
def running(environ: Mapping[str, str], passed: tuple[int, ...] = ()) -> Iterator[subprocess.Popen[bytes]]:
    """gatewayd, which a shell becomes as a service manager's child does, so that LISTEN_PID is its own."""
    shell = ["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh"] if passed else []
    command = [*shell, sys.executable, "-m", "gatewayd", "serve"]
    with subprocess.Popen(command, env=dict(environ), pass_fds=passed, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def wait_until_it_serves(process: subprocess.Popen[bytes]) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if b'"gatewayd started"' in line:
            return
    pytest.fail("gatewayd ended")


def over(path: Path) -> httpx.Client:
    return httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://gatewayd", timeout=PATIENCE_S)


def test_gatewayd_serves_on_a_unix_socket_and_takes_it_away_again(short_folder: Callable[[], Path]) -> None:
    folder = short_folder()
    path = folder / "gatewayd.sock"
    left_over = socket.socket(socket.AF_UNIX)
    left_over.bind(str(path))
    left_over.close()  # as a process that was killed leaves it
    with running(variables(folder, GATEWAY_HOST=f"unix:{path}")) as process:
        wait_until_it_serves(process)
        with over(path) as client:
            assert client.get("/health").json() == {"ok": True}
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    assert not path.exists()


def test_sockets_that_were_passed_on_are_served_and_stay(short_folder: Callable[[], Path]) -> None:
    """A client that connects before gatewayd runs waits in the socket; one that connects between two runs does too."""
    folder = short_folder()
    path = folder / "passed.sock"
    environ = variables(folder, LISTEN_FDS="1", PORT="1")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen(16)
        saved = os.dup(3) if os.path.exists("/proc/self/fd/3") else None
        os.dup2(listening.fileno(), 3)
        try:
            for _ in range(2):
                with over(path) as client, running(environ, (3,)):
                    assert client.get("/health").json() == {"ok": True}
        finally:
            os.close(3) if saved is None else os.dup2(saved, 3)
    assert path.exists()


def test_variables_for_another_process_are_not_ours() -> None:
    environ = {"LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "x"}
    assert passed_on(environ, os.getpid()) == []
    assert environ == {}


async def test_a_socket_somebody_listens_on_is_not_taken_over(short_folder: Callable[[], Path]) -> None:
    path = short_folder() / "taken.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(OSError, match=r"in use"):
            await open_listeners(f"unix:{path}", 0)
    path.unlink()
    path.write_text("a file", encoding="utf-8")
    with pytest.raises(OSError, match=r"in use"):
        await open_listeners(f"unix:{path}", 0)
    assert path.read_text(encoding="utf-8") == "a file"


@pytest.mark.parametrize("host", ["unix:", "unix:relative", "unix:/" + "x" * 200])
def test_a_path_that_cannot_be_bound_is_told_at_start(host: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsErrors) as caught:
        load_settings(variables(tmp_path, GATEWAY_HOST=host))
    assert "GATEWAY_HOST" in str(caught.value)
