"""Output names: equal ones get a number, and PostgreSQL is asked only where nobody else can tell."""

import pytest

from gatewayd.catalog import Catalog, Column, Relation
from gatewayd.postgres.execute.output_names import NAME_BYTES, distinct, is_surely_distinct, output_names
from gatewayd.sql.facts.statement import RelationUse, Star, Statement

LONG = "é" * 31 + "x"  # 63 bytes


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        ((), None),
        (("a", "b"), None),
        (("a", "A"), None),
        (("a", "a"), ("a", "a_2")),
        (("a", "a", "a"), ("a", "a_2", "a_3")),
        (("a", "a", "a_2"), ("a", "a_3", "a_2")),
        (("a_2", "a", "a"), ("a_2", "a", "a_3")),
        (("?column?", "?column?"), ("?column?", "?column?_2")),
        ((LONG, LONG), (LONG, "é" * 30 + "_2")),
    ],
)
def test_equal_names_get_a_number(names: tuple[str, ...], chosen: tuple[str, ...] | None) -> None:
    assert distinct(names) == chosen
    assert all(len(name.encode()) <= NAME_BYTES for name in chosen or ())


def statement(outputs: tuple[str | Star, ...], schema: str | None = None) -> Statement:
    use = RelationUse(database=None, schema=schema, name="t", reads=True, writes=False, position=0)
    return Statement("", "SELECT", "read", "", relations=(use,), outputs=outputs)


def catalog(*schemas: str) -> Catalog:
    relations = {
        (schema, "t"): Relation(number, schema, "t", "table", (Column(f"{schema}_a", "text"), Column("b", "text")))
        for number, schema in enumerate(schemas)
    }
    return Catalog(revision=1, database="d", relations=relations)


@pytest.mark.parametrize(
    ("outputs", "schema", "known", "names"),
    [
        (("a", "b"), None, catalog(), ("a", "b")),
        ((Star(columns=("x", "y")), "z"), None, catalog(), ("x", "y", "z")),
        ((Star(relation=0), "z"), None, catalog("public"), ("public_a", "b", "z")),
        ((Star(relation=0),), None, catalog("public", "pg_catalog"), ("pg_catalog_a", "b")),
        ((Star(relation=0),), "app", catalog("public", "app"), ("app_a", "b")),
        ((Star(relation=0),), "app", catalog("public"), None),
        ((Star(relation=0),), None, Catalog(revision=0, database="d"), None),
        ((Star(),), None, catalog("public"), None),
    ],
)
def test_names_come_from_text_and_catalog(
    outputs: tuple[str | Star, ...], schema: str | None, known: Catalog, names: tuple[str, ...] | None
) -> None:
    assert output_names(statement(outputs, schema), known) == names


@pytest.mark.parametrize(
    ("outputs", "is_so"),
    [((Star(relation=0),), True), (("a",), True), ((Star(),), False), ((Star(relation=0), "a"), False), (("a", "a"), False)],
)
def test_one_star_of_one_relation_needs_no_catalog(outputs: tuple[str | Star, ...], is_so: bool) -> None:
    assert is_surely_distinct(statement(outputs)) is is_so
