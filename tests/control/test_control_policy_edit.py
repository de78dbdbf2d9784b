"""One value of a policy's text changed in place: the rest stays word for word, and what it says is what was meant."""

import random

import pytest

from gatewayd.control.policies.checked import check_policy
from gatewayd.control.policies.edit import NotEdited, set_value, value_at
from gatewayd.control.policies.table_view import Choice, with_choices
from gatewayd.policy.file import yaml

TEXT = """# what agents may do
databases:
  - name: shop   # the shop
    table_access:
      default: read
      tables:
        # open for writes
        orders: read_write   # since March
        "billing.*": deny
    guardrails: {block_dml: true}
  - name: books
"""
ORDERS = ("databases", 0, "table_access", "tables", "orders")


@pytest.mark.parametrize(
    ("path", "value", "was", "is_now"),
    [
        (ORDERS, "deny", "orders: read_write   # since March", "orders: deny   # since March"),
        (("databases", 0, "table_access", "tables", "billing.*"), "read", '"billing.*": deny', '"billing.*": read'),
        (("databases", 0, "table_access", "default"), "deny", "default: read\n", "default: deny\n"),
        (ORDERS, None, "        orders: read_write   # since March\n", ""),
        ((*ORDERS[:4], "on"), "read", '"billing.*": deny\n', '"billing.*": deny\n        "on": read\n'),
        (("databases", 0, "guardrails", "block_dml"), False, "block_dml: true", "block_dml: false"),
        (("databases", 1, "table_access", "tables", "a"), "deny", "- name: books\n",
         "- name: books\n    table_access:\n      tables:\n        a: deny\n"),
    ],
)  # fmt: skip
def test_a_line_is_changed_and_the_others_stay(path: tuple[str | int, ...], value: object, was: str, is_now: str) -> None:
    made = set_value(TEXT, path, value)
    if path[2] == "guardrails":  # in one line with its section: written anew
        assert value_at(made, path) is False
        return
    assert made == TEXT.replace(was, is_now, 1)
    assert value_at(made, path) == value


def test_a_text_in_one_line_is_written_anew() -> None:
    made = set_value("{databases: [{name: shop, table_access: {default: deny}}]}", ORDERS, "read")
    assert made == ("databases:\n  - name: shop\n    table_access:\n      default: deny\n      tables:\n        orders: read\n")


def test_a_mask_is_written_in_one_line() -> None:
    path = ("databases", 0, "column_masks", "customers", "card")
    made = set_value(TEXT, path, {"t": "partial", "keepEnd": 4})
    assert "card: {t: partial, keepEnd: 4}\n" in made
    assert "# since March" in made


def test_a_text_with_problems_is_left_alone() -> None:
    for text in ("", "a: [", "a: &x 1", "a: 1\na: 2"):
        with pytest.raises(NotEdited):
            set_value(text, ("a",), "b")


def test_whatever_is_set_is_what_is_read_and_nothing_else_changes() -> None:
    dice = random.Random(4)
    names = ["orders", "a.b", "with space", "ünï", "on", "1", "x: y", "#", "'", "- a", "{", "\u202e"]
    text = TEXT
    said: dict[str, object] = {"orders": "read_write", "billing.*": "deny"}
    for _ in range(300):
        name, value = dice.choice(names), dice.choice(["read", "deny", "read_write", None])
        text = set_value(text, (*ORDERS[:4], name), value)
        said.pop(name, None)
        if value is not None:
            said[name] = value
        assert (value_at(text, ORDERS[:4]) or {}) == said
        assert not yaml.parse(text)[1]


WRITES = """databases:
  - name: shop
    guardrails: {block_ddl: true}
    approvals:
      writes: true
"""


def test_choices_that_change_nothing_leave_no_line_and_others_are_written() -> None:
    same = [Choice("writes", "shop", name, "", value) for name, value in (("row_changes", "ask"), ("schema_changes", "refuse"))]
    assert with_choices(WRITES, same) == WRITES
    refused = with_choices(WRITES, [Choice("writes", "shop", "row_changes", "", "refuse")])
    assert value_at(refused, ("databases", 0, "guardrails", "block_dml")) is True
    back = with_choices(refused, [Choice("writes", "shop", "row_changes", "", "ask")])
    assert value_at(back, ("databases", 0, "guardrails", "block_dml")) is False


@pytest.mark.parametrize(("text", "found"), [("", "an empty policy"), ("databases: [", "a YAML syntax error")])
def test_a_text_that_says_nothing_has_one_problem(text: str, found: str) -> None:
    problems = check_policy(text)
    assert isinstance(problems, tuple)
    assert [found in each.message for each in problems] == [True]
