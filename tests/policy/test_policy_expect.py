"""Files of cases: what is read, what is refused with its line, and when a verdict is as expected."""

import pytest

from gatewayd.policy.decide.by_names import decide_by_names
from gatewayd.policy.file.model import Approvals, Policy, TableAccess
from gatewayd.policy.file.problem import PolicyErrors
from gatewayd.policy.tools.expect import Case, CaseVerdict, load_cases, verdict_of
from gatewayd.sql.facts.analyze import analyze


def test_a_list() -> None:
    text = b"- sql: SELECT 1\n  expect: allow\n- {sql: DELETE FROM t, expect: dangerous_statement, database: shop}\n"
    assert load_cases(text) == (
        Case("SELECT 1", "allow", None, 1),
        Case("DELETE FROM t", "dangerous_statement", "shop", 3),
    )


def test_a_mapping() -> None:
    assert load_cases(b"SELECT 1: allow\nDROP TABLE t: deny\n") == (
        Case("SELECT 1", "allow", None, 1),
        Case("DROP TABLE t", "deny", None, 2),
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", "found no cases"),
        (b"just text", "found no cases"),
        (b"- SELECT 1", "line 1, [0]: found no mapping"),
        (b"- {sql: SELECT 1}", "line 1, [0]: found no key expect"),
        (b"- {expect: allow}", "line 1, [0]: found no key sql"),
        (b"- {sql: SELECT 1, expect: alow}", "(did you mean allow?)"),
        (b"- {sql: SELECT 1, expcet: allow}", "(did you mean expect?)"),
        (b"- {sql: 1, expect: allow}", "found no text"),
        (b"SELECT 1: [allow]", "found no text"),
        (b"- {sql: SELECT 1, expect: deny}\n- {sql: SELECT 1, expect: table_acces}", "line 2"),
        (b"- {sql: SELECT 1, sql: SELECT 2, expect: allow}", "line 1"),
    ],
)
def test_what_is_wrong_is_told(text: bytes, told: str) -> None:
    with pytest.raises(PolicyErrors) as refused:
        load_cases(text)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("sql", "meets", "fails"),
    [
        ("SELECT 1", ["allow"], ["deny", "held", "table_access"]),
        ("SELEC", ["deny", "parse_error"], ["allow", "table_access"]),
        ("DELETE FROM t WHERE a = 1", ["held"], ["allow", "deny"]),
    ],
)
def test_meeting(sql: str, meets: list[str], fails: list[str]) -> None:
    policy = Policy(table_access=TableAccess("read_write"), approvals=Approvals(writes=True))
    verdict: CaseVerdict = verdict_of(decide_by_names(analyze(sql), policy))
    assert all(verdict.meets(each) for each in meets)
    assert not any(verdict.meets(each) for each in fails)
