"""Gates for tests: one that says what it is told to, in this process, and the corridor of a write behind it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from gatewayd.approvals.gate import Gate
from gatewayd.approvals.messages import (
    Approved,
    GateAnswer,
    GateAsk,
    Outcome,
    Pending,
    Status,
    StatusAsked,
    Wait,
)
from gatewayd.audit.events import DEFAULT_DATABASE, Agent
from gatewayd.audit.service import open_audit
from gatewayd.config.bounds import DATABASE_BOUNDS, DatabaseBounds
from gatewayd.config.credentials import Secret
from gatewayd.corridor.answer import Answer as CallAnswer
from gatewayd.corridor.databases import Databases
from gatewayd.corridor.gateway import Completed, Database, Gateway, Masking
from gatewayd.corridor.hold import NOBODY, Client, HeldWrites
from gatewayd.corridor.pipeline import run
from gatewayd.policy.file.load import load_policies
from gatewayd.policy.file.model import Policy
from tests.daemon.daemon_rig import chains

TABLES = """
CREATE TABLE accounts (id integer PRIMARY KEY, owner text NOT NULL, balance integer NOT NULL DEFAULT 0);
CREATE TABLE log (id serial, account integer REFERENCES accounts ON DELETE CASCADE, said text);
CREATE TABLE secrets (id integer, word text);
CREATE VIEW rich AS SELECT * FROM accounts WHERE balance > 100;
INSERT INTO accounts SELECT i, 'owner ' || i, i * 10 FROM generate_series(1, 100) i;
INSERT INTO log (account, said) SELECT i % 10 + 1, 'word ' || i FROM generate_series(1, 50) i;
"""
POLICY = """
table_access: {default: read_write, tables: {secrets: deny}}
guardrails: {block_unqualified_dml: false, block_ddl: false}
approvals: {writes: true, hold_s: %s, preview: %s}
"""
FAR = 4_000_000_000_000
WRITE = "UPDATE accounts SET balance = balance + 1 WHERE id <= 3"


def policy(text: str) -> Policy:
    single = load_policies(text, {}, approval_gate=True, mask_salt=True).single
    assert single is not None
    return single


def policy_text(hold_s: int = 20, preview: str = "false", more: str = "") -> str:
    return POLICY % (hold_s, preview) + more


class ToldGate:
    """Answers an GateAsk with what `on_ask` gives, and a Wait with what `on_wait` does. Pending where it is told nothing."""

    def __init__(self) -> None:
        self.asked: list[GateAsk] = []
        self.waits: list[Wait] = []
        self.outcomes: list[Outcome] = []
        self.on_ask: Callable[[GateAsk], Awaitable[GateAnswer]] = self._pending
        self.on_wait: Callable[[Wait], Awaitable[GateAnswer | None]] = self._undecided
        self.waiting = trio.Event()
        self.told = trio.Event()

    async def ask(self, ask: GateAsk, within_s: float) -> GateAnswer:
        self.asked.append(ask)
        return await self.on_ask(ask)

    async def wait(self, wait: Wait, within_s: float) -> GateAnswer | None:
        self.waits.append(wait)
        self.waiting.set()
        return await self.on_wait(wait)

    async def status(self, asked: StatusAsked, within_s: float) -> Status:
        return Status("not_found")

    async def outcome(self, outcome: Outcome, within_s: float) -> None:
        self.outcomes.append(outcome)
        self.told.set()

    async def _pending(self, ask: GateAsk) -> GateAnswer:
        await trio.lowlevel.checkpoint()
        return Pending(approval_id=f"request-{len(self.asked)}", expires_at=FAR)

    async def _undecided(self, wait: Wait) -> GateAnswer | None:
        await trio.sleep_forever()
        raise AssertionError


async def approve(_: object) -> GateAnswer:
    await trio.lowlevel.checkpoint()
    return Approved(by="ann", note="fine")


class Held:
    """The corridor in this process, with the gate before its writes."""

    def __init__(self, gateway: Gateway, approvals: HeldWrites, folder: Path) -> None:
        self.gateway = gateway
        self.approvals = approvals
        self.folder = folder
        self.completed: list[Completed] = []
        gateway.observers += (self.completed.append,)

    @property
    def database(self) -> Database:
        return self.gateway.databases[DEFAULT_DATABASE]

    async def query(self, sql: str = WRITE, token_id: str | None = None, client: Client = NOBODY) -> CallAnswer:
        return await run(self.gateway, self.database, "query", sql, "test", Agent("a", "1", token_id), None, client)


@asynccontextmanager
async def held(
    gate: Gate, dsn: str, folder: Path, text: str, database_bounds: DatabaseBounds = DATABASE_BOUNDS, **bounds: int
) -> AsyncIterator[Held]:
    """Open, with its catalog read. Its audit file is `folder`/audit.db."""
    async with open_audit(str(folder / "audit.db")) as audit, trio.open_nursery() as nursery:
        databases = Databases(database_bounds)
        await nursery.start(databases.run)
        approvals = HeldWrites(gate, **bounds)
        await nursery.start(approvals.reporter.run)
        database = await databases.open(DEFAULT_DATABASE, dsn, policy(text))
        while not database.catalog.is_read:
            await database.refresher.unknown()
        yield Held(
            Gateway(audit, {DEFAULT_DATABASE: database}, masking=Masking(Secret("salt")), approvals=approvals), approvals, folder
        )
        nursery.cancel_scope.cancel()


def own_chains(folder: Path) -> list[list[tuple[str, dict[str, Any]]]]:
    """Without the previews."""
    return [chain for chain in chains(folder).values() if "preview_of" not in chain[0][1]]
