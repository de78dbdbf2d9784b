"""A held write in the corridor: what runs, what is recorded, and what the gate is told (docs/approvals.md, In the corridor)."""

from pathlib import Path

import pytest
import trio

from gatewayd.approvals.gate import Unavailable
from gatewayd.approvals.messages import Approved, Expired, GateAnswer, GateAsk, GateDenied, Outcome, Pending, Wait
from gatewayd.corridor.answer import Answered, Broken, OnHold, Refused
from gatewayd.corridor.containing import Containing
from gatewayd.corridor.kept_taints import KeptTaints
from tests.approvals.gates import FAR, TABLES, WRITE, ToldGate, approve, held, own_chains, policy, policy_text
from tests.conftest import Postgres
from tests.daemon.daemon_rig import chains, kinds


def balances(postgres: Postgres, dsn: str) -> int:
    return int(postgres.execute("SELECT sum(balance) FROM accounts", dsn))


async def told(gate: ToldGate) -> list[Outcome]:
    with trio.fail_after(30):
        await gate.told.wait()
    return gate.outcomes


async def test_an_approved_write_runs_once_and_its_outcome_is_told(postgres: Postgres, tmp_path: Path) -> None:
    dsn, gate = postgres.create_database(TABLES), ToldGate()
    gate.on_wait = approve
    async with held(gate, dsn, tmp_path, policy_text()) as there:
        answer = await there.query()
        assert isinstance(answer, Answered)
        assert answer.result.rows_affected == 3
        assert await told(gate) == [Outcome(gate.asked[0].query_id, "executed", 3)]
    assert balances(postgres, dsn) == 50500 + 3
    [chain] = own_chains(tmp_path)
    assert kinds(chain) == "ATTEMPTED ALLOW EXECUTED"
    assert chain[1][1]["approved_by"] == "ann"


async def test_the_gate_is_told_what_is_decided_about(postgres: Postgres, tmp_path: Path) -> None:
    dsn, gate = postgres.create_database(TABLES), ToldGate()
    gate.on_ask = approve
    async with held(gate, dsn, tmp_path, policy_text(preview="true")) as there:
        await there.query(token_id="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    [ask] = gate.asked
    assert (ask.database, ask.sql, ask.intent, ask.statement_type) == ("__default__", WRITE, "test", "UPDATE")
    assert (ask.tables_touched, ask.tenant_id, ask.write_class) == (("public.accounts",), "__self_host__", "row_changes")
    assert (ask.agent_name, ask.agent_version, ask.mcp_token_id) == ("a", "1", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert (len(ask.fingerprint), len(ask.policy_hash)) == (16, 16)
    assert ask.preview is not None
    assert (ask.preview.rows, ask.preview.why) == (3, None)
    assert ask.preview.plan[0].startswith("Update on accounts")
    assert 15 < ask.hold_s <= 20
    attempted = [chain for chain in chains(tmp_path).values() if chain[0][1].get("preview_of") == ask.query_id]
    assert [kinds(chain) for chain in attempted] == ["ATTEMPTED ALLOW EXECUTED"] * 2
    assert all(payload["preview_of"] == ask.query_id for chain in attempted for _, payload in chain)


@pytest.mark.parametrize(
    ("decision", "rule", "words"),
    [
        (GateDenied(by="ben", note="not on a Friday"), "approval_denied", "ben refused this write: not on a Friday"),
        (GateDenied(), "approval_denied", "a reviewer refused this write"),
        (GateDenied(by="\x1b[2J", note="\u202eevil\n\0"), "approval_denied", "\\x1b[2J refused this write: \\u202eevil\\n\\x00"),
        (Expired(), "approval_expired", "running it again asks again"),
    ],
    ids=["denied", "by nobody", "hostile", "expired"],
)
async def test_a_refusal_is_recorded_as_one(
    decision: GateAnswer, rule: str, words: str, postgres: Postgres, tmp_path: Path
) -> None:
    dsn, gate = postgres.create_database(TABLES), ToldGate()

    async def decide(_: Wait) -> GateAnswer:
        return decision

    gate.on_wait = decide
    async with held(gate, dsn, tmp_path, policy_text()) as there:
        answer = await there.query()
        assert isinstance(answer, Refused)
        assert (answer.denied.policy_rule, answer.denied.statement_type) == (rule, "UPDATE")
        assert words in answer.denied.reason
        assert there.completed[-1].denied == answer.denied  # what the deny webhook is given
        assert there.completed[-1].audit_id == answer.audit_id
    assert balances(postgres, dsn) == 50500
    assert [kinds(chain) for chain in own_chains(tmp_path)] == ["ATTEMPTED DENY"]
    assert gate.outcomes == []


async def test_undecided_and_unreachable_leave_no_decision(postgres: Postgres, tmp_path: Path) -> None:
    dsn, gate = postgres.create_database(TABLES), ToldGate()

    async def away(_: GateAsk) -> GateAnswer:
        raise Unavailable("it answered status 500", retry_after_s=7)

    async with held(gate, dsn, tmp_path, policy_text(hold_s=0)) as there:
        pending = await there.query()
        assert isinstance(pending, OnHold)
        assert pending.pending == Pending(approval_id="request-1", expires_at=FAR)
        assert pending.resume == (("sql", WRITE), ("intent", "test"))
        gate.on_ask = away
        unavailable = await there.query()
        assert isinstance(unavailable, OnHold)
        assert (unavailable.pending, unavailable.retry_after_s) == (None, 7)
        assert "it answered status 500" in unavailable.reason
        assert [completed.decision for completed in there.completed] == ["HELD", "HELD"]
    assert gate.waits == []
    assert balances(postgres, dsn) == 50500
    assert [kinds(chain) for chain in own_chains(tmp_path)] == ["ATTEMPTED", "ATTEMPTED"]


async def test_what_is_denied_or_read_or_masked_away_is_never_asked(postgres: Postgres, tmp_path: Path) -> None:
    dsn, gate = postgres.create_database(TABLES), ToldGate()
    text = policy_text().replace("block_ddl: false", "block_ddl: true") + "column_masks: {accounts: {owner: null-out}}"
    async with held(gate, dsn, tmp_path, text) as there:
        for sql in (
            "DELETE FROM secrets",
            "TRUNCATE log",
            "UPDATE accounts SET balance = 1 WHERE owner = 'x'",
            "DELETE FROM nosuch",
        ):
            answer = await there.query(sql)
            assert not isinstance(answer, Answered | OnHold), sql
        for sql in ("SELECT 1", "EXPLAIN UPDATE accounts SET balance = 1", "SHOW timezone"):
            assert isinstance(await there.query(sql), Answered), sql
    assert gate.asked == []


async def test_a_policy_tightened_meanwhile_decides(postgres: Postgres, tmp_path: Path) -> None:
    dsn, gate = postgres.create_database(TABLES), ToldGate()
    async with held(gate, dsn, tmp_path, policy_text()) as there:

        async def tighten(_: Wait) -> GateAnswer:
            there.database.enforce(policy("table_access: {default: read}"))
            return Approved(by="ann")

        gate.on_wait = tighten
        answer = await there.query()
        assert isinstance(answer, Refused)
        assert answer.denied.policy_rule == "table_access"
        assert (await told(gate))[0].outcome == "failed"
    assert balances(postgres, dsn) == 50500
    assert [kinds(chain) for chain in own_chains(tmp_path)] == ["ATTEMPTED DENY"]


async def test_approvals_switched_off_meanwhile_let_the_approved_write_run(postgres: Postgres, tmp_path: Path) -> None:
    dsn, gate = postgres.create_database(TABLES), ToldGate()
    async with held(gate, dsn, tmp_path, policy_text()) as there:

        async def loosen(_: Wait) -> GateAnswer:
            there.database.enforce(policy("table_access: {default: read_write}"))
            return Approved(by="ann")

        gate.on_wait = loosen
        assert isinstance(await there.query(), Answered)


async def test_a_database_taken_away_meanwhile_is_not_written(postgres: Postgres, tmp_path: Path) -> None:
    dsn, gate = postgres.create_database(TABLES), ToldGate()
    async with held(gate, dsn, tmp_path, policy_text()) as there:

        async def take_away(_: Wait) -> GateAnswer:
            there.gateway.databases = {"other": there.database}
            return Approved(by="ann")

        gate.on_wait = take_away
        answer = await there.query()
        assert isinstance(answer, Refused)
        assert "taken away" in answer.denied.reason
    assert balances(postgres, dsn) == 50500


@pytest.mark.parametrize(
    ("sql", "at_most", "touched"),
    [
        ("UPDATE accounts SET balance = 0 WHERE id <= 3", 3, None),
        ("UPDATE accounts SET balance = 0 WHERE id <= 3", 2, 3),
        ("DELETE FROM accounts WHERE id = 1 RETURNING id", 6, None),  # and five of log, by cascade
        ("DELETE FROM accounts WHERE id = 1 RETURNING id", 5, 6),
        ("WITH d AS (DELETE FROM log RETURNING id) INSERT INTO log (said) SELECT 'x' FROM d", 99, 100),
        ("WITH d AS (DELETE FROM log RETURNING id) SELECT count(*) FROM d", 49, 50),
        ("MERGE INTO accounts a USING (SELECT 1 AS i) s ON a.id = s.i WHEN MATCHED THEN UPDATE SET balance = 0", 0, 1),
        ("MERGE INTO accounts a USING (SELECT 1 AS i) s ON a.id = s.i WHEN MATCHED THEN UPDATE SET balance = 0", 1, None),
        ("INSERT INTO log (said) SELECT 'y' FROM accounts", 100, None),
        ("INSERT INTO log (said) SELECT 'y' FROM accounts", 99, 100),
        ("INSERT INTO watched VALUES (1)", 3, None),  # one row, and two by its trigger
        ("INSERT INTO watched VALUES (1)", 2, 3),
        ("TRUNCATE log", 1000, "a statement of this kind"),
        ("CREATE TABLE made AS SELECT 1 AS one", 1000, "a statement of this kind"),
    ],
)
async def test_a_bound_on_rows_holds_for_all_that_is_touched(
    sql: str, at_most: int, touched: int | str | None, postgres: Postgres, tmp_path: Path
) -> None:
    trigger = """
    CREATE TABLE watched (id integer);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO public.log (said) VALUES ('a'), ('b'); RETURN NEW; END $$;
    CREATE TRIGGER watch AFTER INSERT ON watched FOR EACH ROW EXECUTE FUNCTION note();
    """
    dsn, gate = postgres.create_database(TABLES + trigger), ToldGate()
    tables = "SELECT md5(string_agg(t::text, '' ORDER BY t::text)) FROM (SELECT * FROM accounts) t"
    before = postgres.execute(tables, dsn), postgres.execute("SELECT count(*) FROM log", dsn)

    async def bounded(_: GateAsk) -> GateAnswer:
        return Approved(by="ann", rows_at_most=at_most)

    gate.on_ask = bounded
    async with held(gate, dsn, tmp_path, policy_text() + "functions: {allow: [public.note]}") as there:
        answer = await there.query(sql)
        await told(gate)
    after = postgres.execute(tables, dsn), postgres.execute("SELECT count(*) FROM log", dsn)
    if touched is None:
        assert isinstance(answer, Answered), answer
        assert gate.outcomes[0].outcome == "executed"
        assert after != before
        return
    assert isinstance(answer, Broken), answer
    assert answer.sqlstate == "approval_bound"
    assert (f"touched {touched} rows and at most {at_most}" if isinstance(touched, int) else touched) in answer.message
    assert after == before
    assert gate.outcomes[0].outcome == "failed"
    [chain] = own_chains(tmp_path)
    assert kinds(chain) == "ATTEMPTED ALLOW FAILED"
    assert chain[2][1]["error_class"] == "approval_bound"


async def test_the_gate_is_told_that_containment_holds_a_write_too(postgres: Postgres, tmp_path: Path) -> None:
    dsn, gate = postgres.create_database(TABLES), ToldGate()
    gate.on_ask = approve

    async def note() -> None:
        await trio.lowlevel.checkpoint()

    text = policy_text(more="taint: {sources: [log], contain: {writes: hold}}\n")
    async with held(gate, dsn, tmp_path, text) as there:
        await there.query()
        assert gate.asked[-1].contained  # nowhere is kept who has read what
        taints = KeptTaints(tmp_path / "taints.json", by_token=False, was_kept=False, note=note)
        there.gateway.containing = Containing(taints)
        await there.query()
        assert not gate.asked[-1].contained
        await there.query("INSERT INTO accounts (id, owner) SELECT 9000 + id, said FROM log WHERE id = 1")
        assert gate.asked[-1].contained  # it carries foreign text itself
        await there.query("SELECT said FROM log")
        await there.query()
        assert gate.asked[-1].contained
    assert len(gate.asked) == 4
