"""The metrics of a running gatewayd: counters say what the audit file says, series are there from the start (operations C3)."""

import random
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
import trio

from gatewayd.corridor.containing import ContainmentEvent
from gatewayd.corridor.gateway import ToolName
from gatewayd.corridor.hold import HeldOutcome
from gatewayd.mcp.dispatch import METHODS, RequestOutcome
from gatewayd.notify.usage import SQLSTATE_CLASSES, sqlstate_class
from gatewayd.operators.metrics import DELIVERIES, OUTCOMES, PHASES
from gatewayd.policy.decide.outcomes import PolicyRule
from tests.conftest import Postgres
from tests.daemon.daemon_rig import PATIENCE_S, SHOP, Agent, database_of, until
from tests.daemon.operators_rig import Operator, operated

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]

TWO = """
databases:
  - {name: shop, url: "${SHOP_URL}", table_access: {default: read, tables: {secrets: deny, written: read_write}}}
  - {name: other, url: "${OTHER_URL}", limits: {max_rows: 5}, column_masks: {customers: {email: null-out}}}
"""
FUNCTION = """
CREATE FUNCTION raises(code text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RAISE 'no' USING ERRCODE = code; END $$;
"""
STATEMENTS = [
    "SELECT * FROM orders",
    "SELECT * FROM customers WHERE id = 1",
    "SELECT id FROM customers WHERE email = 'c1@example.com'",  # FAILED column_masking where the column is masked
    "INSERT INTO written VALUES ('a'), ('b') RETURNING tag",
    "SELECT * FROM secrets",
    "DELETE FROM written",
    "DROP TABLE written",
    "SELEC",
    "SELECT 1; SELECT 2",
    "SELECT 1 / 0",
    "SELECT 'x'::int",
    "SELECT no_such_column FROM orders",
    "SELECT raises('ZZ999')",
]
ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"
LABELS = {
    "decision": {"ALLOW", "DENY"},
    "rule": {"", *get_args(PolicyRule)},
    "tool": set(get_args(ToolName)),
    "outcome": {*OUTCOMES, *DELIVERIES, *get_args(RequestOutcome), *get_args(HeldOutcome)},
    "method": set(METHODS),
    "phase": set(PHASES),
    "state": {"in_use", "idle", "max"},
    "sqlstate_class": set(SQLSTATE_CLASSES),
    "database": {"shop", "other"},
    "event": set(get_args(ContainmentEvent)),
}


def summed(metrics: Series, name: str, *labels: str) -> Counter[tuple[str, ...]]:
    """The values of one metric by these labels, what is 0 left out."""
    found: Counter[tuple[str, ...]] = Counter()
    for (series, pairs), value in metrics.items():
        if series == name and value:
            values = dict(pairs)
            found[tuple(values[label] for label in labels)] += int(value)
    return found


async def ask_and_leave(operator: Operator, postgres: Postgres, dsn: str) -> None:
    """Three clients that go away while their statements run."""
    async with trio.open_nursery() as nursery:

        async def ask() -> None:
            async with Agent(operator.port) as agent:
                await agent.query(ENDLESS, database="shop")

        for _ in range(3):
            nursery.start_soon(ask)
        there = f"state = 'active' AND datname = '{database_of(dsn)}' AND pid <> pg_backend_pid()"
        found = f"SELECT FROM pg_stat_activity WHERE {there} AND query LIKE '%1000000) b%'"
        await until(lambda: len(postgres.query(found)) == 3)
        nursery.cancel_scope.cancel()


async def load(operator: Operator, seed: int) -> None:
    chance = random.Random(seed)
    async with Agent(operator.port) as agent:
        for _ in range(15):
            database = chance.choice(["shop", "other"])
            match chance.randrange(12):
                case 0:
                    await agent.call("list_tables")
                case 1:
                    await agent.call("describe_table", table="orders", database=database)
                case 2:
                    await agent.call("list_tables", database=database)
                case _:
                    await agent.query(chance.choice(STATEMENTS), database=database)


@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
async def test_the_counters_are_what_the_audit_file_says(postgres: Postgres, tmp_path: Path) -> None:
    urls = {name: postgres.create_database(SHOP + FUNCTION) for name in ("SHOP_URL", "OTHER_URL")}
    policy = TWO.replace("}\n", ", functions: {allow: [public.raises]}}\n")
    with trio.fail_after(PATIENCE_S), operated("", tmp_path, policy, GATEWAY_MASK_SALT="salt", **urls) as operator:
        before = operator.metrics()
        assert not summed(before, "gatewayd_decisions_total", "database")
        async with trio.open_nursery() as nursery:
            for seed in range(6):
                nursery.start_soon(load, operator, seed)
            nursery.start_soon(ask_and_leave, operator, postgres, urls["SHOP_URL"])
        await until(lambda: not summed(operator.metrics(), "gatewayd_mcp_calls_running"))
        rows, metrics = operator.rows(), operator.metrics()

    decided: Counter[tuple[str, ...]] = Counter()
    errors: Counter[tuple[str, ...]] = Counter()
    ended: Counter[tuple[str, ...]] = Counter()
    returned: Counter[tuple[str, ...]] = Counter()
    truncated: Counter[tuple[str, ...]] = Counter()
    for row in rows:
        database, payload = row["database"], row["payload"]
        match row["event_type"]:
            case "DECIDED":
                decided[database, payload["decision"], payload.get("policy_rule", "")] += 1
                if payload["decision"] == "DENY":
                    ended[database, "denied"] += 1
            case "EXECUTED":
                ended[database, "executed"] += 1
                if payload.get("rows_returned"):
                    returned[database,] += payload["rows_returned"]
                if payload.get("truncated"):
                    truncated[database,] += 1
            case "FAILED":
                ended[database, "failed"] += 1
                errors[database, sqlstate_class(payload["error_class"])] += 1
    assert summed(metrics, "gatewayd_decisions_total", "database", "decision", "rule") == decided
    assert summed(metrics, "gatewayd_calls_total", "database", "outcome") == ended
    assert summed(metrics, "gatewayd_query_errors_total", "database", "sqlstate_class") == errors
    assert summed(metrics, "gatewayd_result_rows_total", "database") == returned
    assert summed(metrics, "gatewayd_result_truncated_total", "database") == truncated
    assert summed(metrics, "gatewayd_audit_rows_total") == Counter({(): len(rows)})
    ran = ended["shop", "executed"] + ended["shop", "failed"]
    assert summed(metrics, "gatewayd_query_duration_seconds_count", "database")["shop",] == ran
    calls = sum(decided.values())
    assert summed(metrics, "gatewayd_gateway_overhead_seconds_count", "phase")["audit",] == calls
    assert errors["shop", "57"] == 3  # the clients that left
    assert errors["other", "column_masking"] > 0
    assert errors["other", "other"] > 0  # a SQLSTATE that somebody made up
    assert {rule for _, _, rule in decided} >= {"", "table_access", "parse_error", "multi_statement", "dangerous_statement"}
    # Nothing appeared while calls were made: whatever rises was there at 0 before.
    assert metrics.keys() == before.keys()
    for _, pairs in metrics:
        for label, value in pairs:
            assert label in ("le", "version") or value in LABELS[label]


def test_the_series_that_dashboards_know_are_there_before_the_first_call(postgres: Postgres, tmp_path: Path) -> None:
    with operated(postgres.create_database(SHOP), tmp_path, GATEWAY_DENY_WEBHOOK="http://127.0.0.1:1/") as operator:
        metrics = operator.metrics()
        only = ("database", "__default__")
        assert metrics["gatewayd_build_info", (("version", "0.1.0"),)] == 1
        for decision, rule in (("ALLOW", ""), *(("DENY", rule) for rule in get_args(PolicyRule))):
            assert metrics["gatewayd_decisions_total", (only, ("decision", decision), ("rule", rule))] == 0
        for name in (
            "gatewayd_query_duration_seconds_count", "gatewayd_result_rows_total", "gatewayd_result_bytes_total",
            "gatewayd_result_truncated_total", "gatewayd_pool_waiters",
        ):  # fmt: skip
            assert metrics[name, (only,)] == 0
        for phase in PHASES:
            assert metrics["gatewayd_gateway_overhead_seconds_count", (("phase", phase),)] == 0
        for state, value in (("in_use", None), ("idle", None), ("max", 10)):
            found = metrics["gatewayd_pool_connections", (only, ("state", state))]
            assert value in (None, found)
        for method, ended in product(METHODS, get_args(RequestOutcome)):
            assert metrics["gatewayd_mcp_requests_total", (("method", method), ("outcome", ended))] == 0
        assert metrics["gatewayd_http_requests_turned_away_total", ()] == 0
        for outcome in DELIVERIES:
            assert metrics["gatewayd_webhook_deliveries_total", (("outcome", outcome),)] == 0
        for name in ("gatewayd_audit_write_seconds_count", "gatewayd_audit_write_failures_total", "gatewayd_mcp_sessions"):
            assert metrics[name, ()] == 0
        assert metrics["gatewayd_audit_available", ()] == 1
        assert metrics["gatewayd_policy_version", (only,)] == 1


def test_a_reload_shows_in_version_and_time_and_in_the_databases(postgres: Postgres, tmp_path: Path) -> None:
    shop = postgres.create_database(SHOP)
    with operated("", tmp_path, TWO, SHOP_URL=shop, OTHER_URL=shop, GATEWAY_MASK_SALT="salt") as operator:

        def state(name: str) -> dict[str, Any]:
            return {dict(labels)["database"]: value for (metric, labels), value in operator.metrics().items() if metric == name}

        loaded, version = state("gatewayd_policy_loaded_timestamp_seconds"), state("gatewayd_policy_version")
        assert set(loaded) == {"shop", "other"}
        answer = operator.policy(TWO.replace("name: other", "name: third"))
        assert answer.status_code == 200
        later = state("gatewayd_policy_loaded_timestamp_seconds")
        assert later["shop"] > loaded["shop"]
        assert set(later) == {"shop", "third"}
        assert state("gatewayd_policy_version")["shop"] == version["shop"] + 1
        counted = {dict(labels)["database"] for name, labels in operator.metrics() if name == "gatewayd_decisions_total"}
        assert counted == {"shop", "other", "third"}  # a counter does not go back: what `other` did stays told


def test_the_pull_of_metrics_is_no_call(postgres: Postgres, tmp_path: Path) -> None:
    with operated(postgres.create_database(SHOP), tmp_path) as operator:
        for _ in range(3):
            assert operator.http.get("/metrics").status_code == 200
        assert operator.rows() == []
        assert httpx.get(f"http://127.0.0.1:{operator.port}/metrics", timeout=PATIENCE_S).status_code == 401
