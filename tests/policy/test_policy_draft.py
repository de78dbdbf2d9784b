"""A drafted policy loads, opens what is there, and lets nothing be written, whatever names the catalog holds."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.catalog import Catalog, Column, Function, Relation
from gatewayd.policy.decide.decision import decide
from gatewayd.policy.decide.outcomes import Allowed, Denied
from gatewayd.policy.file.load import load_policies
from gatewayd.policy.file.model import Policy
from gatewayd.policy.tools.draft import draft_policy, masks_text
from gatewayd.policy.tools.sensitive import suspects
from gatewayd.sql.facts.analyze import analyze

Default = Literal["deny", "read"]


def relation(oid: int, schema: str, name: str, kind: str = "table", *columns: str, **more: tuple[int, ...]) -> Relation:
    return Relation(oid, schema, name, kind, tuple(Column(each, "text") for each in columns), **more)  # type: ignore[arg-type]  # kinds as text


def catalog(*relations: Relation, functions: dict[int, Function] | None = None) -> Catalog:
    named = {(each.schema, each.name): each for each in relations}
    return Catalog(revision=1, database="app", relations=named, functions=functions or {})


SHOP = catalog(
    relation(20001, "public", "orders", "table", "id", "email"),
    relation(20002, "public", "Odd Name"),
    relation(20003, "public", "a.b"),
    relation(20004, "billing", "invoices", "partitioned table", children=(20005,)),
    relation(20005, "billing", "invoices_1", parents=(20004,)),
    relation(20006, "public", "v", "view", reads=(20001,)),
    relation(20007, "public", "orders_id_seq", "sequence"),
    functions={20010: Function(20010, "public", "slugify", "immutable", False, "sql", None, 1)},
)


def drafted(source: Catalog, default: Default) -> Policy:
    policy = load_policies(draft_policy(source, default), {}).single
    assert policy is not None
    return policy


@pytest.mark.parametrize("default", ["deny", "read"])
def test_everything_can_be_read_and_nothing_written(default: Default) -> None:
    policy = drafted(SHOP, default)
    for name in ("orders", '"Odd Name"', "billing.invoices", "billing.invoices_1", "v"):
        assert isinstance(decide(analyze(f"SELECT FROM {name}"), policy, SHOP), Allowed), name
        for write in (f"INSERT INTO {name} DEFAULT VALUES", f"DELETE FROM {name} WHERE false", f"DROP TABLE {name}"):
            assert isinstance(decide(analyze(write), policy, SHOP), Denied), write


def test_a_new_table_is_hidden_or_not() -> None:
    grown = catalog(*SHOP.relations.values(), relation(20099, "public", "fresh"))
    assert isinstance(decide(analyze("SELECT FROM fresh"), drafted(SHOP, "deny"), grown), Denied)
    assert isinstance(decide(analyze("SELECT FROM fresh"), drafted(SHOP, "read"), grown), Allowed)


def test_what_a_person_is_told() -> None:
    text = draft_policy(SHOP, "deny")
    assert text.startswith("# yaml-language-server: $schema=policy.schema.json\n")
    assert "# a.b: has a name that no key can spell" in text
    assert "invoices_1" not in text
    assert '#     - "public.slugify"  # immutable, sql' in text
    assert "#     email: {t: pseudonymize, kind: email}" in text


def test_without_its_marks_the_read_draft_closes_the_tables() -> None:
    text = draft_policy(SHOP, "read")
    opened = "\n".join(
        line.replace("# ", "", 1) if ": deny" in line or "# tables:" in line else line for line in text.splitlines()
    )
    policy = load_policies(opened, {}).single
    assert policy is not None
    assert policy.table_access.tables[("public", "orders")] == "deny"


names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(names, names, names)
def test_any_name_gives_a_policy_that_loads(schema: str, table: str, column: str) -> None:
    source = catalog(relation(20001, schema, table, "table", column, f"email {column}"))
    for default in ("deny", "read"):
        policy = drafted(source, "deny" if default == "deny" else "read")
        assert set(policy.table_access.tables.values()) <= {"read"}
        assert policy.guardrails.block_dml
    text = masks_text(suspects(source))
    if text:
        load_policies(text, {}, mask_salt=True, features={"column_masks": None})
