"""The judge by itself: one call from a text to the verdict, with what masks, approvals and missing names make of it."""

import pytest

from gatewayd.catalog import Catalog, Column, Relation, unread
from gatewayd.judge import Verdict, judge
from gatewayd.masking.plan import UNMASKED, Rewritten, Withheld
from gatewayd.masking.results.post_exec import PostExec
from gatewayd.policy.decide.outcomes import Allowed, Denied, Held
from gatewayd.policy.file.load import load_policies
from gatewayd.policy.file.model import Policy
from gatewayd.sql.facts.analyze import analyze

CATALOG = Catalog(
    revision=1,
    database="shop",
    relations={
        ("public", name): Relation(20001 + number, "public", name, "table", (Column("id", "integer"), Column("email", "text")))
        for number, name in enumerate(("users", "orders", "secrets"))
    },
)
SALT = b"salt of the tests"


def policy(text: str) -> Policy:
    single = load_policies(text, {}, mask_salt=True, approval_gate=True).single
    assert single is not None
    return single


OPEN = policy("table_access: {default: read, tables: {orders: read_write, secrets: deny}}")
MASKED = policy("column_masks: {users: {email: full-redact}}")


def judged(sql: str, under: Policy = OPEN, catalog: Catalog | None = CATALOG) -> Verdict:
    return judge(sql, under, catalog, salt=SALT)


def test_a_read_is_allowed_as_it_is() -> None:
    verdict = judged("SELECT id FROM users")
    assert isinstance(verdict.decision, Allowed)
    assert verdict.plan is UNMASKED
    assert verdict.final_decision is verdict.decision is verdict.allowed


def test_a_text_and_its_facts_have_the_same_verdict() -> None:
    sql = "SELECT email FROM users"
    assert judge(analyze(sql), MASKED, CATALOG, salt=SALT) == judge(sql, MASKED, CATALOG, salt=SALT)


@pytest.mark.parametrize(
    ("sql", "rule"),
    [
        ("SELEC 1", "parse_error"),
        ("SELECT 1; SELECT 2", "multi_statement"),
        ("SELECT * FROM secrets", "table_access"),
        ("DELETE FROM orders", "dangerous_statement"),
    ],
)
def test_a_denial_names_its_rule_and_nothing_is_planned(sql: str, rule: str) -> None:
    verdict = judged(sql)
    assert isinstance(verdict.final_decision, Denied)
    assert verdict.final_decision.policy_rule == rule
    assert verdict.allowed is None
    assert verdict.plan is UNMASKED


def test_masks_are_part_of_the_verdict() -> None:
    assert isinstance(judged("SELECT email FROM users", MASKED).plan, PostExec)
    assert isinstance(judge("SELECT email FROM users", MASKED, CATALOG, salt=SALT, rewriting=True).plan, Rewritten)
    assert judged("SELECT id FROM orders", MASKED).plan is UNMASKED


def test_the_policys_own_key_chooses_the_way_of_masking() -> None:
    own = policy("mask_source_rewrite: true\ncolumn_masks: {users: {email: full-redact}}")
    assert isinstance(judge("SELECT email FROM users", own, CATALOG, salt=SALT, rewriting=False).plan, Rewritten)


def test_what_masks_withhold_is_told_as_a_denial() -> None:
    verdict = judged("SELECT id FROM users WHERE email = 'a'", MASKED)
    assert isinstance(verdict.decision, Allowed)
    assert isinstance(verdict.plan, Withheld)
    assert isinstance(verdict.final_decision, Denied)
    assert verdict.final_decision.policy_rule == "column_masking"


def test_a_held_write_is_planned_like_an_allowed_one() -> None:
    masks = "column_masks: {users: {email: full-redact}}\ntable_access: {tables: {users: read_write}}\n"
    holding = policy(masks + "approvals: {writes: true}")
    verdict = judged("DELETE FROM users WHERE id = 1 RETURNING email", holding)
    assert isinstance(verdict.decision, Held)
    assert verdict.allowed is verdict.decision.allowed
    assert isinstance(verdict.plan, PostExec)
    refused = judged("DELETE FROM users WHERE email = 'a'", holding)
    assert isinstance(refused.decision, Held)
    assert isinstance(refused.final_decision, Denied)


def test_a_name_that_nobody_knows_may_be_parsed_and_not_run() -> None:
    verdict = judged("SELECT id FROM usrs")
    assert isinstance(verdict.decision, Allowed)
    assert verdict.unknown is not None
    assert [use.name for use in verdict.unknown.relations] == ["usrs"]
    assert isinstance(verdict.refused, Denied)
    assert verdict.final_decision is verdict.decision
    assert verdict.decision_to_run is verdict.refused


def test_a_hidden_table_beside_an_unknown_name_is_the_denial() -> None:
    verdict = judged("SELECT * FROM nothing, secrets")
    assert isinstance(verdict.final_decision, Denied)
    assert verdict.refused is None
    assert verdict.unknown is not None, "a newer catalog may know it"


def test_without_a_catalog_names_alone_decide() -> None:
    assert isinstance(judged("SELECT email FROM users WHERE email = 'a'", MASKED, None).final_decision, Allowed)
    assert isinstance(judged("SELECT * FROM secrets", OPEN, None).final_decision, Denied)


def test_while_the_catalog_is_unread_what_may_hide_something_is_refused() -> None:
    assert isinstance(judged("SELECT * FROM users", OPEN, unread("shop")).final_decision, Denied)


def test_a_clock_tells_what_masks_took() -> None:
    ticks = iter((1.0, 3.5))
    verdict = judge("SELECT email FROM users", MASKED, CATALOG, salt=SALT, clock=lambda: next(ticks))
    assert verdict.mask_s == 2.5
