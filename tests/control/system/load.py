"""What agents, reviewers and publishers do to a system, all day, and what they were told: `Heard`, held against the store later.

Everybody goes on after any failure, as people and clients do. Only an answer counts as heard: what was sent without one may have
been done or not.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, Final

import httpx
import msgspec
import trio

from tests.control.browser import TLS, Browser
from tests.control.linked_rig import Agent, At, Project
from tests.mcp.mcp_rig import META, STATELESS

INSERT: Final = "INSERT INTO ledger VALUES ({})"
_ENTRY: Final = "databases:\n  - name: shop\n    table_access: {default: read, tables: {payroll: deny, ledger: %s}}\n%s"
_HOLD: Final = "    approvals: {row_changes: true, hold_s: 2}\n"
POLICIES: Final = {
    "held": _ENTRY % ("read_write", _HOLD),
    "free": _ENTRY % ("read_write", ""),
    "denied": _ENTRY % ("read", _HOLD),
}
_WEIGHTS: Final = (6, 2, 1)
_LOST: Final = (httpx.HTTPError, OSError, AssertionError, LookupError, ValueError)
_SHOWN: Final = 20


class Decision(msgspec.Struct, frozen=True):
    approval: str
    state: str
    note: str


class Heard(msgspec.Struct):
    """`published`: note to version of the bundle. `tried`: every decision that was sent, by its note."""

    counts: Counter[str] = msgspec.field(default_factory=Counter)
    decided: list[Decision] = msgspec.field(default_factory=list)
    tried: dict[str, Decision] = msgspec.field(default_factory=dict)
    published: dict[str, int] = msgspec.field(default_factory=dict)
    executed: Counter[str] = msgspec.field(default_factory=Counter)


class Load:
    """`pace_s`: how long everybody rests between two things, at the most."""

    def __init__(self, project: Project, heard: Heard, dice: Random, *, pace_s: float, policy_s: float) -> None:
        self.project: Final = project
        self.heard: Final = heard
        self._dice: Final = dice
        self._pace_s: Final = pace_s
        self._policy_s: Final = policy_s
        self._number = 0

    # -- agents

    async def agent(self, url: str, token: str, *, is_stateless: bool) -> None:
        """Never returns. `url`: of a gateway, or of the control plane whose engine is called."""
        while True:
            caller: Agent | Stateless
            try:
                caller = Stateless(url, token) if is_stateless else await Agent(At(url), token).begin()
                for _ in range(self._dice.randrange(5, 60)):
                    await self._call(caller.query)
                    await trio.sleep(self._dice.uniform(0, self._pace_s))
            except _LOST as lost:
                self.heard.counts[f"agents: no answer ({type(lost).__name__})"] += 1
                await trio.sleep(self._pace_s)

    async def _call(self, query: Callable[[str], Awaitable[dict[str, Any]]]) -> None:
        kind = self._dice.choices(("read", "denied", "write"), (6, 1, 4))[0]
        if kind == "read":
            return self._note(await query(f"SELECT status FROM orders WHERE id = {self._dice.randrange(20)}"))
        if kind == "denied":
            return self._note(await query("SELECT amount FROM payroll"))
        self._number += 1
        sql = INSERT.format(self._number)
        for _ in range(self._dice.randrange(1, 5)):
            found = await query(sql)
            self._note(found)
            if found.get("status") != "awaiting_approval":
                if found.get("allowed") and "error" not in found:
                    self.heard.executed[sql] += 1
                return None
            await trio.sleep(self._dice.uniform(0, 4 * self._pace_s))
        return None

    def _note(self, found: dict[str, Any]) -> None:
        error = found.get("error")
        what = error.get("sqlstate") if isinstance(error, dict) else error
        self.heard.counts[f"calls: {what or found.get('status') or found.get('policy_rule') or 'executed'}"] += 1

    # -- people

    async def reviewer(self, browser: Browser, name: str) -> None:
        """Never returns. Decides what waits, at random and not looking at who else does."""
        number = 0
        while True:
            await trio.sleep(self._dice.uniform(0, 4 * self._pace_s))
            try:
                listed = await self.project.api("GET", f"/projects/{self.project.id}/approvals")
                waiting = listed.json()["requests"][:_SHOWN] if listed.status_code == 200 else []
                for each in self._dice.sample(waiting, min(len(waiting), 5)):
                    number += 1
                    await self._decide(browser, each["id"], f"{name} {number}")
            except _LOST as lost:
                self.heard.counts[f"reviewers: no answer ({type(lost).__name__})"] += 1

    async def _decide(self, browser: Browser, approval: str, note: str) -> None:
        verb, state = self._dice.choices((("approve", "approved"), ("deny", "denied")), (4, 1))[0]
        decision = self.heard.tried[note] = Decision(approval, state, note)
        path = f"/projects/{self.project.id}/approvals/{approval}/decide"
        answer = await browser.post(path, {"decision": verb, "note": note})
        said = browser.cookies.pop("gatewayd-said", str(answer.status_code))
        self.heard.counts[f"reviewers: {said}"] += 1
        if answer.status_code == 303 and said == "decided":
            self.heard.decided.append(decision)

    async def publisher(self) -> None:
        """Never returns."""
        number = 0
        while True:
            await trio.sleep(self._dice.uniform(0, 2 * self._policy_s))
            number += 1
            kind, note = self._dice.choices(tuple(POLICIES), _WEIGHTS)[0], f"publication {number}"
            try:
                body = {"policy": POLICIES[kind], "note": note}
                answer = await self.project.api("POST", f"/projects/{self.project.id}/policies", body)
            except _LOST as lost:
                self.heard.counts[f"publications: no answer ({type(lost).__name__})"] += 1
                continue
            self.heard.counts[f"publications: {answer.status_code}"] += 1
            if answer.status_code == 201:
                self.heard.published[note] = int(answer.json()["bundle"])


class Stateless:
    """An agent of the stateless era: every call stands for itself."""

    def __init__(self, url: str, token: str) -> None:
        self._url: Final = f"{url}/mcp"
        self._headers: Final = {
            "accept": "application/json, text/event-stream", "authorization": f"Bearer {token}",
            "mcp-protocol-version": STATELESS, "mcp-method": "tools/call", "mcp-name": "query",
        }  # fmt: skip

    async def query(self, sql: str, intent: str = "a test") -> dict[str, Any]:
        params = {"name": "query", "arguments": {"sql": sql, "intent": intent}, "_meta": META}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        async with httpx.AsyncClient(trust_env=False, timeout=120, verify=TLS) as client:
            answer = await client.post(self._url, json=message, headers=self._headers)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = msgspec.json.decode(answer.json()["result"]["content"][0]["text"])
        return found
