"""The deny webhook of a running gatewayd before receivers that misbehave: no call is held up, nothing grows (decision 8)."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.conftest import Postgres
from tests.daemon.daemon_rig import PATIENCE_S, SHOP, Agent, until
from tests.daemon.operators_rig import Operator, operated
from tests.notify.receiver import Answer, Receiver, endless_body, receiving, silence, status

QUEUE_AND_IN_FLIGHT = 256 + 4
DENIALS = 400
GROWTH_BYTES = 20 * 1024 * 1024


def deliveries(operator: Operator) -> dict[str, int]:
    return counted_in(operator.metrics())


def counted_in(metrics: Mapping[tuple[str, tuple[tuple[str, str], ...]], float]) -> dict[str, int]:
    return {
        dict(labels)["outcome"]: int(value)
        for (name, labels), value in metrics.items()
        if name == "gatewayd_webhook_deliveries_total"
    }


def resident_bytes(operator: Operator) -> int:
    text = Path(f"/proc/{operator.running.process.pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmRSS"))


@asynccontextmanager
async def served(postgres: Postgres, folder: Path, url: str, **more: str) -> AsyncIterator[tuple[Operator, Agent]]:
    with operated(postgres.create_database(SHOP), folder, GATEWAY_DENY_WEBHOOK=url, **more) as operator:
        async with Agent(operator.port) as agent:
            yield operator, agent


async def test_each_denial_is_told_as_the_audit_has_it(postgres: Postgres, tmp_path: Path) -> None:
    async with receiving(status("204 No Content")) as receiver, served(postgres, tmp_path, receiver.url) as (operator, agent):
        told = [await agent.query(sql) for sql in ("SELECT * FROM secrets", "SELECT 1; SELECT 2", "DELETE FROM written", "SELEC")]
        assert (await agent.query("SELECT 1"))["allowed"]
        with trio.fail_after(PATIENCE_S):
            await receiver.received(4)
            await until(lambda: deliveries(operator)["delivered"] == 4)
        rows = {row["id"]: row for row in operator.rows("DECIDED")}
    posted = {body["audit_id"]: body for _, body in receiver.requests}
    assert posted.keys() == {answer["auditId"] for answer in told}
    for answer in told:
        body, row = posted[answer["auditId"]], rows[answer["auditId"]]
        assert (body["policy_rule"], body["reason"]) == (answer["policy_rule"], answer["reason"])
        assert (body["query_id"], body["agent_name"], body["agent_intent"]) == (row["query_id"], "plain agent", "test")
        assert body["statement_type"] == row["payload"].get("statement_type")
        assert body["tables_touched"] == row["payload"].get("tables_touched", [])


async def test_only_the_listed_rules_fire(postgres: Postgres, tmp_path: Path) -> None:
    rules = "multi_statement, parse_error"
    async with (
        receiving(status("200 OK")) as receiver,
        served(postgres, tmp_path, receiver.url, GATEWAY_DENY_WEBHOOK_RULES=rules) as (_, agent),
    ):
        for sql in ("SELECT * FROM secrets", "SELEC", "DELETE FROM written", "SELECT 1; SELECT 2"):
            assert not (await agent.query(sql))["allowed"]
        with trio.fail_after(PATIENCE_S):
            await receiver.received(2)
    assert {body["policy_rule"] for _, body in receiver.requests} == {"parse_error", "multi_statement"}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(None, id="down", marks=pytest.mark.soak),  # each is in tests/notify, too
        pytest.param(status("500 Oops"), id="failing"),
        pytest.param(status("302 Found", "Location: http://127.0.0.1:1/elsewhere\r\n"), id="redirecting", marks=pytest.mark.soak),
        pytest.param(silence, id="silent"),
        pytest.param(endless_body, id="endless", marks=pytest.mark.soak),
    ],
)
async def test_a_bad_receiver_holds_up_no_call_and_takes_no_memory(
    answer: Answer | None, postgres: Postgres, tmp_path: Path
) -> None:
    receiver: Receiver
    async with receiving(answer or silence) as receiver:
        url = receiver.url if answer is not None else "http://127.0.0.1:1/hook?key=query-canary"
        async with served(postgres, tmp_path, url) as (operator, agent):
            for _ in range(50):
                assert not (await agent.query("SELECT * FROM secrets"))["allowed"]
            before = resident_bytes(operator)
            with trio.fail_after(PATIENCE_S):
                for _ in range(DENIALS):
                    assert not (await agent.query("SELECT * FROM secrets"))["allowed"]
            assert resident_bytes(operator) - before < GROWTH_BYTES
            metrics = operator.metrics()
            counted = counted_in(metrics)  # of the same moment: what waits in one may be delivered in the next
            waiting = metrics["gatewayd_webhook_queued", ()]
            assert waiting <= QUEUE_AND_IN_FLIGHT - 4
            assert 450 - 4 <= sum(counted.values()) + waiting <= 450
            if answer is silence:  # all but the last are pushed out, or given up where the calls took longer than a post
                assert counted["delivered"] == 0
                assert counted["dropped"] > 0
            rows = operator.rows("DECIDED")
            assert len(rows) == 450
            code = await trio.to_thread.run_sync(operator.running.stop)
    assert code == 0
    assert "canary" not in operator.running.text
    if answer not in (silence, endless_body):
        assert "deny webhook failed" in operator.running.text
        assert operator.running.text.count("deny webhook failed") == 1
    assert receiver.most_at_once <= 8  # four in flight, and four that were just given up and not yet seen to close


async def test_a_receiver_that_comes_back_is_told_of_once(postgres: Postgres, tmp_path: Path) -> None:
    async with receiving(status("503 Busy")) as receiver, served(postgres, tmp_path, receiver.url) as (operator, agent):
        await agent.query("SELECT * FROM secrets")
        with trio.fail_after(PATIENCE_S):
            await receiver.received(1)
            await until(lambda: deliveries(operator)["failed"] == 1)
            receiver.answer = status("200 OK")
            await agent.query("SELECT * FROM secrets")
            await until(lambda: deliveries(operator)["delivered"] == 1)
        await trio.to_thread.run_sync(operator.running.stop)
    assert operator.running.text.index("deny webhook failed") < operator.running.text.index("deny webhook delivered again")
