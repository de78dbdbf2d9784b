"""Writes that wait for a person in the world's shop, and some that were decided."""

from gatewayd.approvals.messages import GateAsk, Pending, Preview
from gatewayd.control.approvals.answer import answer
from gatewayd.control.approvals.requests import LINK, Asker
from gatewayd.control.console import Console
from tests.console.recorded import HOSTILE, LONG
from tests.control.browser import Browser

PLAN = ("Delete on orders  (cost=0.15..8.17 rows=0 width=0)", "  ->  Index Scan using orders_pkey on orders")


async def hold(console: Console, reviewer: Browser, org: str, project: str, *, with_hostile: bool = True) -> dict[str, str]:
    """Places of what was made: ids of requests."""

    async def asked(sql: str, **changes: object) -> str:
        return await ask_for(console, org, project, sql, **changes)

    first = await asked("DELETE FROM orders WHERE id IN (17, 18, 19)", intent="remove the test orders of this morning")
    answered = await decide(reviewer, project, first, decision="approve", note="fine, they are tests", rows_at_most="3")
    assert answered == 303
    denied = await asked("DELETE FROM orders", fingerprint="all", write_class="whole_table_writes", preview=Preview(10_001))
    assert await decide(reviewer, project, denied, decision="deny", note="that is every order") == 303
    waiting = await asked("DELETE FROM orders WHERE id IN (4711, 18, 19)", intent="remove the order that was placed twice")
    update = "UPDATE customers SET email = 'ada@example.com' WHERE id = 4711"
    together = await asked(
        update, fingerprint="u", statement_type="UPDATE", tables_touched=("public.customers",), preview=Preview(1, PLAN, 2)
    )
    places = {"waiting": waiting, "together": together, "approved": first, "denied": denied}
    if not with_hostile:
        return places
    agent: dict[str, object] = {"agent_name": HOSTILE[:128], "agent_version": HOSTILE[:64], "intent": HOSTILE * 4}
    odd = agent | {"fingerprint": HOSTILE[:60], "statement_type": HOSTILE[:30], "tables_touched": (HOSTILE[:60],) * 64}
    hostile = await asked(f"DELETE FROM orders -- {HOSTILE}", preview=Preview(None, (HOSTILE,) * 50, None, HOSTILE), **odd)
    long = await asked(LONG, **(odd | {"fingerprint": "long"}))
    return places | {"hostile_write": hostile, "long_write": long}


async def ask_for(console: Console, org: str, project: str, sql: str, **changes: object) -> str:
    fields: dict[str, object] = {
        "query_id": console.new_id(), "database": "main", "sql": sql, "intent": None, "statement_type": "DELETE",
        "tables_touched": ("public.orders",), "tenant_id": org, "agent_name": "claude-code", "agent_version": "2.1",
        "mcp_token_id": None, "fingerprint": "0123456789abcdef", "write_class": "row_changes", "policy_hash": "ab" * 32,
        "preview": Preview(3, PLAN, 3),
    }  # fmt: skip
    found = await answer(console, Asker(org, project, LINK), GateAsk(**(fields | changes)))  # type: ignore[arg-type]  # as above
    assert isinstance(found, Pending)
    return found.approval_id


async def decide(browser: Browser, project: str, approval: str, **form: str) -> int:
    return (await browser.post(f"/projects/{project}/approvals/{approval}/decide", form)).status_code
