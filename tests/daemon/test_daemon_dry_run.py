"""A dry run says what a call would be told, whatever gatewayd knows of the database by then (docs/http-api.md)."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from gatewayd.postgres.catalog.refresher import IDLE_S, UNKNOWN_WAIT_S
from tests.conftest import Postgres, reserved_port
from tests.daemon.daemon_rig import PATIENCE_S, POLICY, SHOP, Agent, just_started, until
from tests.daemon.operators_rig import BEARER, TOKEN, Operator, operated
from tests.faults.ways import Way

ORDERS = "SELECT count(*) FROM orders"
MASKS = POLICY + "column_masks: {customers: {email: full-redact}}"


@pytest.fixture(scope="module")
def masking(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Operator, str]]:
    dsn = postgres.create_database(SHOP)
    with operated(dsn, tmp_path_factory.mktemp("dry_run"), MASKS, GATEWAY_MASK_SALT="salt") as operator:
        yield operator, dsn


class HeldBack(Way):
    """Whoever connects is kept waiting for the server's first word until `opened`."""

    def __init__(self, leads_to: Postgres) -> None:
        super().__init__(leads_to)
        self.opened = trio.Event()

    async def _serve(self, client: trio.SocketStream) -> None:
        await self.opened.wait()
        await super()._serve(client)


def verdict(operator: Operator, sql: str) -> dict[str, Any]:
    [found] = operator.dry_run(database="__default__", sql=sql)["verdicts"]
    assert isinstance(found, dict)
    return found


async def told(operator: Operator, sql: str) -> dict[str, Any]:
    async with Agent(operator.port) as agent:
        return await agent.query(sql)


@pytest.mark.parametrize(
    ("sql", "rule"),
    [
        ("SELECT id, email FROM customers ORDER BY id LIMIT 1", None),
        ("SELECT id FROM customers WHERE email = 'x'", "column_masking"),
        ("DELETE FROM written WHERE tag = (SELECT min(email) FROM customers)", "column_masking"),
        ("SELECT * FROM secrets", "table_access"),
        ("DELETE FROM written", "dangerous_statement"),
        ("SELEC 1", "parse_error"),
    ],
)
async def test_a_dry_run_is_told_what_a_call_is_told(masking: tuple[Operator, str], sql: str, rule: str | None) -> None:
    operator, _ = masking
    found = verdict(operator, sql)
    answer = await told(operator, sql)
    assert (found["decision"] == "allow") == answer["allowed"] == (rule is None)
    if rule:
        assert answer["policy_rule"] == rule
        assert found["reason"] == answer["reason"]


def test_masks_leave_probes_alone(masking: tuple[Operator, str]) -> None:
    probes = [{"table": table, "action": "update"} for table in ("customers", "written")]
    found = masking[0].dry_run(database="__default__", probes=probes)["verdicts"]
    assert [(each["decision"], each["matched_rule"]) for each in found] == [
        ("deny", "default:read"),
        ("allow", "table:public.written→read_write"),
    ]


async def test_a_name_that_is_new_is_looked_up(masking: tuple[Operator, str], postgres: Postgres) -> None:
    """A view that somebody made meanwhile is not known, until the catalog that was asked for says what it shows."""
    operator, dsn = masking
    postgres.execute("CREATE VIEW peek AS SELECT word FROM secrets", dsn)
    sql = "SELECT * FROM peek"
    with trio.fail_after(IDLE_S / 2):  # unknown names ask for one read in five seconds; by itself the next comes much later
        await until(lambda: "secrets" in verdict(operator, sql)["reason"])
    found = verdict(operator, sql)
    assert found["decision"] == "deny"
    assert (await told(operator, sql))["reason"] == found["reason"]


async def test_right_after_the_start_both_wait_for_the_catalog(postgres: Postgres, tmp_path: Path) -> None:
    """The database answers once both have asked. Who is refused all the same has waited as long as anybody does."""
    way = HeldBack(postgres)
    dsn = postgres.create_database(SHOP, tcp=True)
    answers: dict[str, tuple[bool, float]] = {}

    async def ask_dry(port: int) -> None:
        request = {"database": "__default__", "sql": ORDERS}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=BEARER, timeout=PATIENCE_S) as http:
            began = time.monotonic()
            answer = (await http.post("/admin/dry-run", json=request)).json()
            answers["dry run"] = answer["verdicts"][0]["decision"] == "allow", time.monotonic() - began

    async def ask(port: int) -> None:
        async with Agent(port) as agent:
            began = time.monotonic()
            answer = await agent.query(ORDERS)
            answers["call"] = answer["allowed"], time.monotonic() - began

    async with trio.open_nursery() as nursery:
        await nursery.start(way.run)
        with reserved_port() as port, just_started(way.dsn(dsn), tmp_path, port, INDEXER_TOKEN=TOKEN):
            async with trio.open_nursery() as asking:
                asking.start_soon(ask_dry, port)
                asking.start_soon(ask, port)
                with trio.move_on_after(1):  # who does not wait at all has answered by then
                    await until(lambda: bool(answers))
                way.opened.set()
            nursery.cancel_scope.cancel()
    assert set(answers) == {"dry run", "call"}
    assert all(allowed or waited_s >= UNKNOWN_WAIT_S for allowed, waited_s in answers.values()), answers
