"""Ways around an approval, each tried on a real database: another effect under the same text, a write in a read's clothes."""

import contextlib
import json
import os
from pathlib import Path

import pytest
import trio

from gatewayd.approvals.desk.requests import Requests
from gatewayd.approvals.messages import Approved, GateAnswer, GateAsk, Wait
from gatewayd.audit.ids import new_ulid
from gatewayd.corridor.answer import Answered, Broken, OnHold, Refused
from tests.approvals.gates import TABLES, ToldGate, approve, held, own_chains, policy_text
from tests.conftest import Postgres
from tests.daemon.daemon_rig import kinds

SNEAK = """
CREATE FUNCTION sneak() RETURNS integer LANGUAGE sql VOLATILE AS $$ DELETE FROM log; SELECT 1 $$;
CREATE VIEW sneaky AS SELECT id FROM accounts WHERE sneak() = 1;
"""
OPENED = "functions: {allow: [public.sneak]}\n"


async def test_a_locking_read_that_runs_a_function_waits_like_a_write(postgres: Postgres, tmp_path: Path) -> None:
    """It is a read by its grammar, and runs in a transaction that may write."""
    dsn, gate = postgres.create_database(TABLES + SNEAK), ToldGate()
    async with held(gate, dsn, tmp_path, policy_text(hold_s=0, more=OPENED)) as there:
        for sql in (
            "SELECT public.sneak() FROM accounts WHERE id = 1 FOR UPDATE",
            "SELECT public.sneak() FROM (SELECT 1 FROM accounts WHERE id = 1 FOR SHARE) AS locked",
            "SELECT id FROM accounts WHERE id = (SELECT public.sneak()) FOR NO KEY UPDATE",
            "SELECT public.sneak()",
        ):
            answer = await there.query(sql)
            assert not isinstance(answer, Answered), sql
    assert postgres.execute("SELECT count(*) FROM log", dsn) == "50"


RENAMED = "ALTER TABLE accounts RENAME TO once; ALTER TABLE treasure RENAME TO accounts"
SWAPS = {
    "a table under its name": ("DELETE FROM accounts WHERE id <= 3", RENAMED),
    "a view's query": ("DELETE FROM few", "CREATE OR REPLACE VIEW few AS SELECT * FROM treasure"),
    "behind a view": ("INSERT INTO accounts SELECT * FROM outer_few", "CREATE OR REPLACE VIEW few AS SELECT * FROM treasure"),
}
SWAPPED = """
CREATE TABLE treasure (id integer PRIMARY KEY, owner text NOT NULL, balance integer NOT NULL DEFAULT 0);
INSERT INTO treasure SELECT 1000 + i, 'rich', 1 FROM generate_series(1, 50) i; INSERT INTO treasure VALUES (1, 'r', 1);
CREATE VIEW few AS SELECT id, owner, balance FROM accounts WHERE id <= 3;
CREATE VIEW outer_few AS SELECT id + 5000 AS id, owner, balance FROM few;
"""


@pytest.mark.parametrize("knows", [True, False], ids=["the catalog is read again", "it is not"])
@pytest.mark.parametrize("swap", SWAPS)
async def test_an_approval_is_of_what_the_names_stood_for(swap: str, knows: bool, postgres: Postgres, tmp_path: Path) -> None:
    """Approved for one table, and another one has its name when it is to run."""
    sql, change = SWAPS[swap]
    dsn, gate = postgres.create_database(TABLES + SWAPPED), ToldGate()
    before = [postgres.execute(f"SELECT count(*) FROM {table}", dsn) for table in ("treasure", "accounts")]
    async with held(gate, dsn, tmp_path, policy_text()) as there:

        async def swapped_then_approved(_: Wait) -> GateAnswer:
            postgres.execute(change, dsn)
            if knows:
                await there.database.refresher.changed()
            return Approved()

        gate.on_wait = swapped_then_approved
        answer = await there.query(sql)
        assert isinstance(answer, Refused | Broken)
    after = sorted(postgres.execute(f"SELECT count(*) FROM {table}", dsn) for table in tables_after(swap))
    assert after == sorted(before)
    assert "EXECUTED" not in kinds(own_chains(tmp_path)[0])


def tables_after(swap: str) -> tuple[str, str]:
    return ("accounts", "once") if swap == "a table under its name" else ("treasure", "accounts")


async def test_an_approval_given_meanwhile_is_not_found_for_another_table_of_the_name(postgres: Postgres, tmp_path: Path) -> None:
    dsn, gate = postgres.create_database(TABLES + SWAPPED), ToldGate()
    with contextlib.closing(Requests(str(tmp_path / "r.db"), lambda now: new_ulid(now, os.urandom))) as requests:

        async def at_the_desk(ask: GateAsk) -> GateAnswer:
            await trio.lowlevel.checkpoint()
            return requests.answer(ask, 1000)

        gate.on_ask = at_the_desk
        async with held(gate, dsn, tmp_path, policy_text(hold_s=0)) as there:
            first = await there.query("DELETE FROM accounts WHERE id <= 3")
            assert isinstance(first, OnHold)
            assert first.pending is not None
            requests.decide(first.pending.approval_id, "approved", 1000)
            postgres.execute(RENAMED, dsn)
            await there.database.refresher.changed()
            second = await there.query("DELETE FROM accounts WHERE id <= 3")
            assert isinstance(second, OnHold)
            assert second.pending is not None
            assert second.pending.approval_id != first.pending.approval_id
            postgres.execute("ALTER TABLE accounts RENAME TO treasure; ALTER TABLE once RENAME TO accounts", dsn)
            await there.database.refresher.changed()
            assert isinstance(await there.query("DELETE FROM accounts WHERE id <= 3"), Answered)  # what was approved
    assert postgres.execute("SELECT count(*) FROM treasure", dsn) == "51"


async def test_a_column_more_on_the_table_asks_nobody_again(postgres: Postgres, tmp_path: Path) -> None:
    dsn, gate = postgres.create_database(TABLES), ToldGate()
    async with held(gate, dsn, tmp_path, policy_text()) as there:

        async def widened_then_approved(_: Wait) -> GateAnswer:
            await trio.lowlevel.checkpoint()
            postgres.execute("ALTER TABLE accounts ADD COLUMN more text", dsn)
            return Approved()

        gate.on_wait = widened_then_approved
        answer = await there.query("UPDATE accounts SET balance = 0 WHERE id <= 3")
        assert isinstance(answer, Answered)
        assert answer.result.rows_affected == 3


async def test_a_locking_read_runs_once_it_is_approved_also_with_a_bound(postgres: Postgres, tmp_path: Path) -> None:
    dsn, gate = postgres.create_database(TABLES + SNEAK), ToldGate()
    async with held(gate, dsn, tmp_path, policy_text(preview="true", more=OPENED)) as there:

        async def bounded(_: object) -> GateAnswer:
            await trio.lowlevel.checkpoint()
            return Approved(rows_at_most=10)

        gate.on_ask = bounded
        plain = await there.query("SELECT id FROM accounts WHERE id <= 3 FOR UPDATE")
        assert isinstance(plain, Answered)
        assert plain.result.rows_returned == 3
        sneaking = await there.query("SELECT public.sneak() FROM accounts WHERE id = 1 FOR UPDATE")
        assert isinstance(sneaking, Broken)
        assert sneaking.sqlstate == "approval_bound"
    assert postgres.execute("SELECT count(*) FROM log", dsn) == "50"


async def test_what_an_approved_write_returns_is_masked(postgres: Postgres, tmp_path: Path) -> None:
    masks = "column_masks: {accounts: {owner: full-redact}}\n"
    dsn, gate = postgres.create_database(TABLES), ToldGate()
    gate.on_ask = approve
    async with held(gate, dsn, tmp_path, policy_text(preview="true", more=masks)) as there:
        answer = await there.query("UPDATE accounts SET balance = 7 WHERE id = 1 RETURNING id, owner, balance")
        assert isinstance(answer, Answered)
        [row] = [json.loads(row) for row in answer.result.rows]
        assert (row["id"], row["balance"], answer.result.rows_affected) == (1, 7, 1)
        assert "owner 1" not in row["owner"]
        bounded = Approved(rows_at_most=1)

        async def one_row(_: object) -> GateAnswer:
            await trio.lowlevel.checkpoint()
            return bounded

        gate.on_ask = one_row
        above = await there.query("UPDATE accounts SET balance = 8 WHERE id <= 2 RETURNING owner")
        assert isinstance(above, Broken)
        assert "owner" not in above.message
    assert postgres.execute("SELECT count(*) FROM accounts WHERE balance = 8", dsn) == "0"
    assert [ask.preview.rows for ask in gate.asked if ask.preview is not None] == [1, 2]
    assert not [ask for ask in gate.asked if "owner 1" in repr(ask.preview)]
