"""The connection test: `gatewayd doctor` as a process of its own, with nothing of the control plane's environment."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec
import trio

TEST_S: Final = 30.0
_MOST_BYTES: Final = 256 * 1024
_TOGETHER: Final = trio.CapacityLimiter(2)
"""Each is a process of 60 MiB for a second or two."""


class Finding(msgspec.Struct, frozen=True):
    """One line of `gatewayd doctor`: `outcome` is OK, WARN, FAIL or SKIP; `remedy` says what to do about it."""

    check: str
    outcome: str
    found: str
    remedy: str = ""
    database: str | None = None


async def checked_connection(url: str, *, engine: str | None, folder: Path) -> list[Finding]:
    """What doctor says of the database behind `url`, in its order; at most TEST_S.

    `engine`: the program, as GATEWAY_ENGINE_BIN names it; None: of this installation. Cancellation ends the process.
    `folder` is made here, holds the address in clear text, and is removed: one in RUN, which forgets what a killed control plane
    left there.
    """
    async with _TOGETHER:
        try:
            secret = _written(url, folder)
            environment = {
                "DATABASE_URL_FILE": str(secret),
                "DB_PATH": str(folder / "audit.db"),
                "PORT": "65535",
                "GATEWAY_TELEMETRY": "0",
                "HOME": str(folder),  # the driver looks there for passwords and certificates; not in that of the control plane
                "PATH": os.environ.get("PATH", os.defpath),
            }
            command = [engine, "doctor", "--json"] if engine else [sys.executable, "-m", "gatewayd", "doctor", "--json"]
            with trio.move_on_after(TEST_S):
                done = await trio.run_process(
                    command, env=environment, capture_stdout=True, stderr=subprocess.DEVNULL, check=False, cwd=folder
                )
                return read_findings(done.stdout[:_MOST_BYTES])
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return [Finding("reach", "FAIL", f"there was no answer within {TEST_S:g} s", "look at the network between here and there")]


def _written(url: str, folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True)
    secret = folder / "database-url"
    with open(os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(url)
    return secret


def read_findings(lines: bytes) -> list[Finding]:
    """What doctor says of the database; what it says of the machine it ran on is left out."""
    found = []
    for line in lines.splitlines():
        try:
            finding = msgspec.json.decode(line, type=Finding)
        except msgspec.DecodeError:
            continue
        if finding.database is not None:
            found.append(finding)
    return found or [Finding("reach", "FAIL", "the connection test could not be run", "try again; look at the log if it stays")]
