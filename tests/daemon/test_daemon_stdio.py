"""stdout carries protocol and nothing else, whatever a library, a child or a stray print writes (docs/mcp.md, stdio)."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.gatewayd_process import environment
from tests.conftest import Postgres
from tests.daemon.daemon_rig import SHOP, variables

NOISY = """
import os, subprocess, sys, warnings
from gatewayd.mcp.tools import query
run = query.run

async def noisy(*arguments):
    print("noise of print", flush=True)
    sys.__stdout__.write("noise of a library\\n")
    sys.__stdout__.flush()
    os.write(1, b"noise of C\\n")
    subprocess.run(["echo", "noise of a child"], check=True)
    warnings.warn("noise of a warning")
    return await run(*arguments)

query.run = noisy
sys.argv = ["gatewayd", "serve", "--stdio"]
from gatewayd.__main__ import main
main()
"""


def test_what_a_library_prints_is_no_protocol(postgres: Postgres, tmp_path: Path) -> None:
    given = environment(variables(postgres.create_database(SHOP), tmp_path))
    client = {"name": "t", "version": "1"}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "query", "arguments": {"sql": "SELECT 1 AS one", "intent": "t"}}},
    ]
    with subprocess.Popen(
        [sys.executable, "-c", NOISY], env=given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        assert process.stdout.read() == ""
        noise = process.stderr.read()
        assert process.wait(60) == 0
    assert [answer["id"] for answer in answers] == [1, 2]
    assert json.loads(answers[1]["result"]["content"][0]["text"])["rows"] == [{"one": 1}]
    for source in ("print", "a library", "C", "a child", "a warning"):
        assert f"noise of {source}" in noise
