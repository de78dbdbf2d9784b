"""docs/control-plane.md and OpenAPI say what the code has; the command line starts it and drains it."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gatewayd.control.settings import load_control_settings, with_secrets
from gatewayd.control.variables import VARIABLES
from gatewayd.control.web.api import openapi
from gatewayd.control.web.table import ROUTES
from tests.conftest import reserved_port
from tests.control.conftest import Plane

PAGE = (Path(__file__).parents[2] / "docs" / "control-plane.md").read_text(encoding="utf-8")


def test_the_table_of_variables_is_the_code_s() -> None:
    rows = [
        f"| {each.name}{' (secret)' if each.secret else ''} | {each.default_in_words} | {each.meaning} |" for each in VARIABLES
    ]
    assert re.findall(r"^\| (?:CONTROL|GATEWAY)_.*\|$", PAGE, re.MULTILINE) == rows


def test_openapi_has_every_route_of_the_api() -> None:
    document = openapi(ROUTES)
    ours = {(re.sub(r"<(\w+)>", r"{\1}", route.path), route.method.lower()) for route in ROUTES if route.door == "key"}
    assert {(path, method) for path, methods in document["paths"].items() for method in methods} >= ours
    assert document["components"]["schemas"]["Projects"]["required"] == ["projects"]


async def test_openapi_is_served(plane: Plane) -> None:
    answer = await plane.browser().get("/api/v1/openapi.json")
    assert answer.json()["openapi"] == "3.1.0"


async def test_health_readiness_and_metrics(plane: Plane) -> None:
    browser = plane.browser()
    assert (await browser.get("/healthz")).text == "ok"
    assert (await browser.get("/readyz")).text == "ready"
    assert (await browser.get("/metrics")).status_code == 401
    metrics = await browser.get("/metrics", authorization="Bearer metrics-token")
    assert "gatewayd_control_store_connections_in_use" in metrics.text
    plane.plane.stop.set()


async def test_pages_cannot_be_framed_and_run_no_script_but_ours(plane: Plane) -> None:
    answer = await plane.browser().get("/sign-in")
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    style = re.search(r'href="(/static/[^"]+[.]css)"', answer.text)
    assert style is not None
    found = await plane.browser().get(style[1])
    assert found.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in found.headers["cache-control"]


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:80", ""])
async def test_another_host_is_not_served(plane: Plane, host: str) -> None:
    assert (await plane.browser().get("/sign-in", host=host)).status_code in (400, 421)


async def test_the_loopback_address_leads_to_the_public_name(plane: Plane) -> None:
    answer = await plane.browser().get("/sign-in?next=/account", host=f"127.0.0.1:{plane.settings.port}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{plane.url}/sign-in?next=/account")


def test_secrets_are_made_once_and_for_their_owner_alone(tmp_path: Path) -> None:
    environ = {"GATEWAY_SELF_HOST": "1", "CONTROL_STATE_DIR": str(tmp_path / "state")}
    first, second = (with_secrets(load_control_settings(environ)) for _ in range(2))
    assert first.secrets == second.secrets
    files = list((tmp_path / "state" / "secrets").iterdir())
    assert len(files) == 5
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert (tmp_path / "state" / "secrets").stat().st_mode & 0o777 == 0o700


@pytest.fixture
def environ(tmp_path: Path, store_url: str) -> Iterator[dict[str, str]]:
    with reserved_port() as port:
        yield {
            "PATH": os.environ["PATH"],
            "GATEWAY_SELF_HOST": "1",
            "CONTROL_DATABASE_URL": store_url,
            "CONTROL_PORT": str(port),
            "CONTROL_STATE_DIR": str(tmp_path / "state"),
        }


def run(environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gatewayd", "control", *words]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_line_serves_and_drains(environ: dict[str, str]) -> None:
    command = [sys.executable, "-m", "gatewayd", "control", "serve"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"gatewayd control serves http://localhost:{environ['CONTROL_PORT']}\n"
        assert "works once" in process.stdout.readline()
        link = process.stdout.readline().strip()
        assert httpx.get(link, trust_env=False).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_check_and_keys_by_the_command_line(environ: dict[str, str]) -> None:
    assert "0 missing" in run(environ, "check", "--connect").stdout
    assert run(environ, "user", "list").returncode == 0
    added = run(environ, "key", "add", "CONTROL_KMS_KEY").stdout.split()[1].rstrip(";")
    line = next(line for line in run(environ, "key", "list").stdout.splitlines() if line.startswith("CONTROL_KMS_KEY"))
    assert line.split()[2] == added
    assert run(environ, "key", "use", "CONTROL_KMS_KEY", added).returncode == 0
    assert run(environ, "key", "drop", "CONTROL_KMS_KEY", added).returncode == 1
    assert run(environ, "key", "drop", "CONTROL_KMS_KEY", line.split()[1]).returncode == 0
    refused = run({**environ, "CONTROL_PORT": "x", "CONTROL_PUBLIC_URL": "http://example.com"}, "check")
    assert refused.returncode == 78
    assert "CONTROL_PORT" in refused.stderr
    assert "CONTROL_PUBLIC_URL" in refused.stderr
