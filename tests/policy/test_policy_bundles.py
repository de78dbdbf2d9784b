"""The policy of a bundle: its addresses are this machine's own, and it takes the place of all that was before."""

import pytest

from gatewayd.policy.file.load import load_policies
from gatewayd.policy.file.model import Policies
from gatewayd.policy.file.problem import PolicyErrors
from gatewayd.policy.replacement import replace_whole

TWO = "databases:\n  - {name: shop, table_access: {default: deny}}\n  - {name: books, table_access: {default: read}}\n"


def of_bundle(text: str, **addresses: str) -> Policies:
    """`addresses` by database; a database without one has none on this machine."""

    def address(name: str, count: int) -> str:
        if name not in addresses:
            raise ValueError(f"one of {count} databases; expected {name.upper()}_URL")
        return addresses[name]

    return load_policies(text, {}, addresses=address)


def problems(text: str, **addresses: str) -> list[str]:
    with pytest.raises(PolicyErrors) as refused:
        of_bundle(text, **addresses)
    return [str(problem) for problem in refused.value.problems]


def test_each_database_has_the_address_of_this_machine() -> None:
    found = of_bundle(TWO, shop="postgresql://h/shop", books="postgresql://h/books").databases
    assert found is not None
    assert [(each.name, each.url) for each in found] == [("shop", "postgresql://h/shop"), ("books", "postgresql://h/books")]


def test_a_database_without_an_address_or_with_none_that_can_be_used_refuses_the_bundle() -> None:
    (missing,) = problems(TWO, shop="postgresql://h/shop")
    assert "one of 2 databases; expected BOOKS_URL" in missing
    (unusable,) = problems(TWO, shop="postgresql://h/shop", books="mysql://h/canary")
    assert "its address: found another scheme" in unusable
    assert "canary" not in unusable


def test_a_database_without_a_name_is_reported_for_its_name_alone() -> None:
    (nameless,) = problems("databases: [{table_access: {default: deny}}]")
    assert "name" in nameless


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "found an empty policy"),
        ("# nothing\n", "found an empty policy"),
        ("table_access: {default: deny}", "found no databases"),
    ],
)
def test_only_the_shape_with_databases_is_one(text: str, found: str) -> None:
    (problem,) = problems(text, shop="postgresql://h/shop")
    assert found in problem


def test_the_whole_policy_goes_in_place_of_the_one_before() -> None:
    addresses = {name: f"postgresql://h/{name}" for name in ("shop", "books", "tools")}
    before = of_bundle(TWO, **addresses)
    after = of_bundle("databases: [{name: shop}, {name: tools, table_access: {default: deny}}]", **addresses)
    made = replace_whole(before, after)
    assert made.policies == after  # the section that shop leaves out has its default again
    assert made.databases_changed == ("shop", "tools", "books")
    shop, tools, books = made.changes
    assert (shop.sections_changed, tools.table_access) == (("table_access",), {"default": "deny", "tables": {}})
    assert (books.table_access, books.sections_changed) == (None, ())  # it goes, and its guardrails are what the row still says
