"""Generated lives of held writes against a model of the rules: policy changes, decisions, expiries, retries, lost answers, kills.

The engine's `HeldWrites` and the gate's `Requests` are the real ones; between them answers get lost. The model below is written
from docs/approvals.md alone, without a look at theirs. What is held: every answer and every status are the model's; no write runs
without an approval of exactly it, no approval is spent twice.
"""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import trio

from gatewayd.approvals.desk.requests import Requests
from gatewayd.approvals.gate import Unavailable
from gatewayd.approvals.messages import (
    Approved,
    Expired,
    GateAnswer,
    GateAsk,
    GateDenied,
    Outcome,
    Pending,
    Status,
    StatusAsked,
    Wait,
)
from gatewayd.approvals.rules import OPEN_OF_ONE, NotAsked, TooManyOpen
from gatewayd.corridor.hold import NOBODY, GateSilent, HeldWrites, HoldOutcome, StillUndecided
from tests.approvals.desks import an_ask, opened

EXPIRES_MS = 1000
STEPS = 14


class Rules:
    """The rules as the page has them, over plain dictionaries."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    def answer(self, key: tuple[str, str], query_id: str, now: int) -> str:
        mine = [r for r in self.requests if r["claim"] == query_id]
        if mine:
            return f"approved {mine[0]['id']}" if mine[0]["key"] == key else "refused"
        own = [r for r in self.requests if r["key"] == key]
        for request in reversed(own):
            if request["said"] == "approved" and request["claim"] is None and now < request["until"]:
                request["claim"] = query_id
                return f"approved {request['id']}"
        if own and own[-1]["claim"] is None:
            last = own[-1]
            if last["said"] == "denied":
                if now < last["until"]:
                    return f"denied {last['id']}"
            elif now < last["until"]:
                return f"pending {last['id']}"
            elif last["expiry told"] in (None, query_id):
                last["expiry told"] = query_id
                return f"expired {last['id']}"
        if sum(r["said"] is None and now < r["until"] and r["key"][0] == key[0] for r in self.requests) >= OPEN_OF_ONE:
            return "too many"
        return "new"

    def opened(self, approval_id: str, key: tuple[str, str], now: int) -> None:
        untold: dict[str, Any] = dict.fromkeys(("said", "claim", "expiry told", "ran"))
        self.requests.append({"id": approval_id, "key": key, "until": now + EXPIRES_MS, **untold})

    def status(self, approval_id: str, token: str, now: int) -> str:
        for request in self.requests:
            if request["id"] == approval_id and request["key"][0] == token:
                if request["claim"] is not None:
                    return "executed" if request["ran"] == "executed" else "consumed"
                if request["said"] == "denied":
                    return "denied"
                if now >= request["until"]:
                    return "expired"
                return request["said"] or "pending"
        return "not_found"


class World:
    """One gate for all sequences; each has databases of its own, so they share nothing but the limit of their tokens."""

    def __init__(self, path: Path, seed: int) -> None:
        self.random = Random(seed)
        self.path = path
        self.requests: Requests = opened(path, expires_ms=EXPIRES_MS)
        self.now = 1_000_000
        self.counts: Counter[str] = Counter()
        self.loses = 0
        self._queries = 0

    # -- a Gate, without the network: an answer may be lost after it was given

    async def ask(self, ask: GateAsk, within_s: float) -> GateAnswer:
        await trio.lowlevel.checkpoint()
        try:
            answer = self.requests.answer(ask, self.now)
        except TooManyOpen as full:
            raise Unavailable(str(full), retry_after_s=full.retry_after_s) from None
        except NotAsked:
            raise Unavailable("it answered status 409") from None
        if self.loses:
            self.loses -= 1
            raise Unavailable("ReadError", is_lost=True)
        return answer

    async def wait(self, wait: Wait, within_s: float) -> GateAnswer | None:
        raise AssertionError("no call here waits")

    async def status(self, asked: StatusAsked, within_s: float) -> Status:
        raise AssertionError("asked of the requests themselves")

    async def outcome(self, outcome: Outcome, within_s: float) -> None:
        self.requests.note_outcome(outcome)

    def new_query(self) -> str:
        self._queries += 1
        return f"Q{self._queries}"


async def sequence(world: World, number: int) -> None:
    random, rules = world.random, Rules()
    tokens = [f"{number}-a", f"{number}-b"]
    texts = ["DELETE FROM t", "DELETE FROM  t"]
    crowded = random.random() < 0.02
    approvals = HeldWrites(world)
    approved_by_a_person: set[str] = set()
    ran: Counter[str] = Counter()
    policy = "hold"
    if crowded:
        tokens = tokens[:1]
        texts += [f"DELETE FROM t{n}" for n in range(60)]

    async def call(token: str, sql: str) -> None:
        query_id = world.new_query()
        ask = an_ask(query_id, sql=sql, token_id=token)
        key = (token, sql)
        if policy != "hold":
            world.counts[f"{policy} by policy"] += 1
            return
        world.loses = random.choice((0, 0, 0, 1, 2))
        lost = world.loses
        expected = rules.answer(key, query_id, world.now)
        found = await approvals.decided(ask, 0, NOBODY, None)
        if expected == "new":
            # Also where its answers were lost: the request is there.
            [made] = [r for r in world.requests.open_requests(world.now) if (r.ask.mcp_token_id, r.ask.sql) == key]
            rules.opened(made.approval_id, key, world.now)
            expected = f"pending {made.approval_id}"
        if lost == 2 and expected not in ("too many", "refused"):
            assert isinstance(found, GateSilent), (expected, found)
            world.counts["lost twice"] += 1
            return
        assert said(found) == expected, (said(found), expected)
        world.counts[expected.split()[0] if expected != "too many" else expected] += 1
        if isinstance(found, Approved):
            await run(found, query_id, key)

    async def run(found: Approved, query_id: str, key: tuple[str, str]) -> None:
        """What the corridor does with an approval: decides again, runs, tells."""
        nonlocal policy
        assert found.approval_id is not None
        fate = random.choice(("runs", "runs", "runs", "engine is killed", "policy denies now", "fails", "outcome is lost"))
        world.counts[fate] += 1
        if fate == "engine is killed":
            return
        if fate == "policy denies now":
            policy = "deny"
        is_run = fate in ("runs", "outcome is lost")
        if is_run:
            assert found.approval_id in approved_by_a_person, "ran without an approval"
            ran[found.approval_id] += 1
            assert ran[found.approval_id] == 1, "ran twice on one approval"
        if fate != "outcome is lost":
            outcome = Outcome(query_id, "executed" if is_run else "failed", 1 if is_run else None)
            await world.outcome(outcome, 1)
            next(r for r in rules.requests if r["claim"] == query_id)["ran"] = outcome.outcome
        # Asking again with the same query_id, as after a lost answer, spends nothing.
        assert isinstance(world.requests.answer(an_ask(query_id, sql=key[1], token_id=key[0]), world.now), Approved)

    def person() -> None:
        if not rules.requests:
            return
        request = random.choice(rules.requests)
        decision = random.choice(("approved", "approved", "denied"))
        is_open = request["said"] is None and world.now < request["until"]
        assert world.requests.decide(request["id"], decision, world.now, by="ann") == is_open  # type: ignore[arg-type]
        if is_open:
            request["said"] = decision
            world.counts[f"person: {decision}"] += 1
            if decision == "approved":
                approved_by_a_person.add(request["id"])

    def poll() -> None:
        if rules.requests:
            request, token = random.choice(rules.requests), random.choice(tokens)
            status = world.requests.status(request["id"], token, world.now)
            assert status.status == rules.status(request["id"], token, world.now)
            world.counts[f"status {status.status}"] += 1

    for _ in range(STEPS * (4 if crowded else 1)):
        match random.randrange(10 if crowded else 20):
            case 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7:
                await call(random.choice(tokens), random.choice(texts))
            case 8 | 9 | 10 | 11 | 12:
                person()
            case 13 | 14 | 15:
                poll()
            case 16 | 17:
                world.now += random.choice((1, 50, EXPIRES_MS // 2, EXPIRES_MS))
            case 18:
                policy = random.choice(("hold", "hold", "allow", "deny"))
            case _ if random.random() < 0.2:
                world.requests.close()
                world.requests = opened(world.path, expires_ms=EXPIRES_MS)
                approvals = HeldWrites(world)  # and the engine's memory with it
                world.counts["gate and engine restarted"] += 1
    spent = [r["claim"] for r in rules.requests if r["claim"] is not None]
    assert len(spent) == len(set(spent))
    assert set(ran) <= {r["id"] for r in rules.requests if r["claim"] is not None}


def said(found: HoldOutcome) -> str:
    match found:
        case StillUndecided(pending=Pending(approval_id=approval_id)):
            return f"pending {approval_id}"
        case Approved(approval_id=approval_id):
            return f"approved {approval_id}"
        case GateDenied(approval_id=approval_id):
            return f"denied {approval_id}"
        case Expired(approval_id=approval_id):
            return f"expired {approval_id}"
        case GateSilent(retry_after_s=int()):
            return "too many"
        case _:
            return str(found)


async def sequences(path: Path, seed: int, count: int) -> Counter[str]:
    """Runs so many; gives what happened, how often."""
    world = World(path, seed)
    try:
        for number in range(count):
            await sequence(world, number)
            if number % 500 == 499:
                world.requests.forget_before(world.now)
                world.now += 2 * EXPIRES_MS
    finally:
        world.requests.close()
    return world.counts
