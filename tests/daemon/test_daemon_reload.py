"""Policy replaced while gatewayd runs: all of it or nothing, audited first, calls in flight unharmed (decisions 4, 7)."""

import contextlib
import json
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from gatewayd.corridor.databases import Databases
from gatewayd.policy.file.model import Policy
from tests.conftest import Postgres
from tests.daemon.daemon_rig import (
    HELD,
    HOLDABLE,
    PATIENCE_S,
    PATIENT,
    POLICY,
    SHOP,
    Agent,
    chains,
    database_of,
    holding,
    kinds,
    running_there,
    until,
)
from tests.daemon.operators_rig import Operator, operated


def several(**urls: str) -> str:
    """A policy of several databases, each with its url and read access to all but secrets."""
    access = "table_access: {default: read, tables: {secrets: deny, written: read_write}}"
    return "databases:\n" + "".join(f'  - {{name: {name}, url: "{url}", {access}}}\n' for name, url in urls.items())


@contextlib.contextmanager
def audit_locked(folder: Path) -> Iterator[None]:
    """Another process holds the audit file: nothing can be written to it meanwhile."""
    with contextlib.closing(sqlite3.connect(folder / "audit.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def off(work: Any, *arguments: Any) -> Any:
    """Blocking calls of the operator beside agents that go on."""
    return await trio.to_thread.run_sync(work, *arguments)


async def names(operator: Operator) -> list[str]:
    async with Agent(operator.port) as agent:
        return [database["name"] for database in (await agent.call("list_databases"))["databases"]]


async def test_what_changed_holds_for_the_next_call(postgres: Postgres, tmp_path: Path) -> None:
    with trio.fail_after(PATIENCE_S), operated(postgres.create_database(SHOP), tmp_path) as operator:
        async with Agent(operator.port) as agent:
            assert (await agent.query("SELECT * FROM orders"))["rowCount"] == 200
            assert (await agent.query("DELETE FROM written WHERE true"))["allowed"]

            assert operator.policy("table_access: {default: read}\nlimits: {max_rows: 3}").status_code == 200
            cut = await agent.query("SELECT * FROM orders")
            assert (cut["rowCount"], cut["truncated"]) == (3, True)
            assert (await agent.query("SELECT * FROM secrets"))["allowed"]
            assert (await agent.query("DELETE FROM written WHERE true"))["policy_rule"] == "table_access"

            blocked = "table_access: {default: read_write}\nguardrails: {block_dml: true}\nlimits: {statement_timeout_ms: 50}"
            assert operator.policy(blocked).status_code == 200
            assert (await agent.query("DELETE FROM written WHERE true"))["policy_rule"] == "dangerous_statement"
            stopped = await agent.query("SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b")
            assert stopped["error"]["sqlstate"] == "57014"
            assert (await agent.query("SELECT * FROM orders"))["rowCount"] == 200  # a section that is there is taken whole

            assert operator.policy("table_access: {default: read_write}").status_code == 200
            assert (await agent.query("DELETE FROM written WHERE true"))[
                "policy_rule"
            ] == "dangerous_statement"  # one left out stays


async def test_a_mask_holds_for_the_next_call(postgres: Postgres, tmp_path: Path) -> None:
    masked = "table_access: {default: read}\ncolumn_masks: {customers: {name: full-redact}}"
    with trio.fail_after(PATIENCE_S), operated(postgres.create_database(SHOP), tmp_path, GATEWAY_MASK_SALT="salt") as operator:
        async with Agent(operator.port) as agent:
            sql = "SELECT name FROM customers WHERE id = 1"
            assert (await agent.query(sql))["rows"] == [{"name": "name 1"}]
            before = operator.policy_hash()
            assert operator.policy(masked).status_code == 200
            assert (await agent.query(sql))["rows"] == [{"name": "***"}]
            assert operator.policy_hash() != before
            unknown = operator.policy(masked.replace("name:", "no_such_column:"))
            assert (unknown.status_code, unknown.json()["ok"]) == (400, False)
            assert (await agent.query(sql))["rows"] == [{"name": "***"}]
            assert operator.policy("table_access: {default: read}\ncolumn_masks: {}").status_code == 200
            assert (await agent.query(sql))["rows"] == [{"name": "name 1"}]
        first, second = (row["payload"] for row in operator.rows("POLICY_RELOADED"))
        assert "column_masks" in first["sections_changed"]
        assert second["diff"]["column_masks"] == {"public.customers.name": {"from": {"t": "full-redact"}, "to": None}}


def test_masks_without_a_salt_are_refused(postgres: Postgres, tmp_path: Path) -> None:
    with operated(postgres.create_database(SHOP), tmp_path) as operator:
        answer = operator.policy("table_access: {default: read}\ncolumn_masks: {customers: {name: full-redact}}")
        assert answer.status_code == 400
        assert "GATEWAY_MASK_SALT" in answer.json()["error"]


async def test_each_reload_leaves_one_row_a_database(postgres: Postgres, tmp_path: Path) -> None:
    shop, other = postgres.create_database(SHOP), postgres.create_database(SHOP)
    with operated("", tmp_path, several(a=shop, b=shop)) as operator:
        body = several(b=other, c=shop).replace("default: read", "default: deny", 1)
        assert operator.policy(body).status_code == 200
        rows = operator.rows("POLICY_RELOADED")
        assert [row["database"] for row in rows] == ["b", "c", "a"]
        assert len({row["query_id"] for row in rows}) == 1
        for row in rows:
            assert (row["agent_name"], row["agent_version"], row["agent_intent"], row["mcp_token_id"]) == (None,) * 4
            assert (row["tenant_id"], row["schema_version"]) == ("__self_host__", 3)
            payload = row["payload"]
            assert set(payload) == {"source", "table_access", "sections_changed", "databases_changed", "guardrails", "diff"}
            assert payload["source"] == "admin_endpoint"
            assert payload["databases_changed"] == ["b", "c", "a"]
            assert payload["guardrails"] == {"block_unqualified_dml": True, "block_ddl": True, "block_dml": False}
        b, c, a = (row["payload"] for row in rows)
        assert b["table_access"] == {"default": "deny", "tables": {"public.secrets": "deny", "public.written": "read_write"}}
        assert b["sections_changed"] == ["table_access"]
        assert b["diff"]["table_access"] == {
            "default": {"from": "read", "to": "deny"}, "tables_added": {}, "tables_removed": {}, "tables_changed": {}
        }  # fmt: skip
        assert set(c["diff"].values()) == set(a["diff"].values()) == {None}
        assert (a["table_access"], a["sections_changed"]) == (None, [])

        assert operator.policy(body).status_code == 200  # the same again claims no change
        again = operator.rows("POLICY_RELOADED")[3:]
        assert [(row["database"], row["payload"]["sections_changed"]) for row in again] == [("b", []), ("c", [])]
        assert {tuple(row["payload"]["databases_changed"]) for row in again} == {("b", "c")}


async def test_databases_come_go_and_move(postgres: Postgres, tmp_path: Path) -> None:
    shop, other = postgres.create_database(SHOP), postgres.create_database(f"{SHOP}; DELETE FROM orders; DELETE FROM customers")
    with trio.fail_after(PATIENCE_S), operated("", tmp_path, several(a=shop, b=shop)) as operator:
        assert await names(operator) == ["a", "b"]
        async with Agent(operator.port) as agent:
            assert operator.policy(several(a=shop, b=other, c=shop)).status_code == 200
            assert await names(operator) == ["a", "b", "c"]
            counts = {}
            for name in ("a", "b", "c"):
                answer = await agent.query("SELECT count(*) FROM orders", database=name)
                counts[name] = answer["rows"][0]["count"]
            assert counts == {"a": 200, "b": 0, "c": 200}
            assert operator.policy(several(b=other, c=shop)).status_code == 200
            gone = await agent.query("SELECT 1", database="a")
            assert (gone["error"], "`b`, `c`" in gone["reason"]) == ("invalid_arguments", True)
            assert operator.policy(several(c=shop)).status_code == 200
            assert (await agent.query("SELECT count(*) FROM orders"))["rows"] == [{"count": 200}]  # one left: no argument

        def pools_left() -> set[str]:
            return {dict(labels)["database"] for name, labels in operator.metrics() if name == "gatewayd_pool_connections"}

        assert pools_left() == {"c"}
        await until(lambda: not sessions(postgres, other))


def sessions(postgres: Postgres, dsn: str) -> list[Any]:
    """gatewayd's sessions with one database."""
    found = f"SELECT pid FROM pg_stat_activity WHERE application_name = 'gatewayd' AND datname = '{database_of(dsn)}'"
    return postgres.query(found)


async def test_calls_in_flight_end_where_they_began(postgres: Postgres, tmp_path: Path) -> None:
    shop, other = postgres.create_database(HOLDABLE), postgres.create_database(HOLDABLE)
    answers: dict[str, dict[str, Any]] = {}

    async def ask(port: int, name: str) -> None:
        async with Agent(port) as agent:
            answers[name] = await agent.query(HELD, database=name)

    before, after = PATIENT + several(stays=shop, moves=shop, goes=shop), PATIENT + several(stays=shop, moves=other)
    with trio.fail_after(PATIENCE_S), operated("", tmp_path, before) as operator:
        async with trio.open_nursery() as nursery:
            with holding(postgres, shop):
                for name in ("stays", "moves", "goes"):
                    nursery.start_soon(ask, operator.port, name)
                await until(lambda: running_there(postgres, HELD) == 3)
                assert (await off(operator.policy, after)).status_code == 200
                assert answers == {}
                assert running_there(postgres, HELD) == 3
        assert {name: answer["rows"] for name, answer in answers.items()} == {
            name: [{"count": 7}] for name in ("stays", "moves", "goes")
        }
        await until(lambda: len(sessions(postgres, shop)) <= 2)  # one of the call, one of the catalog: `stays` alone
    assert {kinds(chain) for chain in chains(tmp_path).values()} == {"ATTEMPTED ALLOW EXECUTED", RELOADED}


RELOADED = " ".join(["POLICY_RELOADED"] * 3)


async def test_no_call_fails_for_a_reload(postgres: Postgres, tmp_path: Path) -> None:
    """A call may stand anywhere in the corridor when its database moves."""
    shop = postgres.create_database(SHOP)
    there, elsewhere = several(a=shop, b=shop), several(a=shop, b=postgres.dsn(database_of(shop), tcp=True))
    failed: list[dict[str, Any]] = []
    done = 0

    async def ask_on(port: int, is_over: trio.Event) -> None:
        nonlocal done
        async with Agent(port) as agent:
            while not is_over.is_set():
                counted = await agent.query("SELECT count(*) FROM orders", database="b")
                listed = await agent.call("list_tables")
                answers = [counted, *listed["databases"].values()]
                failed.extend(answer for answer in answers if not answer["allowed"] or "error" in answer)
                done += 1

    with trio.fail_after(PATIENCE_S), operated("", tmp_path, there) as operator:
        async with trio.open_nursery() as nursery:
            is_over = trio.Event()
            for _ in range(6):
                nursery.start_soon(ask_on, operator.port, is_over)
            for _ in range(10):
                for body in (elsewhere, there):
                    before = done
                    assert (await off(operator.policy, body)).status_code == 200
                    while done < before + 6:  # noqa: ASYNC110 - counts what several tasks did
                        await trio.sleep(0.001)
            is_over.set()
    assert failed == []


async def test_a_database_in_use_is_closed_after_its_use(postgres: Postgres) -> None:
    async with trio.open_nursery() as nursery:
        databases = Databases()
        await nursery.start(databases.run)
        database = await databases.open("shop", postgres.create_database(SHOP), Policy())
        await database.refresher.unknown()
        assert database.catalog.is_read
        with database.in_use():
            databases.close(database)
            await trio.testing.wait_all_tasks_blocked()
            async with database.pool.connection() as connection:
                assert await connection.fetch("SELECT 1 AS one")
            assert database.pool.statistics().idle
        await trio.testing.wait_all_tasks_blocked()
        assert database.pool.statistics().idle == 0
        nursery.cancel_scope.cancel()


async def test_reloads_take_turns(postgres: Postgres, tmp_path: Path) -> None:
    with trio.fail_after(PATIENCE_S), operated(postgres.create_database(SHOP), tmp_path) as operator:
        statuses: list[int] = []

        async def reload(max_rows: int) -> None:
            answer = await off(operator.policy, f"table_access: {{default: read}}\nlimits: {{max_rows: {max_rows}}}")
            statuses.append(answer.status_code)

        async with trio.open_nursery() as nursery:
            for number in range(1, 13):
                nursery.start_soon(reload, number)
        assert statuses == [200] * 12
        steps = [row["payload"]["diff"]["limits"]["max_rows"] for row in operator.rows("POLICY_RELOADED")]
        assert [step["from"] for step in steps] == [1000, *(step["to"] for step in steps[:-1])]  # each began where one ended
        assert {step["to"] for step in steps} == set(range(1, 13))
        async with Agent(operator.port) as agent:
            assert (await agent.query("SELECT * FROM orders"))["rowCount"] == steps[-1]["to"]
        revision = ("gatewayd_policy_version", (("database", "__default__"),))
        assert operator.metrics()[revision] == 13


async def test_a_reload_that_is_refused_half_way_changes_nothing(postgres: Postgres, tmp_path: Path) -> None:
    shop = postgres.create_database(SHOP)
    with operated("", tmp_path, several(a=shop, b=shop)) as operator:
        before = {name: operator.policy_hash(name) for name in ("a", "b")}
        tighter = several(a=shop, c=shop).replace("default: read", "default: deny", 1)
        for wrong in (
            tighter + "  - {name: d, url: nonsense}\n",
            tighter + '  - {name: d, url: "${NO_SUCH_VARIABLE}"}\n',
            tighter + f'  - {{name: a, url: "{shop}"}}\n',
            "databases: []",
            POLICY,
        ):
            answer = operator.policy(wrong)
            assert (answer.status_code, answer.json()["ok"]) == (400, False)
            assert await names(operator) == ["a", "b"]
            assert {name: operator.policy_hash(name) for name in ("a", "b")} == before
        assert operator.rows("POLICY_RELOADED") == []


async def test_a_reload_that_cannot_be_audited_changes_nothing(postgres: Postgres, tmp_path: Path) -> None:
    shop = postgres.create_database(SHOP)
    with trio.fail_after(PATIENCE_S), operated("", tmp_path, several(a=shop, b=shop)) as operator:
        before = {name: operator.policy_hash(name) for name in ("a", "b")}
        wanted = several(a=shop, c=shop).replace("default: read", "default: deny", 1)
        with audit_locked(tmp_path):
            answer = operator.policy(wanted)
        assert answer.status_code == 503
        assert answer.json()["ok"] is False
        assert "audit file cannot be written" in answer.json()["error"]
        assert str(tmp_path) not in answer.text
        assert await names(operator) == ["a", "b"]
        assert {name: operator.policy_hash(name) for name in ("a", "b")} == before
        assert operator.rows("POLICY_RELOADED") == []
        line = json.loads(operator.running.wait_for("policy reload failed"))
        assert (line["source"], line["level"]) == ("admin_endpoint", "error")
        assert operator.policy(wanted).status_code == 200
        assert await names(operator) == ["a", "c"]
        operator.running.wait_for("audit recovered")
        operator.running.wait_for("policy reloaded")


async def test_sighup_reads_the_file_again(postgres: Postgres, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    with trio.fail_after(PATIENCE_S), operated(postgres.create_database(SHOP), tmp_path) as operator:

        def hang_up(expected: str) -> dict[str, Any]:
            operator.running.process.send_signal(signal.SIGHUP)
            line: dict[str, Any] = json.loads(operator.running.wait_for(expected))
            assert line["source"] == "sighup"
            return line

        before = operator.policy_hash()
        file.write_text("table_access: {default: read}\nlimits: {max_rows: 5}", encoding="utf-8")
        hang_up("policy reloaded")
        async with Agent(operator.port) as agent:
            assert (await agent.query("SELECT * FROM orders"))["rowCount"] == 5
        (row,) = operator.rows("POLICY_RELOADED")
        assert row["payload"]["source"] == "sighup"
        assert row["payload"]["sections_changed"] == ["table_access", "limits"]
        after = operator.policy_hash()
        assert after != before
        for wrong, words in (
            ("table_access: {default: all}", "table_access.default"),
            ("limits: {max_rows: 7}", "no table_access"),
        ):
            file.write_text(wrong, encoding="utf-8")
            assert words in hang_up("policy reload failed")["error"]
        file.unlink()
        assert "No such file" in hang_up("policy reload failed")["error"]
        file.mkdir()
        assert "Is a directory" in hang_up("policy reload failed")["error"]
        assert operator.policy_hash() == after
        assert len(operator.rows("POLICY_RELOADED")) == 1
        with audit_locked(tmp_path):
            file.rmdir()
            file.write_text(POLICY, encoding="utf-8")
            assert "audit file cannot be written" in hang_up("policy reload failed")["error"]
        assert operator.policy_hash() == after
        hang_up("policy reloaded")
        assert operator.policy_hash() != after


def test_sighup_without_a_policy_file_is_harmless(postgres: Postgres, tmp_path: Path) -> None:
    with operated(postgres.create_database(SHOP), tmp_path, GATEWAY_POLICY_FILE="") as operator:
        operator.running.process.send_signal(signal.SIGHUP)
        assert "GATEWAY_POLICY_FILE is unset" in operator.running.wait_for("policy reload failed")
        assert operator.running.stop() == 0


def test_a_changed_secret_is_read_at_the_reload(postgres: Postgres, tmp_path: Path) -> None:
    """A database's address may stand in a credential: rotating it needs no restart."""
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    first, second = postgres.create_database(SHOP), postgres.create_database(SHOP + "; DELETE FROM orders;")
    (credentials / "shop-url").write_text(first, encoding="utf-8")
    policy = several(shop="${SHOP_URL}")
    with operated("", tmp_path, policy, CREDENTIALS_DIRECTORY=str(credentials)) as operator:

        async def count() -> int:
            async with Agent(operator.port) as agent:
                found: int = (await agent.query("SELECT count(*) FROM orders"))["rows"][0]["count"]
                return found

        assert trio.run(count) == 200
        (credentials / "shop-url").write_text(second, encoding="utf-8")
        operator.running.process.send_signal(signal.SIGHUP)
        operator.running.wait_for("policy reloaded")
        assert trio.run(count) == 0
        assert "postgresql://" not in operator.http.get("/audit/since/0").text


@pytest.mark.parametrize("signals", [5])
def test_many_hangups_at_once_do_no_harm(signals: int, postgres: Postgres, tmp_path: Path) -> None:
    with operated(postgres.create_database(SHOP), tmp_path) as operator:
        for _ in range(signals):
            operator.running.process.send_signal(signal.SIGHUP)
        operator.running.wait_for("policy reloaded")
        assert operator.running.stop() == 0
        assert 1 <= operator.running.text.count("policy reloaded") <= signals
