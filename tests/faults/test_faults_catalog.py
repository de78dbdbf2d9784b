"""The owner changes the schema while agents ask: nothing that is hidden is told, and honest answers stay right.

The gateway's catalog is as old as its last reading: each of these statements was decided about another database than it meets.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from gatewayd.corridor.answer import Answer, Answered, Broken, Refused
from tests.conftest import Postgres
from tests.daemon.daemon_rig import chains, kinds
from tests.faults.corridor import Corridor, corridor

CANARY = "7777-canary"
POLICY = """
table_access:
  default: read
  tables: {hidden: deny, written: read_write}
guardrails: {block_ddl: true}
"""
SCHEMA = f"""
CREATE TABLE hidden (id int, note text); INSERT INTO hidden VALUES (1, '{CANARY}');
CREATE TABLE shown (id int, note text); INSERT INTO shown VALUES (1, 'shown');
CREATE TABLE written (note text);
CREATE TABLE parted (id int, note text) PARTITION BY LIST (id);
CREATE VIEW v AS SELECT id, note FROM shown;
CREATE TABLE a (id int, note text); INSERT INTO a VALUES (1, 'of a');
CREATE TABLE b (id int); INSERT INTO b VALUES (1);
"""
ASIDE = "ALTER TABLE shown RENAME TO aside; CREATE VIEW shown AS SELECT * FROM hidden"
BACK = "DROP VIEW shown; ALTER TABLE aside RENAME TO shown"
CHANGES = {
    "replace view": ("SELECT note FROM v", "CREATE OR REPLACE VIEW v AS SELECT id, note FROM hidden"),
    "another kind of view": ("SELECT note FROM v", "DROP VIEW v; CREATE MATERIALIZED VIEW v AS SELECT * FROM hidden"),
    "in place of a table": ("SELECT note FROM shown", ASIDE),
    "overload": (
        "SELECT upper(note) FROM shown",
        """CREATE FUNCTION upper(varchar) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT note FROM hidden';
           DROP VIEW v; ALTER TABLE shown ALTER COLUMN note TYPE varchar""",
    ),
    "attach partition": ("SELECT note FROM parted", "ALTER TABLE parted ATTACH PARTITION hidden DEFAULT"),
    "inherit": ("SELECT note FROM shown", "ALTER TABLE hidden INHERIT shown"),
    "written through a view": (
        "INSERT INTO written SELECT note FROM v RETURNING note",
        "CREATE OR REPLACE VIEW v AS SELECT id, note FROM hidden",
    ),
    "error text": ("SELECT id FROM v", "CREATE OR REPLACE VIEW v AS SELECT note::int AS id, note FROM hidden"),
    "plan": (
        "EXPLAIN SELECT * FROM v",
        f"CREATE OR REPLACE VIEW v AS SELECT id, note FROM shown WHERE note <> '{CANARY}' AND EXISTS (SELECT FROM hidden)",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
async def test_a_changed_catalog_gives_nothing_away(postgres: Postgres, tmp_path: Path, what: str) -> None:
    sql, change = CHANGES[what]
    dsn = postgres.create_database(SCHEMA)
    async with corridor(dsn, tmp_path, POLICY) as there:
        before = await there.query(sql)
        assert isinstance(before, Answered), before
        postgres.execute(change, dsn)
        answer = await there.query(sql)
        assert CANARY not in str(answer)
        assert isinstance(answer, Broken | Refused), answer
        if isinstance(answer, Broken):
            assert answer.sqlstate == "40001"
        assert CANARY not in str(await there.query(sql))
        assert postgres.query(f"SELECT count(*) AS n FROM written WHERE note = '{CANARY}'", dsn) == [{"n": 0}]
    assert {kinds(chain) for chain in chains(tmp_path).values()} <= {
        "ATTEMPTED ALLOW EXECUTED",
        "ATTEMPTED ALLOW FAILED",
        "ATTEMPTED DENY",
    }


@pytest.mark.parametrize(
    ("sql", "change", "rows"),
    [
        (
            "SELECT * FROM b JOIN a USING (id)",
            "ALTER TABLE b ADD COLUMN note text DEFAULT 'of b'",
            [{"id": 1, "note": "of b", "note_2": "of a"}],
        ),
        (
            "SELECT * FROM a JOIN shown USING (id)",
            "ALTER TABLE a DROP COLUMN note",
            [{"id": 1, "note": "shown"}],
        ),
        ("SELECT * FROM a, b", "ALTER TABLE b RENAME COLUMN id TO of_b", [{"id": 1, "note": "of a", "of_b": 1}]),
        ("SELECT note FROM v", "CREATE OR REPLACE VIEW v AS SELECT id, upper(note) AS note FROM shown", [{"note": "SHOWN"}]),
        ("INSERT INTO written VALUES ('x') RETURNING *", "ALTER TABLE written ADD COLUMN n int", [{"note": "x", "n": None}]),
    ],
    ids=["add column", "drop column", "rename column", "replace view", "write"],
)  # fmt: skip
@pytest.mark.parametrize("hides", [True, False], ids=["something hidden", "nothing hidden"])
async def test_an_honest_change_gets_its_answer(
    postgres: Postgres, tmp_path: Path, sql: str, change: str, rows: list[Any], hides: bool
) -> None:
    dsn = postgres.create_database(SCHEMA)
    async with corridor(dsn, tmp_path, POLICY if hides else POLICY.replace("hidden: deny, ", "")) as there:
        assert isinstance(await there.query(sql), Answered)
        postgres.execute(change, dsn)
        answer = await there.query(sql)
        assert isinstance(answer, Answered), answer
        assert [msgspec.json.decode(row) for row in answer.result.rows] == rows


FLIPS = {
    "view": (
        "SELECT note FROM v",
        "CREATE OR REPLACE VIEW v AS SELECT id, note FROM hidden",
        "CREATE OR REPLACE VIEW v AS SELECT id, note FROM shown",
    ),
    "tables": ("SELECT note FROM shown", ASIDE, BACK),
    "kin": ("SELECT note FROM shown", "ALTER TABLE hidden INHERIT shown", "ALTER TABLE hidden NO INHERIT shown"),
    "partition": (
        "SELECT note FROM parted",
        "ALTER TABLE parted ATTACH PARTITION hidden DEFAULT",
        "ALTER TABLE parted DETACH PARTITION hidden",
    ),
    "write": (
        "INSERT INTO written SELECT note FROM v",
        "CREATE OR REPLACE VIEW v AS SELECT id, note FROM hidden",
        "CREATE OR REPLACE VIEW v AS SELECT id, note FROM shown",
    ),
}


async def raced(postgres: Postgres, there: Corridor, dsn: str, what: str, seconds: float) -> tuple[int, int]:
    """Agents ask while the owner flips something forth and back; how many answers were rows, and how many were not."""
    sql, forth, back = FLIPS[what]
    answered = other = 0
    is_over = False

    async def flip() -> None:
        nonlocal is_over
        with trio.move_on_after(seconds):
            while True:
                await trio.to_thread.run_sync(postgres.execute, forth, dsn)
                await trio.to_thread.run_sync(postgres.execute, back, dsn)
                await there.database.refresher.changed()  # else what was refused stays refused until the next reading
        is_over = True

    async def agent() -> None:
        nonlocal answered, other
        while not is_over:
            answer: Answer = await there.query(sql)
            assert CANARY not in str(answer)
            answered += isinstance(answer, Answered)
            other += not isinstance(answer, Answered)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(flip)
        for _ in range(3):
            nursery.start_soon(agent)
    return answered, other


@pytest.mark.soak
@pytest.mark.parametrize("what", FLIPS)
async def test_raced_with_the_owner_nothing_hidden_is_told(postgres: Postgres, tmp_path: Path, what: str) -> None:
    dsn = postgres.create_database(SCHEMA)
    async with corridor(dsn, tmp_path, POLICY) as there:
        answered, other = await raced(postgres, there, dsn, what, 20)
        assert min(answered, other) > 3, "the race had one side only"
        assert postgres.query(f"SELECT count(*) AS n FROM written WHERE note = '{CANARY}'", dsn) == [{"n": 0}]
