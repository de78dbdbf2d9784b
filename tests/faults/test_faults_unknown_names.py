"""A name that does not exist is the database's to tell, and no denial; what is hidden is told as ever."""

from pathlib import Path

import pytest

from gatewayd.corridor.answer import Answer, Answered, Broken, Refused
from gatewayd.corridor.gateway import Completed
from tests.conftest import Postgres
from tests.daemon.daemon_rig import chains, kinds
from tests.faults.corridor import Corridor, corridor

POLICY = """
table_access:
  default: read
  tables: {hidden: deny, written: read_write, "gone": deny}
"""
CLOSED = "table_access: {default: deny, tables: {orders: read}}\n"
SCHEMA = """
CREATE TABLE orders (id int, note text); INSERT INTO orders VALUES (1, 'x');
CREATE TABLE hidden (id int); CREATE TABLE written (id int);
"""
UNKNOWN = {
    "table": ("SELECT * FROM ordes", "42P01", 'relation "ordes" does not exist', "There is orders.", 15),
    "table of a schema": ("SELECT * FROM nowhere.orders", "42P01", 'relation "nowhere.orders" does not exist', None, 15),
    "function": ("SELECT uper(note) FROM orders", "42883", "function uper(text) does not exist", "There is upper.", 8),
    "operator": ("SELECT id ==> 1 FROM orders", "42883", "operator does not exist: integer ==> integer", None, 11),
    "type": ("SELECT id::intt FROM orders", "42704", 'type "intt" does not exist', None, 12),
    "in an insert": ("INSERT INTO writen VALUES (1)", "42P01", 'relation "writen" does not exist', "There is written.", 13),
    "in a plan": ("EXPLAIN SELECT * FROM ordes", "42P01", 'relation "ordes" does not exist', "There is orders.", 23),
    "beside a column": ("SELECT nothing FROM orders", "42703", 'column "nothing" does not exist', None, 8),
}


def told(answer: Answer) -> tuple[str, str]:
    assert isinstance(answer, Broken), answer
    return answer.sqlstate, answer.message


@pytest.mark.parametrize("policy", [POLICY, CLOSED], ids=["a table denied", "closed"])
async def test_the_database_tells_of_names_that_do_not_exist(postgres: Postgres, tmp_path: Path, policy: str) -> None:
    completed: list[Completed] = []
    async with corridor(postgres.create_database(SCHEMA), tmp_path, policy) as there:
        there.gateway.observers += (completed.append,)
        for what, (sql, sqlstate, message, hint, position) in UNKNOWN.items():
            answer = await there.query(sql)
            assert told(answer) == (sqlstate, message), what
            assert isinstance(answer, Broken)
            if not (policy.startswith(CLOSED) and "writ" in sql):  # a name that this agent may not know is not proposed
                assert (answer.hint or "").startswith(hint or "") or sqlstate == "42883", (what, answer)
            assert answer.position == position, what
    assert {kinds(chain) for chain in chains(tmp_path).values()} == {"ATTEMPTED ALLOW FAILED"}
    assert all(each.denied is None for each in completed)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM hidden",
        "SELECT * FROM hidden, nowhere",
        "SELECT nosuch(id) FROM hidden",
        "SELECT pg_read_file('x'), nosuch(1)",
        "SELECT * FROM gone",
        "INSERT INTO orders SELECT nosuch(1)",
        "DELETE FROM nowhere",
        "DROP TABLE nowhere",
        "CREATE TABLE made AS SELECT * FROM nowhere",
        "TRUNCATE nowhere",
        "SELECT " + ", ".join(f"f{number}()" for number in range(100)),
    ],
)
async def test_what_is_refused_for_another_reason_stays_refused(postgres: Postgres, tmp_path: Path, sql: str) -> None:
    async with corridor(postgres.create_database(SCHEMA), tmp_path, POLICY) as there:
        assert isinstance(await there.query(sql), Refused), sql
    assert {kinds(chain) for chain in chains(tmp_path).values()} == {"ATTEMPTED DENY"}


async def test_a_hidden_name_is_not_proposed(postgres: Postgres, tmp_path: Path) -> None:
    async with corridor(postgres.create_database(SCHEMA), tmp_path, POLICY) as there:
        answer = await there.query("SELECT * FROM hiden")
        assert isinstance(answer, Broken)
        assert "hidden" not in str(answer)


async def _made_meanwhile(there: Corridor, postgres: Postgres, dsn: str, made: str, sql: str) -> Answer:
    assert isinstance(await there.query(sql), Broken)  # the catalog was just read; the next reading for a name is 5 s away
    postgres.execute(made, dsn)
    return await there.query(sql)


async def test_what_exists_after_all_is_decided_with_a_newer_catalog(postgres: Postgres, tmp_path: Path) -> None:
    dsn = postgres.create_database(SCHEMA)
    async with corridor(dsn, tmp_path, POLICY) as there:
        made = "CREATE TABLE fresh AS SELECT 5 AS id; CREATE VIEW fresh_view AS SELECT * FROM hidden"
        answer = await _made_meanwhile(there, postgres, dsn, made, "SELECT * FROM fresh")
        assert isinstance(answer, Broken | Answered)  # Broken: it may be made and not be known for some seconds
        assert not isinstance(answer, Broken) or answer.sqlstate == "42501"
        await there.database.refresher.changed()
        assert isinstance(await there.query("SELECT * FROM fresh"), Answered)
        assert isinstance(await there.query("SELECT * FROM fresh_view"), Refused)


async def test_what_is_only_parsed_does_not_run(postgres: Postgres, tmp_path: Path) -> None:
    """The function exists, the gateway does not know it: nothing of it runs, whatever it does."""
    dsn = postgres.create_database(SCHEMA)
    async with corridor(dsn, tmp_path, POLICY) as there:
        made = (
            "CREATE FUNCTION evil() RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN RAISE EXCEPTION 'it ran'; END $$;"
            "CREATE FUNCTION evil_now() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE EXCEPTION 'it ran'; END $$"
        )
        for sql in ("SELECT evil()", "SELECT evil_now()", "EXPLAIN SELECT evil_now()"):
            answer = (
                await _made_meanwhile(there, postgres, dsn, made if "evil()" in sql else "SELECT 1", sql)
                if sql == ("SELECT evil()")
                else await there.query(sql)
            )
            assert "it ran" not in str(answer), answer
            assert isinstance(answer, Broken | Refused)
