"""Whatever goes wrong, no secret is in what gatewayd says: logs, answers, audit file, metrics, command line, exceptions.

What is looked at is everything that leaves the process. Its memory and environment are the machine's affair (SECURITY.md).
"""

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from tests.cli.gatewayd_process import Running, environment, run, serving
from tests.conftest import Postgres
from tests.daemon.daemon_rig import SHOP, variables
from tests.faults.canaries import ADDRESS, BAD_POLICIES, ENCODED_PASSWORD, PASSWORD, POLICY, SECRETS, found_in, secret_variables
from tests.faults.hostile import ACCEPT, INITIALIZE, message

ROLE = "bearer_of_secrets"
STATEMENTS = [
    "SELECT * FROM customers LIMIT 3",
    "SELECT email FROM customers WHERE name = 'x'",
    "SELECT name::int FROM customers",
    "SELECT * FROM secrets",
    "SELEC",
    "SELECT 1/0",
    "INSERT INTO written VALUES (current_setting('is_superuser'))",
    "EXPLAIN SELECT * FROM customers",
    "SELECT current_setting('gatewayd.salt')",
]


@pytest.fixture
def role(postgres: Postgres) -> Iterator[str]:
    """The address of a role that enters with the secret password, over TCP."""
    dsn = postgres.create_database(SHOP, user=ROLE, password=PASSWORD)
    postgres.execute(f"CREATE ROLE {ROLE} LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
    yield dsn
    postgres.execute(f"DROP ROLE IF EXISTS {ROLE}")


class Heard:
    """What one gatewayd says, by where."""

    def __init__(self) -> None:
        self.outputs: dict[str, bytes] = {}
        self.http = httpx.Client(timeout=60, headers={"connection": "close"})

    def ask(self, what: str, method: str, url: str, **request: object) -> httpx.Response:
        answer = self.http.request(method, url, **request)  # type: ignore[arg-type]  # whatever httpx takes
        self.outputs[f"answer {what}"] = repr(answer.headers).encode() + answer.content
        return answer

    def query(self, base: str, headers: dict[str, str], sql: str, arguments: dict[str, str]) -> None:
        call = message("tools/call", {"name": "query", "arguments": {"sql": sql, "intent": "test", **arguments}})
        self.ask(f"{sql} {arguments}", "POST", f"{base}/mcp", json=call, headers=headers)


def ask_everything(heard: Heard, base: str, databases: Sequence[str]) -> None:
    """Agents' and operators' requests, right and wrong. No `databases`: there is one, without a name."""
    headers = {"accept": ACCEPT}
    answer = heard.ask("initialize", "POST", f"{base}/mcp", json=message("initialize", INITIALIZE), headers=headers)
    headers["mcp-session-id"] = answer.headers["mcp-session-id"]
    heard.ask("tools/list", "POST", f"{base}/mcp", json=message("tools/list"), headers=headers)
    for arguments in [{"database": name} for name in databases] or [{}]:
        for sql in STATEMENTS:
            heard.query(base, headers, sql, arguments)
    stolen = {**headers, "mcp-session-id": SECRETS["a session of somebody"]}
    heard.ask("of no session", "POST", f"{base}/mcp", json=message("ping"), headers=stolen)
    requests = [
        ("GET", "/audit/since/0", ""),
        ("GET", "/audit/since/x", ""),
        ("DELETE", "/audit/before/x", ""),
        ("GET", "/metrics", ""),
        ("GET", "/nowhere", ""),
        ("POST", "/admin/dry-run", "{"),
        ("POST", "/admin/dry-run", json.dumps({"database": [*databases, "__default__"][0], "sql": "SELECT * FROM secrets"})),
        *(("POST", "/admin/policy", text) for text in BAD_POLICIES),
    ]
    for token in (SECRETS["INDEXER_TOKEN"], SECRETS["a token that is wrong"]):
        for method, path, body in requests:
            bearer = {"authorization": f"Bearer {token}"}
            answer = heard.ask(
                f"{method} {path} {token[:5]} {body[:50]}", method, base + path, content=body.encode(), headers=bearer
            )
            assert answer.status_code != 200 or body not in BAD_POLICIES


def ask_until_unreachable(heard: Heard, base: str) -> None:
    """Names that nobody knows make it read the catalog again, every few seconds at the most."""
    bearer = {"authorization": f"Bearer {SECRETS['INDEXER_TOKEN']}"}
    answer = heard.ask("initialize", "POST", f"{base}/mcp", json=message("initialize", INITIALIZE), headers={"accept": ACCEPT})
    headers = {"accept": ACCEPT, "mcp-session-id": answer.headers["mcp-session-id"]}
    deadline_s = time.monotonic() + 60
    while (
        'gatewayd_database_reachable{database="__default__"} 0.0'
        not in heard.ask("metrics", "GET", f"{base}/metrics", headers=bearer).text
    ):
        assert time.monotonic() < deadline_s, [v for k, v in heard.outputs.items() if "nosuch" in k or "metrics" in k]
        heard.query(base, headers, "SELECT * FROM nosuch", {})
        time.sleep(0.1)


@contextmanager
def heard_out(given: dict[str, str], folder: Path) -> Iterator[tuple[Heard, str, Running]]:
    """A gatewayd with these variables, and all that it says until it has stopped; then none of it holds a secret."""
    heard = Heard()
    with serving([], given) as running, heard.http:
        running.wait_for("gatewayd started")
        yield heard, f"http://127.0.0.1:{given['PORT']}", running
        heard.outputs["command line"] = Path(f"/proc/{running.process.pid}/cmdline").read_bytes()
        assert running.stop() == 0
    heard.outputs["log"] = running.text.encode()
    for path in folder.iterdir():
        if path.suffix != ".yaml":  # the policy file is the operator's own
            heard.outputs[f"file {path.name}"] = path.read_bytes()
    assert {"file audit.db", "command line"} <= heard.outputs.keys()
    assert found_in(heard.outputs) == []


def test_the_search_finds_what_is_there() -> None:
    """Without this the tests below could not fail."""
    for name, secret in SECRETS.items():
        for shown in (secret, quote(secret, safe=""), json.dumps([secret]), repr(secret), secret.encode().hex()):
            assert f"here: {name}" in found_in({"here": f"before {shown} after".encode()})
        for lead in (b"", b"x", b"xy"):
            assert f"here: {name}" in found_in({"here": base64.b64encode(lead + secret.encode() + b"after")})


def test_one_database_and_everything_that_goes_wrong_with_it(
    role: str, postgres: Postgres, tmp_path: Path, free_port: int
) -> None:
    given = {**variables(role, tmp_path, POLICY), **secret_variables(), "GATEWAY_HOST": "127.0.0.1", "PORT": str(free_port)}
    with heard_out(given, tmp_path) as (heard, base, running):
        ask_everything(heard, base, ())
        (tmp_path / "policy.yaml").write_text(BAD_POLICIES[3], encoding="utf-8")
        running.process.send_signal(signal.SIGHUP)
        running.wait_for('"source":"sighup"')
        postgres.execute(f"ALTER ROLE {ROLE} PASSWORD 'another'")
        postgres.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{ROLE}'")
        ask_until_unreachable(heard, base)
        ask_everything(heard, base, ())
        postgres.execute(f"DROP ROLE {ROLE}")
        ask_everything(heard, base, ())
    for said in ("deny webhook failed", "policy reload failed", "report not delivered", "database unreachable"):
        assert said in running.text
    assert found_in({"the server's log": postgres.log.encode()}) == []


def test_several_databases_at_bad_addresses(role: str, postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    wrong = f"{ROLE}:{ENCODED_PASSWORD}"
    urls = {
        "RIGHT": role,
        "NO_HOST": f"postgresql://{wrong}@no-such-host.invalid/db",
        "NO_PORT": f"postgresql://{wrong}@127.0.0.1:1/db",
        "NO_NAME": f"postgresql://{wrong}@127.0.0.1:{postgres.port}/nowhere",
        "NO_TLS": f"{role}?sslmode=require",
        "NO_ROLE": role.replace(ROLE, "nobody_known"),
        "NO_SOCKET": f"postgresql://{wrong}@/db?host=/nowhere",
        "IN_QUERY": f"postgresql://127.0.0.1:{postgres.port}/nowhere?user={ROLE}&password={ENCODED_PASSWORD}",
    }
    entries = "".join(
        f"- {{name: {name.lower()}, url: '${{{name}}}', table_access: {{tables: {{secrets: deny}}}}}}\n" for name in urls
    )
    given = {**variables("", tmp_path, f"databases:\n{entries}"), **secret_variables(), **urls}
    with heard_out({**given, "GATEWAY_HOST": "127.0.0.1", "PORT": str(free_port)}, tmp_path) as (heard, base, _):
        ask_everything(heard, base, [name.lower() for name in urls])
        token = {"authorization": f"Bearer {SECRETS['INDEXER_TOKEN']}"}
        new = f"databases:\n{entries}- {{name: new, url: '{ADDRESS}'}}\n"
        assert heard.ask("reload", "POST", f"{base}/admin/policy", content=new.encode(), headers=token).status_code == 200


def test_commands_and_failures_at_start(role: str, tmp_path: Path, free_port: int) -> None:
    """The commands that look at the configuration, with a database behind it, without one, and with no right to its file."""
    given = {**variables(role, tmp_path, POLICY), **secret_variables(), "GATEWAY_HOST": "127.0.0.1", "PORT": str(free_port)}
    (tmp_path / "bad.yaml").write_text("\n".join(BAD_POLICIES[1:7]), encoding="utf-8")
    gone = {**given, "DATABASE_URL": role.replace(ROLE, "nobody_known")}
    runs = {
        "check": (["check", "--connect"], given, 0),
        "check, database gone": (["check", "--connect"], gone, 69),
        "doctor": (["doctor"], given, None),
        "doctor, database gone": (["doctor", "--json"], gone, 1),
        "validate": (["policy", "validate", str(tmp_path / "bad.yaml")], given, 78),
        "lint": (["policy", "lint", "--connect", str(tmp_path / "policy.yaml")], gone, None),
        "query, nobody there": (["query", "SELECT 1", "--intent", "test"], given, 1),
        "audit file": (["serve"], {**given, "DB_PATH": "/proc/nowhere/audit.db"}, 78),
        "stdio": (["serve", "--stdio"], gone, 0),
    }
    said = {}
    for what, (words, its, code) in runs.items():
        ended = run(words, its)
        assert code in (None, ended.returncode), (what, ended)
        assert ended.stdout + ended.stderr or what == "stdio"
        said[what] = (ended.stdout + ended.stderr).encode()
    assert found_in(said) == []


CRASH = """
import gatewayd.{module} as module
from gatewayd.__main__ import main
async def fails(*args, **kwargs):
    import os
    raise {error}(repr(dict(os.environ)))
module.{where} = fails
main()
"""


@pytest.mark.parametrize(
    ("module", "where", "error"),
    [("corridor.databases", "Databases.open", "ValueError"), ("audit.queue", "CommitQueue.run", "OSError")],
)
def test_a_crash_says_where_and_not_what(module: str, where: str, error: str, role: str, tmp_path: Path) -> None:
    """An exception whose text holds the whole environment."""
    given = {**variables(role, tmp_path, POLICY), **secret_variables(), "PORT": "1"}
    code = CRASH.format(module=module, where=where, error=error)
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment({**given, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}),
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert b"unexpected failure" in ended.stderr
    assert found_in({"stdout": ended.stdout, "stderr": ended.stderr}) == []
