"""One running gatewayd and all that leaves it: answers, audit, logs, metrics, webhook, telemetry. What the canary tests share."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from tests.daemon.daemon_rig import Agent
from tests.daemon.operators_rig import Operator, operated
from tests.masking.masking_canaries import WORD, found
from tests.notify.receiver import Receiver, receiving, status

SALT = f"salt {WORD}"
"""A canary as well."""


class CanaryWatch:
    """Asks, and keeps what it was told. A canary in an answer is in `leaks` with its statement."""

    def __init__(self, operator: Operator, agent: Agent) -> None:
        self.operator = operator
        self.outcomes: Counter[str] = Counter()
        self.leaks: list[str] = []
        self._agent = agent

    async def query(self, database: str, sql: str) -> dict[str, Any]:
        """The answer without its auditId."""
        return await self.call("query", database=database, sql=sql, intent="analysis")

    async def call(self, tool: str, **arguments: str) -> dict[str, Any]:
        answer = await self._agent.call(tool, **arguments)
        answer.pop("auditId", None)
        self.outcomes[answer.get("policy_rule") or ("failed" if "error" in answer else "answered")] += 1
        if canary := found(json.dumps(answer, ensure_ascii=False)):
            self.leaks.append(f"{arguments}: {canary}")
        return answer


@asynccontextmanager
async def watched(databases: Mapping[str, tuple[str, dict[str, Any]]], folder: Path) -> AsyncIterator[CanaryWatch]:
    """gatewayd over `databases`: connection string and policy by name. After the block `leaks` also tells of the canaries in all
    else that left it; what agents send must hold none, for the webhook repeats it."""
    policy = json.dumps(
        {"databases": [{"name": name, "url": f"${{{name.upper()}_URL}}", **more} for name, (_, more) in databases.items()]}
    )
    urls = {f"{name.upper()}_URL": dsn for name, (dsn, _) in databases.items()}
    ok = status("204 No Content")
    async with receiving(ok) as webhook, receiving(ok) as telemetry:
        more = {
            "GATEWAY_MASK_SALT": SALT, "GATEWAY_LOG_LEVEL": "debug", "GATEWAY_DENY_WEBHOOK": webhook.url, "GATEWAY_TELEMETRY": "1",
            "GATEWAY_TELEMETRY_ENDPOINT": telemetry.url, "GATEWAY_TELEMETRY_HEARTBEAT_MS": "500",
        }  # fmt: skip
        with operated("", folder, policy, **urls, **more) as operator:
            async with Agent(operator.port) as agent:
                watch = CanaryWatch(operator, agent)
                yield watch
            rows = await trio.to_thread.run_sync(operator.rows)
            metrics = await trio.to_thread.run_sync(lambda: operator.http.get("/metrics").text)
            await telemetry.received(len(telemetry.requests) + 1)
            assert await trio.to_thread.run_sync(operator.running.stop) == 0
        for way, text in _left(rows, metrics, operator, webhook, telemetry):
            if canary := found(text):
                watch.leaks.append(f"{way}: {canary}")
        assert {row["event_type"] for row in rows} == {"ATTEMPTED", "DECIDED", "EXECUTED", "FAILED"}
        assert webhook.requests


def _left(
    rows: list[dict[str, Any]], metrics: str, operator: Operator, webhook: Receiver, telemetry: Receiver
) -> Iterator[tuple[str, str]]:
    for row in rows:
        row["payload"].pop("sql_raw", None)
        yield f"audit {row['id']}", json.dumps(row, ensure_ascii=False)
    yield "metrics", metrics
    yield "log", operator.running.text
    for way, receiver in (("webhook", webhook), ("telemetry", telemetry)):
        for head, body in receiver.requests:
            yield way, str(head) + json.dumps(body, ensure_ascii=False)
