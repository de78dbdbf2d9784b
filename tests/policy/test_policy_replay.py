"""What counts as a flip, how flips are counted, and that memory stays bounded."""

from typing import Any, Literal

import pytest

from gatewayd.policy.tools.expect import CaseVerdict
from gatewayd.policy.tools.replay import Recorded, Replay, change_of

ALLOW = CaseVerdict("allow", "default:read", "", ("public.t",))
DENY = CaseVerdict("deny", "table_access", "table t has level deny", ("public.t",))
HELD = CaseVerdict("held", "default:read_write", "waits", ("public.t",))


def recorded(decision: Literal["ALLOW", "DENY"], rule: str | None = None, **more: Any) -> Recorded:
    given: dict[str, Any] = {"id": "1", "database": "shop", "agent": "claude", "sql": "SELECT 1", "fingerprint": "f", **more}
    return Recorded(ts=5, decision=decision, rule=rule, tables=("public.old",), **given)


@pytest.mark.parametrize(
    ("was", "verdict", "change"),
    [
        (recorded("ALLOW"), ALLOW, None),
        (recorded("ALLOW"), DENY, "now denied"),
        (recorded("ALLOW"), HELD, "now held"),
        (recorded("DENY", "table_access"), DENY, None),
        (recorded("DENY", "dangerous_statement"), DENY, None),
        (recorded("DENY", "table_access"), ALLOW, "now allowed"),
        (recorded("DENY", "table_access"), HELD, "now held"),
        (recorded("DENY", "approval_denied"), HELD, None),
        (recorded("DENY", "approval_expired"), ALLOW, "now allowed"),
        (recorded("DENY", "approval_denied"), DENY, "now denied"),
        (recorded("ALLOW", approved=True), HELD, None),
        (recorded("ALLOW", approved=True), ALLOW, "now allowed"),
    ],
)
def test_changes(was: Recorded, verdict: CaseVerdict, change: str | None) -> None:
    assert change_of(was, verdict) == change


def test_flips_are_counted_by_rule_table_and_agent() -> None:
    run = Replay()
    for each in (recorded("ALLOW"), recorded("ALLOW", agent="cursor"), recorded("ALLOW", fingerprint="g")):
        assert run.compare(each, DENY) == "now denied"
    run.compare(recorded("DENY", "dangerous_statement"), ALLOW)
    run.compare(recorded("DENY", "dangerous_statement"), DENY)
    run.compare(recorded("ALLOW"), ALLOW)
    assert (run.totals.statements, run.totals.flips, run.totals.same, run.totals.other_rule) == (6, 4, 1, 1)
    assert dict(run.by_rule) == {("now denied", "table_access"): 3, ("now allowed", "dangerous_statement"): 1}
    assert dict(run.by_agent) == {("now denied", "claude"): 2, ("now denied", "cursor"): 1, ("now allowed", "claude"): 1}
    assert dict(run.by_table) == {("now denied", "public.old"): 3, ("now allowed", "public.old"): 1}
    first = run.shapes()[0]
    assert (first.fingerprint, first.count, first.agents, first.reason) == ("f", 2, {"claude": 1, "cursor": 1}, DENY.reason)
    assert [shape.count for shape in run.shapes()] == [2, 1, 1]


def test_calls_that_were_alike_are_compared_once_and_counted_each() -> None:
    run = Replay()
    run.compare(recorded("ALLOW", count=40), DENY)
    run.compare(recorded("ALLOW", count=2, agent="cursor"), DENY)
    assert (run.totals.statements, run.totals.now_denied, run.by_table["now denied", "public.old"]) == (42, 42, 42)
    assert [(shape.count, shape.agents) for shape in run.shapes()] == [(42, {"claude": 40, "cursor": 2})]


def test_one_shape_may_flip_in_two_databases() -> None:
    run = Replay()
    run.compare(recorded("ALLOW"), DENY)
    run.compare(recorded("ALLOW", database="books"), DENY)
    assert [(shape.database, shape.count) for shape in run.shapes()] == [("shop", 1), ("books", 1)]


def test_shapes_beyond_the_bound_are_counted_only() -> None:
    run = Replay(most_shapes=2)
    for number in range(5):
        run.compare(recorded("ALLOW", fingerprint=str(number % 4)), DENY)
    assert [shape.count for shape in run.shapes()] == [2, 1]
    assert (run.totals.now_denied, run.totals.shapes_left_out) == (5, 2)
