"""Masks over the columns of an answer: what they change, what they leave, and what happens where they cannot be put on."""

import hmac

import msgspec
import pytest

from gatewayd.masking.plan import plan
from gatewayd.masking.results.post_exec import PostExec
from gatewayd.policy.decide.decision import decide
from gatewayd.policy.decide.outcomes import Allowed, Permit
from gatewayd.postgres.execute.result import UNMASKABLE, ExecutionFailed, Result
from gatewayd.postgres.execute.run import execute
from gatewayd.sql.facts.analyze import analyze
from tests.conftest import Postgres
from tests.masking.masking_rig import SALT, Rig, rig
from tests.masking.masking_shop import HIDING, SCHEMA, SHOWING, data

LIMITED = HIDING + "limits: {max_rows: 20, max_bytes: 3000}\n"
KEYED = LIMITED.replace("email: full-redact, ssn: full-redact", "email: consistent-hash, ssn: consistent-hash")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, email, repeat('x', 100) AS x FROM users ORDER BY id",
        "SELECT id, email, repeat('x', 170) AS x FROM users ORDER BY id",
        "SELECT id, email, email, repeat('x', 2950) AS x FROM users ORDER BY id",
        "SELECT * FROM users ORDER BY id",
        "UPDATE users SET name = name RETURNING id, ssn, repeat('x', 100) AS x",
        "WITH u AS (UPDATE users SET name = name RETURNING id, ssn) SELECT *, repeat('x', 100) AS x FROM u ORDER BY id",
    ],
)
@pytest.mark.parametrize("policy", [LIMITED, KEYED], ids=["on the server", "keyed"])
async def test_the_limits_do_not_count_masked_bytes(postgres: Postgres, policy: str, sql: str) -> None:
    """One value of 10 kB in one database, short ones in the other."""
    long = "UPDATE users SET email = repeat('e', 10000), ssn = repeat('s', 10000) WHERE id IN (2, 5);"
    answers = []
    for more in ("", long):
        async with rig(postgres.create_database(SCHEMA + data(7) + more), policy, rewriting=False) as ask:
            outcome = await ask(sql)
            assert isinstance(outcome, Result), outcome
            answers.append((sorted(outcome.rows), outcome.truncated))
    if policy == KEYED or sql.startswith(("UPDATE", "WITH")):  # the update with long values moves its rows
        assert [len(rows) for rows, _ in answers] == [len(answers[0][0])] * 2
    else:
        assert answers[0] == answers[1]
    assert sum(map(len, answers[0][0])) <= 3000


async def test_a_huge_text_is_not_fetched_to_be_hashed(postgres: Postgres) -> None:
    """It would have to be held whole, far above `max_bytes`; the answer ends before its row."""
    dsn = postgres.create_database(
        "CREATE TABLE t (id int, a text, b text); INSERT INTO t VALUES (1, 'x', NULL), (2, repeat('x', 8388607), 'y'),"
        "(3, repeat('x', 4194304), repeat('x', 4194305)), (4, 'x', 'y');"
    )
    async with rig(dsn, "column_masks: {t: {a: consistent-hash, b: consistent-hash}}", rewriting=False) as ask:
        answer = await ask("SELECT * FROM t ORDER BY id")
        assert isinstance(answer, Result)
        assert ([row["id"] for row in await ask.rows("SELECT * FROM t ORDER BY id")], answer.truncated) == ([1, 2], True)
        assert [row["id"] for row in await ask.rows("SELECT id, a FROM t ORDER BY id")] == [1, 2, 3, 4]


async def test_rows_keep_the_order_they_lie_in(postgres: Postgres) -> None:
    """PostgreSQL would rather read the index, and in its order the rows would tell that of the masked column."""
    dsn = postgres.create_database(
        "CREATE TABLE people (id int PRIMARY KEY, ssn text, about text);"
        "INSERT INTO people SELECT n, md5(n::text), repeat('x', 1500) FROM generate_series(1, 2000) n;"
        "CREATE INDEX ON people (ssn) INCLUDE (id); CREATE INDEX ON people (ssn) WHERE id < 50;"
        "CREATE MATERIALIZED VIEW numbers AS SELECT id, ssn AS number FROM people; CREATE INDEX ON numbers (number, id);"
    )
    # As it would be for a large table that is read seldom: not for the plan's cost to decide here.
    for kind in ("seqscan", "bitmapscan"):
        off = f"'ALTER DATABASE %I SET enable_{kind} = off', current_database()"
        postgres.execute(f"DO $$ BEGIN EXECUTE format({off}); END $$", dsn)
    assert "Index Only Scan" in postgres.execute("EXPLAIN SELECT id, ssn FROM people", dsn)
    policy = "column_masks: {people: {ssn: full-redact}}\nlimits: {max_rows: 5}\n"
    async with rig(dsn, policy, rewriting=False) as ask:
        for sql in (
            "SELECT id FROM people",
            "SELECT id, ssn FROM people",
            "SELECT id, ssn FROM people WHERE ssn IS NOT NULL",
            "SELECT id FROM people WHERE id < 50",
            "SELECT q.id FROM (SELECT id, ssn FROM people OFFSET 0) q",
            "SELECT id, number FROM numbers",
        ):
            assert [row["id"] for row in await ask.rows(sql)] == [1, 2, 3, 4, 5], sql


async def planned(ask: Rig, sql: str) -> tuple[Permit, PostExec]:
    decision = decide(analyze(sql), ask.policy, ask.catalog)
    assert isinstance(decision, Allowed)
    made = plan(decision.statement, ask.policy, ask.catalog, salt=b"salt", rewriting=False)
    assert isinstance(made, PostExec)
    return Permit(decision, "query", "audit"), made


async def test_columns_that_are_no_longer_those_are_not_shown(postgres: Postgres) -> None:
    """The catalog was of another moment: a masked column has got another name since, by somebody else."""
    dsn = postgres.create_database(SCHEMA + data(7))
    for policy in (HIDING, SHOWING):
        async with rig(dsn, policy, rewriting=False) as ask:
            read = await planned(ask, "SELECT * FROM users")
            write = await planned(ask, "UPDATE users SET name = 'changed' WHERE id = 3 RETURNING *")
            postgres.execute("ALTER TABLE users RENAME ssn TO number", dsn)
            for permit, masking in (read, write):
                with pytest.raises(ExecutionFailed) as caught:
                    await execute(ask.pool, permit, ask.policy.limits, ask.catalog, masking)
                assert caught.value.sqlstate == "42703"
            postgres.execute("ALTER TABLE users RENAME number TO ssn; ALTER TABLE users ADD more text DEFAULT 'new'", dsn)
            permit, masking = read
            result = await execute(ask.pool, permit, ask.policy.limits, ask.catalog, masking)
            assert len(result.rows) > 1
            assert not any(b"new" in row for row in result.rows)
            postgres.execute("ALTER TABLE users DROP more", dsn)
    assert postgres.execute("SELECT name FROM users WHERE id = 3", dsn).strip() == "user 3"


async def test_columns_that_only_the_server_can_name_are_held_against_the_proof(postgres: Postgres) -> None:
    sql = "SELECT *, (SELECT n FROM generate_series(1, 1) n) FROM users"
    dsn = postgres.create_database(SCHEMA + data(7))
    async with rig(dsn, HIDING, rewriting=False) as ask:
        permit, masking = await planned(ask, sql)
        wrong = msgspec.structs.replace(masking, width=masking.width + 1)
        with pytest.raises(ExecutionFailed) as caught:
            await execute(ask.pool, permit, ask.policy.limits, ask.catalog, wrong)
        assert caught.value.sqlstate == UNMASKABLE


async def test_rows_that_cannot_be_masked_are_withheld_and_writes_undone(postgres: Postgres) -> None:
    """A value of the statement's own looks like the mark of a masked one."""
    dsn = postgres.create_database(SCHEMA + data(7))
    async with rig(dsn, SHOWING, rewriting=False) as ask:
        mark = r"E'\001gatewayd'"
        read = await ask(f"SELECT ssn, {mark} AS more FROM users")
        assert isinstance(read, Result)
        assert read.rows == ()
        assert read.withheld is not None
        write = await ask(f"UPDATE users SET name = 'changed' WHERE id = 3 RETURNING ssn, {mark}")
        assert getattr(write, "sqlstate", None) == UNMASKABLE
        near = await ask.rows(r"SELECT ssn, E'\001' AS a, '\u0001gatewayd' AS b FROM users WHERE id = 3")
        assert [(row["a"], row["b"]) for row in near] == [("\1", r"\u0001gatewayd")]
    assert postgres.execute("SELECT name FROM users WHERE id = 3", dsn).strip() == "user 3"


async def test_every_other_byte_stays(postgres: Postgres) -> None:
    """The text of a json column as it was stored, names with a quote, equal names: beside masks of both kinds."""
    stored = '{"k" : 1,"k":"\\ud800"}\n'
    dsn = postgres.create_database(
        'CREATE TABLE t (id int, "a}," text, doc json, "ü:," text, mail text);'
        f"INSERT INTO t VALUES (1, 'one', E'{stored.replace(chr(92), chr(92) * 2)}', 'two', 'ü'), (2, NULL, 'null', NULL, NULL);"
    )
    policy = """column_masks: {t: {'a},': full-redact, 'ü:,': consistent-hash, mail: {t: partial, keepEnd: 1}}}"""
    async with rig(dsn, policy, rewriting=False) as ask:
        answer = await ask('SELECT *, mail, "ü:,", id FROM t ORDER BY id')
    assert isinstance(answer, Result), answer
    digest = hmac.new(SALT, b"two", "sha256").hexdigest()[:32]
    shown = f'{{"id":1,"a}},":"***","doc":{stored},"ü:,":"{digest}","mail":"•","mail_2":"•","ü:,_2":"{digest}","id_2":1}}'
    nulls = '{"id":2,"a},":null,"doc":null,"ü:,":null,"mail":null,"mail_2":null,"ü:,_2":null,"id_2":2}'
    assert answer.rows == (shown.replace("\\n", "\n").encode(), nulls.encode())


async def test_columns_may_be_called_as_the_wrapper_calls_things(postgres: Postgres) -> None:
    dsn = postgres.create_database(
        "CREATE TABLE t (q text, s text, j text, v0 text, r int); INSERT INTO t VALUES ('a', 'b', 'c', 'd', 5);"
    )
    policy = "column_masks: {t: {q: full-redact, s: {t: partial, glyph: '*'}, v0: consistent-hash}}\nlimits: {max_rows: 9}\n"
    digest = hmac.new(SALT, b"d", "sha256").hexdigest()[:32]
    expected = {"q": "***", "s": "*", "j": "c", "v0": digest, "r": 5}
    async with rig(dsn, f"{policy}table_access: {{default: read_write}}", rewriting=False) as ask:
        for sql in (
            "SELECT * FROM t",
            "SELECT * FROM t AS q",
            "SELECT s.* FROM t AS s",
            "WITH r AS (SELECT * FROM t) SELECT * FROM r AS j",
            "SELECT * FROM t FOR SHARE",
            "UPDATE t AS q SET r = 5 WHERE q.r = 5 RETURNING q.*",
            "WITH w AS (UPDATE t SET r = 5 WHERE r = 5 RETURNING *) SELECT * FROM w",
        ):
            assert await ask.rows(sql) == [expected], sql


async def test_an_error_text_carries_no_value(postgres: Postgres) -> None:
    async with rig(postgres.create_database(SCHEMA + data(7)), HIDING, rewriting=False) as ask:
        outcome = await ask("SELECT email, CAST(name AS int) FROM users")
        assert getattr(outcome, "sqlstate", "") == "22P02"
        assert "user 1" not in getattr(outcome, "message", "")
