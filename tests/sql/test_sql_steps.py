"""What it takes to decide a statement grows with its length and no faster, counted in calls of functions, not in time."""

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest

from gatewayd.catalog import Catalog, Column, Relation
from gatewayd.masking.plan import Withheld, plan
from gatewayd.policy.decide.decision import decide
from gatewayd.policy.decide.outcomes import Allowed
from gatewayd.postgres.execute.output_names import distinct, output_names
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests.masking.masking_rig import policy_of

POLICY = policy_of("column_masks: {users: {ssn: full-redact, email: consistent-hash}}")
COLUMNS = {"users": "id name ssn email city", "notes": "id body", "wide": " ".join(f"w{n}" for n in range(300))}
CATALOG = Catalog(
    1,
    "steps",
    160000,
    relations={
        ("public", name): Relation(
            20000 + number, "public", name, "table", tuple(Column(each, "text") for each in columns.split())
        )
        for number, (name, columns) in enumerate(COLUMNS.items())
    },
)


def joined(count: int, form: str, by: str = ",") -> str:
    return by.join(form.format(n=n, before=n - 1) for n in range(1, count + 1))


SHAPES: dict[str, Callable[[int], str]] = {
    "constants": lambda n: f"SELECT {joined(n, '1')}",
    "masked tables": lambda n: f"SELECT 1 FROM {joined(n, 'users u{n}')}",
    "masked subqueries": lambda n: f"SELECT {joined(n, '(SELECT ssn FROM users WHERE id = {n})')}",
    "tables and references": lambda n: (
        f"SELECT {joined(n, 'u{n}.id')} FROM {joined(n, 'users u{n}')} WHERE {joined(n, 'u{n}.id', '+')} > 1"
    ),
    "bare references": lambda n: f"SELECT {joined(n, 'a{n}')} FROM {joined(n, 'notes n{n} (a{n}, b{n})')}, users",
    "whole rows": lambda n: f"SELECT {joined(n, 'n{n}')} FROM {joined(n, 'notes n{n}')}, users",
    "unknown names": lambda n: f"SELECT {joined(n, 'x{n}')} FROM {joined(n, 'notes n{n}')}, users",
    "one name": lambda n: f"SELECT {joined(n, 'u.id')} FROM users, {joined(n, 'notes u')}",
    "lateral": lambda n: f"SELECT 1 FROM users u, {joined(n, 'LATERAL (SELECT u.id) l{n}')}",
    "functions": lambda n: f"SELECT 1 FROM users u, {joined(n, 'generate_series(1, u.id) g{n}')}",
    "groups": lambda n: f"SELECT {joined(n, 'id AS c{n}')} FROM users GROUP BY {joined(n, 'c{n}')}",
    "orders": lambda n: f"SELECT {joined(n, 'id AS c{n}')} FROM users ORDER BY {joined(n, 'c{n}')}, {joined(n, '{n}')}",
    "with queries": lambda n: (
        f"WITH q0 AS (SELECT id FROM users), {joined(n, 'q{n} AS (SELECT * FROM q{before})')} SELECT 1 FROM q{n // 2}"
    ),
    "catalog": lambda n: f"SELECT {joined(n, '(SELECT c.x{n} FROM pg_class c)')}",
    "catalog stars": lambda n: f"SELECT {joined(n, 'EXISTS (SELECT count(*), c.* FROM pg_class c)')}",
    "fields of a subquery": lambda n: f"SELECT {joined(n, 'q.w{n}')} FROM (SELECT * FROM wide, users) q",
    "filtered calls": lambda n: f"SELECT {joined(n // 8, 'pg_get_constraintdef({n})')}",
    "column lists of changes": lambda n: (
        f"WITH {joined(n, 'q{n} (a, b) AS (DELETE FROM notes WHERE id = {n} RETURNING *)')} SELECT 1"
    ),
    "stars": lambda n: f"SELECT {joined(n // 4, '*')} FROM wide",
    "constants in bulk": lambda n: f"SELECT ssn FROM users WHERE id IN ({joined(n * 20, '{n}')})",
}


def steps(work: Callable[[], object]) -> int:
    """How many functions `work` calls, those written in C among them."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def judged(sql: str, *, rewriting: bool) -> object:
    statement = analyze(sql)
    decision = decide(statement, POLICY, CATALOG)
    if not isinstance(decision, Allowed):
        return decision
    planned = plan(decision.statement, POLICY, CATALOG, salt=b"salt of sixteen", rewriting=rewriting)
    assert not isinstance(planned, Withheld) or planned.stage == "gate", planned.reason_audit
    return planned


@pytest.mark.parametrize("rewriting", [True, False], ids=["source_rewrite", "post_exec"])
@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_length_costs_twice_the_steps(shape: str, rewriting: bool) -> None:
    judged(SHAPES[shape](3), rewriting=rewriting)  # what is made once
    small, large = (steps(partial(judged, SHAPES[shape](count), rewriting=rewriting)) for count in (120, 240))
    assert large < 2.5 * small


def test_more_columns_than_postgresql_shows_are_not_named_one_by_one() -> None:
    statement = analyze(f"SELECT {joined(600, '*')} FROM wide")
    assert isinstance(statement, Statement)
    assert steps(partial(output_names, statement, CATALOG)) < 3_000, "600 times 300 columns"
    assert output_names(statement, CATALOG) is None


def test_equal_output_names_cost_a_look_up_each() -> None:
    small, large = (steps(partial(distinct, ["x"] * count)) for count in (400, 800))
    assert large < 2.5 * small
