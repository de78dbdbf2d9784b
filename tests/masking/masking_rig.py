"""What the tests of masking share: statements on a real database, decided, planned and run as the pipeline does it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import msgspec
import trio

from gatewayd.masking.plan import UNMASKED, Rewritten, Withheld
from gatewayd.masking.results.post_exec import PostExec
from gatewayd.policy.decide.decision import decide
from gatewayd.policy.decide.outcomes import Allowed, Permit
from gatewayd.policy.file.load import load_policies
from gatewayd.policy.file.model import Policy
from gatewayd.postgres.catalog.read_catalog import read_catalog
from gatewayd.postgres.execute.result import ExecutionFailed, Result
from gatewayd.postgres.execute.run import execute
from gatewayd.postgres.pool import Pool
from gatewayd.shields.whole_plan import plan
from gatewayd.sql.facts.analyze import analyze

SALT = b"salt of the tests"
BUILT: dict[str, str | None] = dict.fromkeys(
    ("databases", "table_access", "functions", "guardrails", "limits", "column_masks", "mask_source_rewrite", "approvals")
)


class Denied(msgspec.Struct, frozen=True):
    rule: str
    reason: str


class Failed(msgspec.Struct, frozen=True):
    sqlstate: str
    message: str
    hint: str | None
    position: int | None


Outcome = Result | Denied | Withheld | Failed


class Rig:
    def __init__(self, pool: Pool, policy: Policy, *, rewriting: bool) -> None:
        self.rewriting = rewriting
        self.pool = pool
        self.policy = policy
        self.columns: tuple[str, ...] = ()

    async def refresh(self) -> None:
        self.catalog = await read_catalog(self.pool, 1)

    async def __call__(self, sql: str) -> Outcome:
        statement = analyze(sql)
        decision = decide(statement, self.policy, self.catalog)
        if not isinstance(decision, Allowed):
            return Denied(decision.policy_rule, decision.reason) if not hasattr(decision, "allowed") else Denied("held", "")
        planned = plan(decision, self.policy, self.catalog, salt=SALT, rewriting=self.rewriting)
        if isinstance(planned, Withheld):
            return planned
        assert isinstance(planned, Rewritten if self.rewriting else Rewritten | PostExec) or planned == UNMASKED
        masking = planned if isinstance(planned, Rewritten | PostExec) else None
        self.columns = masking.columns if masking else ()
        try:
            return await execute(self.pool, Permit(decision, "query", "audit"), self.policy.limits, self.catalog, masking)
        except ExecutionFailed as failure:
            return Failed(failure.sqlstate, failure.message, failure.hint, failure.position)

    async def fails_on_the_server(self, sql: str) -> str | None:
        """What the database says to the text as it is, in a transaction that is rolled back; None when it runs."""
        async with self.pool.connection() as connection:
            try:
                await connection.execute(f"BEGIN; {sql}; ROLLBACK")
            except asyncpg.PostgresError as error:
                await connection.rollback()
                return str(error)
        return None

    async def rows(self, sql: str) -> list[dict[str, object]]:
        outcome = await self(sql)
        assert isinstance(outcome, Result), (sql, outcome)
        return [msgspec.json.decode(row) for row in outcome.rows]


def policy_of(text: str) -> Policy:
    single = load_policies(text.encode(), {}, features=BUILT, mask_salt=True).single
    assert single is not None
    return single


@asynccontextmanager
async def rig(dsn: str, policy: str, *, rewriting: bool = True) -> AsyncIterator[Rig]:
    loaded = policy_of(policy)
    pool = Pool("test", dsn, loaded.limits, 3)
    try:
        made = Rig(pool, loaded, rewriting=rewriting)
        await made.refresh()
        yield made
    finally:
        with trio.CancelScope(shield=True):
            await pool.aclose()
