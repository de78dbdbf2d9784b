"""README's commands as they stand, in its order, on a clone of this checkout: only addresses, ports and folders are others."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mcp import Client

from tests.cli.gatewayd_process import COMMAND, Running, environment
from tests.conftest import Postgres, reserved_port
from tests.control.plane_process import SHOP, plane_process

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands(title: str) -> list[str]:
    """The lines of the section's first block for a shell."""
    section = README.split(f"\n## {title}\n")[1].split("\n## ")[0]
    found = re.search(r"^```sh\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1].splitlines()


@contextmanager
def running(command: str, folder: Path, variables: dict[str, str]) -> Iterator[Running]:
    """A line of README that serves, run by a shell that becomes the command."""
    with subprocess.Popen(
        ["sh", "-c", f"exec {command}"],
        cwd=folder,
        env=environment(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        there = Running(process)
        try:
            yield there
        finally:
            if process.poll() is None:
                process.kill()
                there.ended()


async def answer(url: str, statement: str) -> object:
    async with Client(url) as client:
        result = await client.call_tool("query", {"sql": statement, "intent": "follow README"})
    (block,) = result.content
    assert block.type == "text"
    return json.loads(block.text)["rows"]


# The SDK's HTTP transport leaves its response generators to the collector, which then warns; nothing of ours is in them.
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
@pytest.mark.soak
async def test_from_a_clean_clone(postgres: Postgres, short_folder: Callable[[], Path], free_port: int) -> None:
    folder = short_folder() / "gatewayd"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    (demo,) = commands("Try it")
    assert demo == "make demo"
    # `make demo` keeps its data where a person's demo may lie; what it runs is therefore given a folder of its own.
    subprocess.run(["make", "--silent", ".venv/.run"], cwd=folder, env=environment({}), check=True)
    with running(f".venv/bin/gatewayd demo --state {folder}/demo", folder, {}) as shop:
        shop.wait_for("waits until you approve it")
        found = re.search(r"^  Agent +(\S+)$", shop.text, flags=re.MULTILINE)
        assert found is not None
        assert await answer(found[1], "SELECT count(*) AS n FROM customers WHERE id = 1") == [{"n": 1}]
        assert shop.stop() == 0
    (serve,) = commands("Use it")
    dsn = postgres.create_database()
    serve = serve.replace("postgresql://agent:password@127.0.0.1:5432/app", shlex.quote(dsn))
    with running(f"env {serve}", folder, {"PORT": str(free_port)}) as gatewayd:
        gatewayd.wait_for("gatewayd started")
        assert await answer(f"http://127.0.0.1:{free_port}/mcp", "SELECT 1 AS one") == [{"one": 1}]
        assert gatewayd.stop() == 0
    assert (folder / "audit.db").exists()


@pytest.mark.soak
def test_a_gateway_is_linked_by_the_lines_of_the_page(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    lines = commands("Linked to a control plane")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "gatewayd"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    path = {"PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    with reserved_port() as port, plane_process(postgres.create_database(), tmp_path / "plane", free_port) as plane:
        first = re.search(r"http://\S+/welcome/\S+", plane.running.wait_for("/welcome/"))
        assert first is not None
        plane.found(first[0])
        dsn = postgres.create_database(SHOP)
        plane.new_project("Shop", dsn)
        (project,) = [each["id"] for each in plane.api("GET", "/projects")["projects"]]
        token = plane.api("POST", f"/projects/{project}/gateways/tokens", {"name": "edge"})["token"]

        def here(line: str) -> str:
            line = line.replace("https://control.example.com", plane.url).replace("/var/lib/gatewayd", str(tmp_path / "state"))
            line = line.replace("postgresql://gatewayd:change-me@localhost:5432/shop", dsn)
            return line.replace("PORT=8080", f"PORT={port}").replace("127.0.0.1:8080", f"127.0.0.1:{port}")

        (tmp_path / "conf").mkdir()
        sample = (ROOT / "conf" / "gatewayd.linked.env").read_text(encoding="utf-8")
        (tmp_path / "conf" / "gatewayd.linked.env").write_text(here(sample), encoding="utf-8")
        enrol, serve, ready, status = (here(line).replace("sudo -u gatewayd ", "").partition("  #")[0] for line in lines)

        def shell(line: str) -> str:
            given = environment(path | {"GATEWAY_ENROL_TOKEN": token})
            done = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=given, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        shell(enrol)
        with running(serve, tmp_path, path) as gateway:
            gateway.wait_until(lambda text: "gatewayd started" in text and "gateway enforcing" in text, "its start")
            while (told := shell(ready).strip()) != "ready":
                assert told.startswith(("catalog", "database")), told
            assert project in shell(status)
            assert gateway.stop() == 0
