"""Masks over rows that have come from the database: what they change, what they leave, and what happens where they cannot."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.masking.plan import plan
from gatewayd.masking.results import PostExec, RowMask, WrongShape
from gatewayd.masking.transforms import transform
from gatewayd.policy.decide import decide
from gatewayd.policy.decision import Allowed, Permit
from gatewayd.policy.model import FullRedact
from gatewayd.postgres.execute import execute
from gatewayd.postgres.result import UNMASKABLE, ExecutionFailed, Result
from gatewayd.sql.analyze import analyze
from tests.conftest import Postgres
from tests.masking.masking_rig import Rig, rig
from tests.masking.masking_shop import HIDING, SCHEMA, data

REDACT = transform(FullRedact(), "other", b"salt")


def over(width: int, *places: tuple[int, str]) -> PostExec:
    return PostExec(width, tuple((place, name, REDACT) for place, name in places), ())


@pytest.mark.parametrize(
    ("row", "masked"),
    [
        (b'{"a":1,"b":"x","c":null}', b'{"a":1,"b":"***","c":null}'),
        (b'{"a":1.50,"b":-7,"c":"NaN"}', b'{"a":1.50,"b":"***","c":"NaN"}'),
        (b'{"a":"\\"}{,\\\\","b":"\\",\\"c\\":1","c":true}', b'{"a":"\\"}{,\\\\","b":"***","c":true}'),
        (b'{"a":"\xc3\xbc\\u0001","b":"","c":""}', b'{"a":"\xc3\xbc\\u0001","b":"***","c":""}'),
        (b'{"a":[1, [2]],"b":{"b": "]"},"c":[]}', b'{"a":[1, [2]],"b":"***","c":[]}'),
        # The text of a json column, as it was stored: blanks, equal keys, half a surrogate pair.
        (b'{"a": {"k" : 1,"k":"\\ud800"}\n ,"b":"x","c":  7 }', b'{"a": {"k" : 1,"k":"\\ud800"}\n ,"b":"***","c":  7 }'),
        (b'{"a":1,"b": {"x": 1} ,"c":2}', b'{"a":1,"b": "***" ,"c":2}'),
        (b'{"a":1,"b":null,"c":2}', b'{"a":1,"b":null,"c":2}'),
    ],
)
def test_every_other_byte_stays(row: bytes, masked: bytes) -> None:
    assert RowMask(over(3, (1, "b")))(row) == masked


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(json_values, min_size=1, max_size=8), st.data())
def test_any_row_is_masked_at_its_places_alone(values: list[object], draw: st.DataObject) -> None:
    names = [f"c{number}" for number in range(len(values))]
    places = draw.draw(st.sets(st.sampled_from(range(len(values))), min_size=1))
    ascii_only, compact = draw.draw(st.booleans()), draw.draw(st.booleans())
    separators = (",", ":") if compact else (", ", ": ")

    def row(of: list[tuple[str, object]]) -> bytes:
        fields = (
            json.dumps(name) + ":" + json.dumps(value, ensure_ascii=ascii_only, separators=separators) for name, value in of
        )
        return ("{" + ",".join(fields) + "}").encode()

    mask = RowMask(over(len(values), *((place, names[place]) for place in sorted(places))))
    expected = ["***" if place in places and value is not None else value for place, value in enumerate(values)]
    assert mask(row(list(zip(names, values, strict=True)))) == row(list(zip(names, expected, strict=True)))


@pytest.mark.parametrize(
    ("masking", "row"),
    [
        (over(2, (1, "b")), b'{"a":1}'),
        (over(2, (1, "b")), b'{"a":1,"b":2,"c":3}'),
        (over(2, (1, "b")), b'{"a":1,"mail":"x"}'),
        (over(2, (1, "b")), b'{"a":1,"c_2":"x"}'),
        (over(1, (0, "b")), b"{}"),
        (over(1, (0, "b")), b"[1]"),
        (over(1, (0, "b")), b'{"b":1'),
        (over(1, (0, "b")), b'{"b":[1}'),
    ],
)
def test_a_row_of_another_shape_is_not_shown(masking: PostExec, row: bytes) -> None:
    with pytest.raises(WrongShape):
        RowMask(masking)(row)


def test_a_name_may_have_its_number() -> None:
    assert RowMask(over(2, (0, "b"), (1, "b")))(b'{"b":1,"b_2":2}') == b'{"b":"***","b_2":"***"}'


LIMITED = HIDING + "limits: {max_rows: 20, max_bytes: 3000}\n"


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
async def test_the_limits_do_not_count_masked_bytes(postgres: Postgres, sql: str) -> None:
    """One value of 10 kB in one database, short ones in the other."""
    long = "UPDATE users SET email = repeat('e', 10000), ssn = repeat('s', 10000) WHERE id IN (2, 5);"
    answers = []
    for more in ("", long):
        async with rig(postgres.create_database(SCHEMA + data(7) + more), LIMITED, rewriting=False) as ask:
            outcome = await ask(sql)
            assert isinstance(outcome, Result), outcome
            answers.append((sorted(outcome.rows), outcome.truncated))
    if sql.startswith(("UPDATE", "WITH")):  # the update with long values moves its rows, so their order may differ
        assert [len(rows) for rows, _ in answers] == [len(answers[0][0])] * 2
    else:
        assert answers[0] == answers[1]
    assert sum(map(len, answers[0][0])) <= 3000


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


async def test_rows_that_cannot_be_masked_are_withheld_and_writes_undone(postgres: Postgres) -> None:
    """The catalog was of another moment: a column has been added since, by somebody else."""
    dsn = postgres.create_database(SCHEMA + data(7))
    async with rig(dsn, HIDING, rewriting=False) as ask:
        read = await planned(ask, "SELECT * FROM users")
        write = await planned(ask, "UPDATE users SET name = 'changed' WHERE id = 3 RETURNING *")
        postgres.execute("ALTER TABLE users ADD COLUMN more text", dsn)
        permit, masking = read
        result = await execute(ask.pool, permit, ask.policy.limits, ask.catalog, masking)
        assert result.rows == ()
        assert result.withheld is not None
        assert "13 columns, found 14" in result.withheld
        permit, masking = write
        with pytest.raises(ExecutionFailed) as caught:
            await execute(ask.pool, permit, ask.policy.limits, ask.catalog, masking)
        assert caught.value.sqlstate == UNMASKABLE
    assert postgres.execute("SELECT name FROM users WHERE id = 3", dsn).strip() == "user 3"


async def test_an_error_text_carries_no_value(postgres: Postgres) -> None:
    async with rig(postgres.create_database(SCHEMA + data(7)), HIDING, rewriting=False) as ask:
        outcome = await ask("SELECT email, CAST(name AS int) FROM users")
        assert getattr(outcome, "sqlstate", "") == "22P02"
        assert "user 1" not in getattr(outcome, "message", "")
