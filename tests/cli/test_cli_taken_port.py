"""A port that another program has: each command names its own setting, what it found and what to do."""

import errno
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayd.demo.shop import Demo
from gatewayd.http.listeners import why_not
from tests.cli.gatewayd_process import run


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


@pytest.mark.parametrize("more", [[], ["--engine-only"]])
def test_the_demo_says_so_before_it_starts_anything(tmp_path: Path, taken: int, more: list[str]) -> None:
    shown = run(["demo", "--state", str(tmp_path / "demo"), "--port", str(taken), *more])
    assert (shown.returncode, shown.stdout) == (69, "")
    assert shown.stderr == (
        f"gatewayd demo: --port: port {taken} of 127.0.0.1 is taken by another program; stop that program, or choose "
        "another port; without --port it finds a free one\n"
    )
    assert not (tmp_path / "demo").exists()


def test_the_engine_names_its_variable(tmp_path: Path, taken: int) -> None:
    variables = {"DATABASE_URL": "postgresql://agent@127.0.0.1:1/app", "DB_PATH": str(tmp_path / "audit.db")}
    shown = run([], variables | {"GATEWAY_HOST": "127.0.0.1", "PORT": str(taken), "GATEWAY_TELEMETRY": "0"})
    assert shown.returncode == 69
    (told,) = [line for line in map(json.loads, shown.stderr.splitlines()) if line["msg"] == "needed service unavailable"]
    assert told["error"].startswith(f"PORT: port {taken} of 127.0.0.1 is taken by another program; stop that program, or choose")


@pytest.mark.parametrize(
    ("host", "failure", "expected"),
    [
        ("127.0.0.1", OSError(errno.EADDRINUSE, "Address already in use"), "CONTROL_PORT: port 80 of 127.0.0.1 is taken"),
        ("127.0.0.1", OSError(errno.EACCES, "Permission denied"), "CONTROL_PORT: this account may not listen on port 80"),
        ("192.0.2.1", OSError(errno.EADDRNOTAVAIL, "Cannot assign"), "CONTROL_HOST: 192.0.2.1 is no address of this machine"),
        ("no.such", socket.gaierror(-2, "Name not known"), "CONTROL_HOST: no.such is no address of this machine"),
        ("unix:/nowhere/s", OSError(errno.ENOENT, "No such file"), "CONTROL_HOST: cannot listen on unix:/nowhere/s"),
    ],
)
def test_the_setting_at_fault_is_named(host: str, failure: OSError, expected: str) -> None:
    assert why_not(failure, host, 80, host_setting="CONTROL_HOST", port_setting="CONTROL_PORT").startswith(expected)


def test_the_demo_keeps_the_port_that_was_asked_for(tmp_path: Path, taken: int) -> None:
    demo = Demo(tmp_path)
    found = demo.port()
    assert demo.port(found) == demo.port() == found
    demo.port(taken)
    assert demo.port() != taken, "what is taken is not chosen again"
