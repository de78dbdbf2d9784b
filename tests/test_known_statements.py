"""What is remembered of statements is bounded by what it holds, not by the agent's text."""

import gc
import tracemalloc

import msgspec
import pytest

from gatewayd.corridor.known_statements import HELD_BYTES, KnownStatements
from gatewayd.judge import Verdict
from gatewayd.masking.plan import Rewritten
from gatewayd.policy.decide.outcomes import Denied
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement, Unparsed


def statement(sql: str) -> Statement:
    made = analyze(sql)
    assert isinstance(made, Statement)
    return made


def rewritten(before: Statement, after: Statement) -> Verdict:
    return Verdict(before, Denied("table_access", "not asked"), Rewritten(after, (), ()))


def test_what_masks_made_of_a_short_text_counts_as_long_as_it_is() -> None:
    known = KnownStatements()
    for number in range(300):
        short = statement(f"SELECT {number} FROM t")
        long = msgspec.structs.replace(short, sql=f"SELECT {number} FROM (SELECT {'x, ' * 30_000}1 FROM t) AS t")
        known.add(short.sql, short).keep(rewritten(short, long), 1, 1)
        assert known.held <= HELD_BYTES
    assert known.get("SELECT 0 FROM t") is None
    assert known.get("SELECT 299 FROM t") is not None


def test_one_plan_in_place_of_another_is_counted_once() -> None:
    known = KnownStatements()
    short = statement("SELECT 1 FROM t")
    remembered = known.add(short.sql, short)
    remembered.keep(rewritten(short, short), 1, 1)
    held = known.held
    for revision in range(2, 100):
        remembered.keep(rewritten(short, short), 1, revision)
    assert known.held == held


@pytest.mark.parametrize(
    "shape",
    [
        "SELECT {i}",
        "SELECT " + "a, " * 500 + "{i} FROM t",
        "SELECT " + "x.f, " * 500 + "{i} FROM (SELECT " + ", ".join(f"{n} AS c{n}" for n in range(200)) + ") AS x",
        "SELECT {i} FROM " + ", ".join(f"t AS t{n}" for n in range(300)),
        "SELECT {i}" + " + f(1)" * 800,
        "SELECT {i} WHERE " + " AND ".join(f"a.b{n}::text = 'x'" for n in range(300)),
        "not a statement {i} " + "x" * 5000,
    ],
    ids=["short", "columns", "fields", "relations", "functions", "operators", "unparsed"],
)
def test_the_estimate_is_not_far_below_the_truth(shape: str) -> None:
    known = KnownStatements()
    analyze(shape.replace("{i}", "0"))
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1, 9):
            sql = shape.replace("{i}", str(number))
            made: Statement | Unparsed = analyze(sql)
            known.add(sql, made)
        del made
        gc.collect()
        true = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert true < 2 * known.held, (true, known.held)
