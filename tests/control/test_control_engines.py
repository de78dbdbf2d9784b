"""Agents through /mcp/<token>: engines that the control plane runs itself, on a real database, with the official client."""

import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from mcp import Client

from gatewayd.audit.ids import ulid_value
from tests.cli.gatewayd_process import serving
from tests.conftest import Postgres, reserved_port
from tests.control.plane_process import POLICY, SHOP, PlaneProcess, plane_environment, plane_process

PATIENCE_S = 60.0
JSON = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
LONG = "SELECT count(*) AS in_the_middle FROM generate_series(1, 1000000) AS a, generate_series(1, 1000000) AS b"
RUNS_LONG = "FROM pg_stat_activity WHERE query LIKE '%in_the_middle%' AND state = 'active' AND pid <> pg_backend_pid()"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}


class Site:
    """A control plane with one project whose database is the shop. `token` opens it."""

    def __init__(self, plane: PlaneProcess, state: Path, postgres: Postgres, store_url: str) -> None:
        self.plane, self.state, self.postgres, self.store_url = plane, state, postgres, store_url
        self.shop = postgres.create_database(SHOP)
        self.project = plane.new_project("Shop", self.shop)
        self.token = plane.new_token(self.project)

    def another(self, name: str) -> tuple[str, dict[str, Any]]:
        """A project of its own and its token: for a test that stops, pauses or breaks it."""
        project = self.plane.new_project(name, self.shop)
        return project, self.plane.new_token(project)

    def engines(self, project: str) -> list[int]:
        """The processes that work in the project's folder."""
        folder = str(self.state / "engines" / project)
        found = []
        for each in Path("/proc").iterdir():
            try:
                if each.name.isdigit() and os.readlink(each / "cwd") == folder and (each / "cmdline").read_bytes():
                    found.append(int(each.name))
            except OSError:
                continue
        return found

    def recorded(self, project: str, column: str) -> list[Any]:
        """What the engine's own audit file has in a column."""
        with closing(sqlite3.connect(self.state / "engines" / project / "audit.db")) as file:
            return [row[0] for row in file.execute(f"SELECT {column} FROM audit_events ORDER BY seq")]


@pytest.fixture(scope="module")
def site(postgres: Postgres, migrated: str, short_folder: Callable[[], Path]) -> Iterator[Site]:
    store_url, state = postgres.copy_database(migrated), short_folder()
    with reserved_port() as port, plane_process(store_url, state, port) as plane:
        plane.found(plane.running.wait_for("/welcome/").strip())
        yield Site(plane, state, postgres, store_url)
        assert plane.running.stop() == 0


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


class Agent:
    """A client of the handshake era, down to its headers."""

    def __init__(self, site: Site, token: str, headers: dict[str, str] | None = None) -> None:
        self.url = site.plane.mcp(token)
        self.headers = JSON | (headers or {})

    def send(self, message: object, method: str = "POST", **headers: str) -> httpx.Response:
        content = json.dumps(message).encode() if message is not None else b""
        with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
            return client.request(method, self.url, content=content, headers=self.headers | headers)

    def open(self) -> httpx.Response:
        answer = self.send(INITIALIZE)
        if answer.status_code == 200:
            self.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        return answer

    @contextmanager
    def stream(self) -> Iterator[httpx.Response]:
        with (
            httpx.Client(trust_env=False, timeout=PATIENCE_S) as client,
            client.stream("GET", self.url, headers=self.headers) as stream,
        ):
            yield stream

    def query(self, sql: str) -> httpx.Response:
        params = {"name": "query", "arguments": {"sql": sql, "intent": "test"}}
        return self.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})

    def value(self, sql: str) -> dict[str, Any]:
        answer = self.query(sql)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = json.loads(answer.json()["result"]["content"][0]["text"])
        return found


def opened(site: Site, token: str) -> Agent:
    agent = Agent(site, token)
    answer = agent.open()
    assert answer.status_code == 200, answer.text
    return agent


async def asked(client: Client, sql: str) -> dict[str, Any]:
    result = await client.call_tool("query", {"sql": sql, "intent": "test"})
    (block,) = result.content
    assert block.type == "text"
    found: dict[str, Any] = json.loads(block.text)
    return found


# The SDK's HTTP transport leaves its response generators to the collector, which then warns; nothing of ours is in them.
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_the_official_client_reads_writes_and_is_refused(site: Site, era: Any) -> None:
    async with Client(site.plane.mcp(site.token["text"]), mode=era) as client:
        assert client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[era]
        assert (await asked(client, "SELECT count(*) FROM orders"))["rows"] == [{"count": 100}]
        assert (await asked(client, "UPDATE orders SET status = 'paid' WHERE id = 7"))["allowed"]
        refused = await asked(client, "SELECT * FROM secrets")
        assert (refused["allowed"], refused["policy_rule"]) == (False, "table_access")
    assert site.token["id"] in site.recorded(site.project, "mcp_token_id")


def test_what_a_client_claims_of_itself_does_not_arrive(site: Site) -> None:
    project, token = site.another("claims")
    agent = Agent(
        site,
        token["text"],
        {
            "x-gateway-token-id": site.token["id"],
            "x-gateway-proxy-secret": "guessed",
            "authorization": "Bearer something",
            "cookie": "gatewayd=x",
            "x-forwarded-for": "10.0.0.1",
            "connection": "x-gateway-token-id",
        },
    )
    assert agent.open().status_code == 200
    assert agent.value("SELECT 1 AS one")["rows"] == [{"one": 1}]
    assert set(site.recorded(project, "mcp_token_id")) - {None} == {token["id"]}


def test_a_session_belongs_to_the_token_that_opened_it(site: Site) -> None:
    agent = opened(site, site.token["text"])
    other = Agent(site, site.plane.new_token(site.project)["text"], {"mcp-session-id": agent.headers["mcp-session-id"]})
    assert other.query("SELECT 1").status_code == 404


def test_a_bearer_does_as_well_as_the_path(site: Site) -> None:
    agent = Agent(site, "", {"authorization": f"Bearer {site.token['text']}"})
    agent.url = f"{site.plane.url}/mcp"
    assert agent.open().status_code == 200
    assert agent.value("SELECT 1 AS one")["allowed"]
    del agent.headers["authorization"]
    answer = agent.query("SELECT 1")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


async def test_first_calls_at_once_start_one_engine(site: Site) -> None:
    project, token = site.another("crowd")
    answers: list[httpx.Response] = []

    async def call() -> None:
        answers.append(await trio.to_thread.run_sync(Agent(site, token["text"]).open))

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(call)
    assert [answer.status_code for answer in answers] == [200] * 8
    assert len(site.engines(project)) == 1


async def test_an_engine_killed_in_a_call_is_told_and_the_next_call_finds_another(site: Site) -> None:
    project, token = site.another("killed")
    agent = opened(site, token["text"])
    answers: list[httpx.Response] = []

    async def call() -> None:
        answers.append(await trio.to_thread.run_sync(agent.query, LONG))

    def is_running() -> bool:
        assert not answers, answers[0].text
        return bool(site.postgres.query(f"SELECT pid {RUNS_LONG}"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await trio.to_thread.run_sync(wait_until, is_running, "the statement does not run")
        (before,) = site.engines(project)
        os.kill(before, signal.SIGKILL)
    site.postgres.execute(f"SELECT pg_terminate_backend(pid) {RUNS_LONG}")
    (answer,) = answers
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["id"]) == (502, -32003, 2)
    assert agent.value("SELECT count(*) FROM orders")["rows"] == [{"count": 100}]
    (after,) = site.engines(project)
    assert after != before
    fleet = site.plane.api("GET", f"/projects/{project}/gateways")["gateways"]
    assert [(each["is_here"], each["standing"]) for each in fleet] == [(True, "active")], "it is the same gateway"


def test_a_revoked_token_is_unknown(site: Site) -> None:
    token = site.plane.new_token(site.project)
    agent = opened(site, token["text"])
    site.plane.api("DELETE", f"/projects/{site.project}/tokens/{token['id']}")
    wait_until(lambda: agent.query("SELECT 1").status_code == 404, "the token still opens the project")
    assert opened(site, site.token["text"])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example.com"}, 421),
        ({"origin": "https://evil.example.com"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:6274"}, 200),
    ],
    ids=str,
)
def test_only_our_own_pages_and_names_come_in(site: Site, headers: dict[str, str], status: int) -> None:
    assert Agent(site, site.token["text"], headers).open().status_code == status


@pytest.mark.parametrize(
    "text", ["gw_live_00000000000000000000000000000000_000000", "x", "gw_live_%00", "", "a/b"], ids=lambda text: text or "none"
)
def test_an_unknown_token_is_not_found(site: Site, text: str) -> None:
    answer = Agent(site, text).open()
    assert answer.status_code == 404
    assert text == "" or text not in answer.text


def test_another_method_is_refused(site: Site) -> None:
    answer = Agent(site, site.token["text"]).send(None, "PUT")
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET, POST")


def test_a_paused_project_is_told_and_goes_on_when_it_is_resumed(site: Site) -> None:
    project, token = site.another("paused")
    agent = opened(site, token["text"])
    site.plane.api("POST", f"/projects/{project}/pause", {"note": "stop"})
    wait_until(lambda: agent.query("SELECT 1").status_code == 403, "calls still go through")
    assert "project_paused" in agent.query("SELECT 1").text
    site.plane.api("POST", f"/projects/{project}/resume", {})
    wait_until(lambda: agent.query("SELECT 1").status_code == 200, "calls are still refused")


def test_a_new_policy_needs_no_new_engine(site: Site) -> None:
    project, token = site.another("policy")
    agent = opened(site, token["text"])
    (before,) = site.engines(project)
    policy = "databases:\n  - name: shop\n    table_access: {default: deny}\n"
    site.plane.api("POST", f"/projects/{project}/policies", {"policy": policy, "note": "closed"})
    wait_until(lambda: not agent.value("SELECT count(*) FROM orders")["allowed"], "the old policy is still in force")
    assert site.engines(project) == [before]


def test_another_address_is_served_by_another_engine(site: Site) -> None:
    project, token = site.another("moved")
    agent = opened(site, token["text"])
    (before,) = site.engines(project)
    moved = site.postgres.create_database(SHOP + "DELETE FROM orders WHERE id > 10;")
    (database,) = site.plane.api("GET", f"/projects/{project}/databases")["databases"]
    site.plane.api("PUT", f"/projects/{project}/databases/{database['id']}", {"url": moved})
    count = "SELECT count(*) FROM orders"
    wait_until(lambda: agent.value(count)["rows"] == [{"count": 10}], "the old engine still answers")
    assert site.engines(project) != [before]


def test_a_project_without_an_address_and_one_that_cannot_be_opened_say_so(site: Site) -> None:
    empty = str(site.plane.api("POST", "/projects", {"name": "empty", "databases": ["shop"]})["id"])
    answer = Agent(site, site.plane.new_token(empty)["text"]).open()
    assert (answer.status_code, "no_database" in answer.text) == (404, True)
    project, token = site.another("sealed elsewhere")
    damage = f"UPDATE databases SET sealed_url = set_byte(sealed_url, 30, 0) WHERE project_id = '{uuid(project)}'"
    site.postgres.execute(damage, site.store_url)
    answer = Agent(site, token["text"]).open()
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, -32001)


def uuid(ulid: str) -> str:
    return f"{ulid_value(ulid):032x}"


async def test_a_held_write_runs_once_a_person_has_approved_it_and_is_in_the_audit(site: Site) -> None:
    project, token = site.another("held")
    plane = site.plane
    policy = POLICY + "    approvals: {writes: true}\n"
    plane.api("POST", f"/projects/{project}/policies", {"policy": policy, "note": "writes wait"})
    terms = plane.api("GET", f"/projects/{project}/terms") | {"self_approval": "1", "view_definitions": "1"}
    kept = ("approval_minutes", "retention_h", "fresh_for_s", "on_stale", "statements", "self_approval", "view_definitions")
    assert plane.form(f"/projects/{project}/settings", {name: str(terms[name]) for name in kept}).status_code == 303
    answers: list[dict[str, Any]] = []

    async def write() -> None:
        agent = opened(site, token["text"])
        sql = "UPDATE orders SET status = 'shipped' WHERE id = 42 RETURNING status"
        answers.append(await trio.to_thread.run_sync(agent.value, sql))

    def waiting() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = plane.api("GET", f"/projects/{project}/approvals")["requests"]
        return found

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await trio.to_thread.run_sync(wait_until, lambda: bool(waiting()), "nothing waits for a person")
        (request,) = waiting()
        decided = plane.form(f"/projects/{project}/approvals/{request['id']}/decide", {"decision": "approve"})
        assert decided.status_code == 303, decided.text
    assert answers[0]["rows"] == [{"status": "shipped"}]
    assert site.postgres.query("SELECT status FROM orders WHERE id = 42", site.shop) == [{"status": "shipped"}]

    def arrived() -> bool:
        found = plane.api("GET", f"/projects/{project}/audit")["queries"]
        return any("WHERE id = 42" in (each["sql"] or "") and each["outcome"] == "executed" for each in found)

    wait_until(arrived, "the audit of the control plane does not have it")


def test_calls_are_counted_and_bounded(site: Site) -> None:
    token = site.plane.new_token(site.project, calls_a_day=3)
    agent = opened(site, token["text"])
    assert [agent.query("SELECT 1").status_code for _ in range(5)] == [200, 200, 200, 429, 429]

    def calls() -> list[dict[str, Any]]:
        return site.postgres.query(f"SELECT calls FROM token_use WHERE token_id = '{uuid(token['id'])}'", site.store_url)

    wait_until(lambda: calls() == [{"calls": 3}], "the calls are not in the store")
    (listed,) = [
        each for each in site.plane.api("GET", f"/projects/{site.project}/tokens")["tokens"] if each["id"] == token["id"]
    ]
    assert listed["used_ms"] is not None


def test_rows_are_counted_from_the_audit_and_bounded(site: Site) -> None:
    token = site.plane.new_token(site.project, rows_a_day=5)
    agent = opened(site, token["text"])
    assert agent.query("SELECT * FROM generate_series(1, 4)").status_code == 200
    assert agent.query("SELECT * FROM generate_series(1, 4)").status_code == 200  # it may still: four of five are read
    refused: list[httpx.Response] = []

    def is_refused() -> bool:
        refused[:] = [agent.query("SELECT 1")]
        return refused[0].status_code == 429

    wait_until(is_refused, "the rows of the audit do not count")
    assert "rows_used_up" in refused[0].text
    assert 0 < int(refused[0].headers["retry-after"]) <= 86_400
    assert opened(site, site.token["text"]).query("SELECT 1").status_code == 200  # another token of the project


def test_a_body_in_pieces_goes_through_and_one_too_long_is_the_engine_s_to_refuse(site: Site) -> None:
    agent = opened(site, site.token["text"])
    long = "SELECT '" + "x" * 600_000 + "' AS long"
    params = {"name": "query", "arguments": {"sql": long, "intent": "test"}}
    whole = json.dumps({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}).encode()
    pieces = [whole[at : at + 50_000] for at in range(0, len(whole), 50_000)]
    with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
        answer = client.post(agent.url, content=iter(pieces), headers=agent.headers)
        assert (answer.status_code, len(answer.text) > 600_000) == (200, True)
        huge = client.post(agent.url, content=b" " * 20_000_000, headers=agent.headers)
    assert huge.status_code == 413


def test_the_control_plane_killed_leaves_no_engine_and_its_successor_goes_on(
    postgres: Postgres, migrated: str, short_folder: Callable[[], Path]
) -> None:
    store_url, state = postgres.copy_database(migrated), short_folder()
    with reserved_port() as port:
        with plane_process(store_url, state, port) as plane:
            plane.found(plane.running.wait_for("/welcome/").strip())
            site = Site(plane, state, postgres, store_url)
            agent = opened(site, site.token["text"])
            with agent.stream() as stream:
                assert stream.status_code == 200
                assert len(site.engines(site.project)) == 1
                assert list((state / "run").glob("*/gateway-database-url-shop"))
                plane.running.stop(signal.SIGKILL)
            wait_until(lambda: not site.engines(site.project), "the engine outlives the control plane")
        with serving(["control", "serve"], plane_environment(store_url, state, port)) as successor:
            successor.wait_for("gatewayd control serves")
            assert not list((state / "run").glob("*/gateway-database-url-shop")), "an address was left in clear text"
            agent = opened(site, site.token["text"])
            assert agent.value("SELECT count(*) FROM orders")["rows"] == [{"count": 100}]
            with agent.stream() as stream:
                pieces = stream.iter_raw()
                assert next(pieces)
                successor.process.send_signal(signal.SIGTERM)
                assert b"".join(pieces) == b"", "the drain ends streams in order"
            assert successor.ended() == 0
        assert not site.engines(site.project)
        assert not list((state / "run").glob("*/gateway-database-url-shop"))


def test_a_stop_ends_engines_while_they_are_heard_so_that_the_last_call_is_in_the_audit_of_the_control_plane(
    postgres: Postgres, migrated: str, short_folder: Callable[[], Path]
) -> None:
    store_url, state = postgres.copy_database(migrated), short_folder()
    with reserved_port() as port, plane_process(store_url, state, port) as plane:
        plane.found(plane.running.wait_for("/welcome/").strip())
        site = Site(plane, state, postgres, store_url)
        agent = opened(site, site.token["text"])
        for number in range(3):
            assert agent.value(f"SELECT count(*) FROM orders WHERE id > {number}")["allowed"] is True
        with agent.stream() as stream:
            plane.running.process.send_signal(signal.SIGTERM)
            assert b"".join(stream.iter_raw()).strip(b": \n") == b"", "the drain ends streams in order"
        assert plane.running.ended() == 0
        assert "unreachable" not in plane.running.text
        (held,) = postgres.query("SELECT size FROM audit_heads", store_url)
        assert held["size"] == len(site.recorded(site.project, "seq"))


def test_an_engine_that_cannot_start_is_told_at_once_to_all_who_wait(
    postgres: Postgres, migrated: str, short_folder: Callable[[], Path]
) -> None:
    store_url, state = postgres.copy_database(migrated), short_folder()
    with reserved_port() as port, plane_process(store_url, state, port, {"GATEWAY_ENGINE_BIN": "/bin/false"}) as plane:
        plane.found(plane.running.wait_for("/welcome/").strip())
        site = Site(plane, state, postgres, store_url)
        agent = Agent(site, site.token["text"])
        answers = [agent.open() for _ in range(4)]
        assert {(each.status_code, each.json()["error"]["code"]) for each in answers} == {(502, -32002)}
        assert int(answers[-1].headers["retry-after"]) >= 1, "it is held off"
        assert plane.running.stop() == 0
