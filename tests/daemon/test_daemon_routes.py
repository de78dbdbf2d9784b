"""Every operators' route of a real gatewayd: statuses, headers, bodies, refusals (docs/http-api.md)."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import trio

from gatewayd.audit.service import open_audit
from gatewayd.config.settings import load_settings
from gatewayd.corridor.databases import Databases
from gatewayd.corridor.gateway import Gateway
from gatewayd.corridor.reload import Reloader
from gatewayd.http.server import HttpServer
from gatewayd.operators.admin import admin_routes
from gatewayd.operators.app import create_app
from gatewayd.operators.guard import Guard
from tests.conftest import Postgres
from tests.daemon.daemon_rig import PATIENCE_S, POLICY, SHOP, Agent, gatewayd
from tests.daemon.operators_rig import BEARER, TOKEN, Operator, operated

LAST = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"
ROUTES = [
    ("GET", "/audit/since/0"),
    ("DELETE", f"/audit/before/{LAST}"),
    ("POST", "/admin/policy"),
    ("POST", "/admin/dry-run"),
    ("GET", "/metrics"),
]
BODY_BYTES = 8 * 1024 * 1024


@pytest.fixture(scope="module")
def operator(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """One gatewayd for the whole file: its tests leave the policy as they found it."""
    with operated(postgres.create_database(SHOP), tmp_path_factory.mktemp("routes")) as operator:
        yield operator


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x"])
def test_without_the_token_401(operator: Operator, method: str, path: str, authorization: str | None) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    answer = httpx.request(method, f"http://127.0.0.1:{operator.port}{path}", headers=headers, timeout=60)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json()) == ["error"]
    assert TOKEN not in answer.text


def undated(answer: httpx.Response) -> list[tuple[bytes, bytes]]:
    return [header for header in answer.headers.raw if header[0].lower() != b"date"]


def test_without_a_configured_token_every_route_is_an_unknown_path(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    client = httpx.Client(base_url=f"http://127.0.0.1:{free_port}", headers=BEARER, timeout=60)
    with gatewayd(postgres.create_database(SHOP), tmp_path, free_port), client as http:
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"):
            unknown = http.request(method, "/no/such/path", content=b"x: 1")
            assert unknown.status_code == 404
            for _, path in ROUTES:
                answer = http.request(method, path, content=b"x: 1")
                assert answer.status_code == 404
                assert answer.content == unknown.content
                assert undated(answer) == undated(unknown)
        assert http.get("/health").json() == {"ok": True}


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/audit/since/0", "GET, HEAD"),
        ("GET", "/audit/before/0", "DELETE"),
        ("GET", "/admin/policy", "POST"),
        ("PUT", "/admin/policy", "POST"),
        ("OPTIONS", "/admin/dry-run", "POST"),
        ("DELETE", "/metrics", "GET, HEAD"),
        ("POST", "/health", "GET, HEAD, OPTIONS"),
    ],
)
def test_another_method_is_405_with_allow(operator: Operator, method: str, path: str, allow: str) -> None:
    answer = operator.http.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allow)
    assert answer.json() == {"error": "method not allowed"}


@pytest.mark.parametrize("path", ["/admin/policy", "/admin/dry-run"])
@pytest.mark.parametrize("chunked", [False, True])
async def test_an_oversized_body_is_413(operator: Operator, path: str, chunked: bool) -> None:
    """Raw: a client library may see the connection close before it has read the answer."""
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {BODY_BYTES + 1}"
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n{framing}\r\n\r\n".encode()
    piece = b"10000\r\n" + b"#" * 0x10000 + b"\r\n"
    received = bytearray()
    with trio.fail_after(PATIENCE_S):
        async with await trio.open_tcp_stream("127.0.0.1", operator.port) as stream:
            await stream.send_all(head)
            if chunked:
                for _ in range(BODY_BYTES // 0x10000):
                    await stream.send_all(piece)
                await stream.send_all(b"1\r\n#\r\n")
            async for part in stream:
                received += part
    top, _, body = bytes(received).partition(b"\r\n\r\n")
    assert top.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in top.lower()
    assert json.loads(body) == {"error": f"body is longer than {BODY_BYTES} bytes"}


def test_a_body_of_just_the_size_is_read(operator: Operator) -> None:
    text = POLICY.encode()
    answer = operator.http.post("/admin/policy", content=text + b"#" * (BODY_BYTES - len(text)))
    assert (answer.status_code, answer.json()["ok"]) == (200, True)


@pytest.mark.parametrize("path", ["/admin/policy", "/admin/dry-run"])
async def test_a_slow_body_is_408(path: str, tmp_path: Path) -> None:
    (tmp_path / "url").write_text("postgresql://nobody@127.0.0.1:1/none", encoding="utf-8")
    settings = load_settings({"DATABASE_URL_FILE": str(tmp_path / "url"), "DB_PATH": str(tmp_path / "audit.db")})
    async with open_audit(settings.db_path) as audit, trio.open_nursery() as nursery:
        gateway = Gateway(audit, {})
        routes = admin_routes(gateway, Reloader(settings, gateway, Databases()), Guard(TOKEN), body_s=0.05)
        stop = trio.Event()
        server = HttpServer(create_app(cast(Any, None), [routes]), grace_s=1)

        async def serve(task_status: trio.TaskStatus[int]) -> None:
            await server.serve("127.0.0.1", 0, stop=stop, task_status=task_status)

        port: int = await nursery.start(serve)
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nAuthorization: Bearer {TOKEN}\r\n\r\nhalf"
            await stream.send_all(head.encode())
            answer = await stream.receive_some()
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in answer.lower()
        stop.set()


def test_a_policy_is_taken(operator: Operator) -> None:
    answer = operator.http.post("/admin/policy", content=POLICY.encode(), headers={"content-type": "text/whatever"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    assert list(body) == ["ok", "applied_at"]
    assert body["ok"] is True
    assert datetime.fromisoformat(body["applied_at"]).tzinfo is not None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"table_access: {default: read", "YAML syntax error"),
        (b"\xff\xfe", "UTF-8"),
        (b"table_access: {default: everything}", "table_access.default"),
        (b"table_acess: {default: read}", "did you mean table_access"),
        (b"table_access: {default: read}\ntable_access: {default: deny}", "again"),
        (b"table_access:", "table_access"),
        (b"guardrails: {block_ddl: true}", "found no table_access"),
        (b"", "found no table_access"),
        (b"- a list", "mapping"),
        (b'databases: [{name: a, url: "postgresql://h/d"}]', "several databases"),
        (b"table_access: {default: read}\nlimits: {max_rows: 0}", "limits.max_rows"),
    ],
)
def test_a_policy_that_is_none_is_400_and_changes_nothing(operator: Operator, body: bytes, words: str) -> None:
    before, told = operator.policy_hash(), len(operator.rows("POLICY_RELOADED"))
    answer = operator.http.post("/admin/policy", content=body)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json()) == ["ok", "error"]
    assert answer.json()["ok"] is False
    assert words in answer.json()["error"]
    assert operator.policy_hash() == before
    assert len(operator.rows("POLICY_RELOADED")) == told


def verdicts(operator: Operator, *probes: tuple[str, str]) -> list[tuple[str, str]]:
    asked = [{"table": table, "action": action} for table, action in probes]
    found = operator.dry_run(database="__default__", probes=asked)["verdicts"]
    assert [verdict["probe"] for verdict in found] == asked
    assert [verdict["action"] for verdict in found] == [action for _, action in probes]
    return [(verdict["decision"], verdict["matched_rule"]) for verdict in found]


def test_probes_are_decided_under_the_policy_in_force(operator: Operator) -> None:
    assert verdicts(
        operator,
        ("customers", "select"),
        ("customers", "insert"),
        ("public.secrets", "select"),
        ("written", "delete"),
        ("written", "update"),
        ("information_schema.tables", "select"),
    ) == [
        ("allow", "default:read"),
        ("deny", "default:read"),
        ("deny", "table:public.secrets→deny"),
        ("allow", "table:public.written→read_write"),
        ("allow", "table:public.written→read_write"),
        ("allow", "information_schema:read"),
    ]


@pytest.mark.parametrize(
    ("sql", "decision", "matched_rule", "tables", "action"),
    [
        ("SELECT * FROM orders JOIN customers ON true", "allow", "default:read", ["public.orders", "public.customers"], "select"),
        ("DELETE FROM written", "deny", "dangerous_statement", ["public.written"], "delete"),
        ("SELECT 1; SELECT 2", "deny", "multi_statement", [], "unknown"),
        ("SELEC 1", "deny", "parse_error", [], "unknown"),
        ("", "deny", "parse_error", [], "unknown"),
        ("INSERT INTO secrets VALUES (1)", "deny", "table:public.secrets→deny", ["public.secrets"], "insert"),
    ],
)
def test_a_statement_is_decided_and_not_run(
    operator: Operator, sql: str, decision: str, matched_rule: str, tables: list[str], action: str
) -> None:
    rows = len(operator.rows())
    answer = operator.dry_run(database="__default__", sql=sql)
    assert list(answer) == ["verdicts", "truncated", "total_tables", "policy_hash"]
    (verdict,) = answer["verdicts"]
    assert verdict.pop("reason")
    assert verdict == {"decision": decision, "matched_rule": matched_rule, "tables": tables, "action": action, "sql": sql}
    assert (answer["truncated"], answer["total_tables"]) == (False, len(tables))
    assert len(operator.rows()) == rows


def test_of_more_than_fifty_tables_the_first_fifty_are_decided(operator: Operator) -> None:
    probes = [{"table": f"t{number % 60}", "action": "select"} for number in range(250)]
    answer = operator.dry_run(database="__default__", probes=probes)
    assert (answer["truncated"], answer["total_tables"]) == (True, 60)
    assert [verdict["probe"] for verdict in answer["verdicts"]] == [
        probe for probe in probes if int(probe["table"].removeprefix("t")) < 50
    ]
    whole = operator.dry_run(database="__default__", probes=probes[:50])
    assert (whole["truncated"], whole["total_tables"], len(whole["verdicts"])) == (False, 50, 50)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "json"),
        (b"", "json"),
        (b"[]", "object"),
        (b'{"database":"nowhere","sql":"SELECT 1"}', "database"),
        (b'{"sql":"SELECT 1"}', "database"),
        (b'{"database":"__default__"}', "neither"),
        (b'{"database":"__default__","sql":"SELECT 1","probes":[]}', "both"),
        (b'{"database":"__default__","sql":"SELECT 1","more":1}', "more"),
        (b'{"database":"__default__","probes":[{"table":"a.b.c","action":"select"}]}', "probes[0].table"),
        (b'{"database":"__default__","probes":[{"table":"","action":"select"}]}', "probes[0].table"),
        (b'{"database":"__default__","probes":[{"table":"a","action":"drop"}]}', "drop"),
        (json.dumps({"database": "__default__", "probes": [{"table": "a", "action": "select"}] * 251}).encode(), "251"),
    ],
)
def test_a_dry_run_that_is_none_is_400(operator: Operator, body: bytes, words: str) -> None:
    answer = operator.http.post("/admin/dry-run", content=body)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/json"
    assert words in answer.json()["error"].lower()


def test_the_hash_follows_the_policy_and_nothing_else(operator: Operator) -> None:
    before = operator.policy_hash()
    assert len(before) == 16
    assert int(before, 16) >= 0
    assert operator.policy("table_access: {tables: {written: read_write, secrets: deny}}").status_code == 200  # other order
    assert operator.policy_hash() == before
    assert operator.policy("table_access: {tables: {written: read, secrets: deny}}").status_code == 200
    assert operator.policy_hash() != before
    assert operator.policy(POLICY).status_code == 200
    assert operator.policy_hash() == before


async def test_the_audit_is_pulled_and_then_deleted(postgres: Postgres, tmp_path: Path) -> None:
    with operated(postgres.create_database(SHOP), tmp_path) as operator:
        async with Agent(operator.port) as agent:
            told = [(await agent.query(sql))["auditId"] for sql in ("SELECT 1", "DELETE FROM written", "SELECT 1/0")]
        page: dict[str, Any] = operator.http.get("/audit/since/0?limit=5").json()
        assert list(page) == ["rows", "next_cursor"]
        assert [row["event_type"] for row in page["rows"]] == ["ATTEMPTED", "DECIDED", "EXECUTED", "ATTEMPTED", "DECIDED"]
        assert page["next_cursor"] == page["rows"][-1]["id"]
        rest = operator.http.get(f"/audit/since/{page['next_cursor']}").json()
        assert [row["event_type"] for row in rest["rows"]] == ["ATTEMPTED", "DECIDED", "FAILED"]
        assert rest["next_cursor"] is None
        assert [row["id"] for row in page["rows"] + rest["rows"] if row["event_type"] == "DECIDED"] == told
        assert operator.http.delete(f"/audit/before/{page['next_cursor']}").json() == {"deleted": 5}
        assert operator.http.delete(f"/audit/before/{page['next_cursor']}").json() == {"deleted": 0}
        assert operator.rows() == rest["rows"]
        for method, path in (("GET", "/audit/since/1"), ("DELETE", "/audit/before/null")):
            assert operator.http.request(method, path).status_code == 400


def test_metrics_are_text_for_prometheus(operator: Operator) -> None:
    answer = operator.http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert answer.headers["cache-control"] == "no-store"


def test_health_asks_for_nothing(operator: Operator) -> None:
    answer = httpx.get(f"http://127.0.0.1:{operator.port}/health", timeout=60)
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
