"""What pages say of a statement: the line of the policy that decided it, its constants, what differs from one approved before."""

import re

import pytest

from gatewayd.catalog import Catalog, Column, Relation
from gatewayd.control.approvals.marked_statement import HTML_MOST, marked
from gatewayd.control.policies.checked import CheckedPolicy, check_policy
from gatewayd.control.policies.deciding_line import deciding_line
from gatewayd.control.policies.text_diff import diff
from gatewayd.judge import ANY_SALT, judge
from gatewayd.policy.tools.expect import verdict_of

POLICY = """databases:
  - name: books
  - name: shop
    table_access:
      default: read
      tables:
        orders: read_write
        secrets: deny
        billing.*: deny
    guardrails:
      block_dml: false
    approvals:
      row_changes: true
    column_masks:
      customers:
        email: full-redact
"""
CATALOG = Catalog(
    1,
    "shop",
    relations={
        (schema, name): Relation(20_000 + place, schema, name, "table", (Column("id", "integer"), Column("email", "text")))
        for place, (schema, name) in enumerate(
            [("public", "orders"), ("public", "secrets"), ("public", "customers"), ("billing", "cards")]
        )
    },
)


@pytest.mark.parametrize(
    ("sql", "line", "says"),
    [
        ("SELECT id FROM secrets", 8, "secrets: deny"),
        ("SELECT id FROM billing.cards", 9, "billing.*: deny"),
        ("SELECT id FROM customers", 5, "default: read"),
        ("DELETE FROM customers WHERE id = 1", 5, "default: read"),
        ("DELETE FROM orders WHERE id = 1", 13, "row_changes: true"),
        ("DELETE FROM orders", 0, ""),
        ("SELECT max(email) FROM customers", 15, "customers:"),
    ],
)
def test_the_line_that_decided_is_named(sql: str, line: int, says: str) -> None:
    checked = check_policy(POLICY)
    assert isinstance(checked, CheckedPolicy)
    policy = next(each.policy for each in checked.policies.databases or () if each.name == "shop")
    verdict = verdict_of(judge(sql, policy, CATALOG, salt=ANY_SALT).final_decision)
    found = deciding_line(POLICY, "shop", verdict)
    assert found is not None, verdict
    assert (found.line, found.text) == (line, says)
    if line == 0:
        assert found.path == "guardrails.block_unqualified_dml"


def test_what_no_policy_decides_has_no_line() -> None:
    checked = check_policy(POLICY)
    assert isinstance(checked, CheckedPolicy)
    policy = (checked.policies.databases or ())[1].policy
    for sql in ("SELECT", "COPY orders TO '/tmp/x'", "no sql"):
        verdict = verdict_of(judge(sql, policy, CATALOG, salt=ANY_SALT).final_decision)
        if verdict.decision == "deny":
            assert deciding_line(POLICY, "shop", verdict) is None, sql
    assert deciding_line("", "shop", verdict) is None


def plain(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html)


def test_constants_are_marked_and_what_differs_from_the_one_before() -> None:
    now, before = "DELETE FROM t WHERE id = 7 AND name = 'x' -- all", "DELETE FROM t WHERE id = 8 AND name = 'x' -- all"
    found = marked(now, before)
    html = found.html.__html__()
    assert re.findall(r'<mark class="(\w+)"><bdi>([^<]*)', html) == [("changed", "7"), ("constant", "&#x27;x&#x27;")]
    assert found.differences == 1
    assert plain(html).replace("&#x27;", "'") == now
    assert marked(now, now).differences == 0
    assert marked(now).differences is None
    assert (marked("DELETE FROM t WHERE a = 1 AND b = 2", "DELETE FROM t WHERE a = 1").differences or 0) > 1


def test_what_cannot_be_read_is_shown_as_it_is_and_no_page_grows_with_it() -> None:
    assert marked("no sql '").html.__html__() == "<bdi>no sql &#x27;</bdi>"
    for sql in (
        "SELECT '" + "\u202e" * 90_000 + "'",
        "SELECT " + ", ".join(["1"] * 30_000),
        "x" * 1_000_000,
        "\u200b" * 1_000_000,
    ):
        assert len(marked(sql).html.__html__()) < HTML_MOST + 1000


def test_a_diff_shows_what_went_and_came_with_a_little_around_it() -> None:
    before = "\n".join(f"line {n}" for n in range(1, 41))
    after = before.replace("line 3\n", "line three\n").replace("line 30", "line 30\nand more")
    found = diff(before, after)
    assert [(each.kind, each.text) for each in found if each.kind in ("gone", "new")] == [
        ("gone", "line 3"),
        ("new", "line three"),
        ("new", "and more"),
    ]
    assert [each.kind for each in found].count("gap") == 1
    assert len(found) < 20
    assert diff(before, before) == []
