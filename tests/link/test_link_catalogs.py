"""Catalogs as they are sent for simulation: whole, but for the constants of views."""

import msgspec
import pytest

from gatewayd.catalog import Catalog, Column, Function, Relation, Type
from gatewayd.link.formats.catalogs import catalog_body, catalog_of
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.requests import read_body
from gatewayd.link.formats.verdicts import CatalogBody
from gatewayd.sql.text.redact import redacted

TABLE = Relation(1, "public", "orders", "table", (Column("id", "integer", False),))
VIEW = Relation(2, "public", "rich", "view", reads=(1,), definition=" SELECT id FROM public.orders WHERE (id > 4711);")
BROKEN = Relation(3, "public", "odd", "view", reads=(1,), definition="SELECT 'canary' FROM")
CATALOG = Catalog(
    revision=3,
    database="shop",
    server_version=160004,
    relations={(each.schema, each.name): each for each in (TABLE, VIEW, BROKEN)},
    functions={9: Function(9, "public", "f", "stable", False, "sql", None, 1)},
    types={("public", "mood"): Type("public", "mood", "enum")},
)


def test_a_catalog_arrives_as_it_was_but_for_constants() -> None:
    body = catalog_body("shop", CATALOG, definitions=True)
    data = msgspec.json.encode(body)
    assert b"4711" not in data
    assert b"canary" not in data
    assert body.withheld == 1
    found = catalog_of(read_body(data, CatalogBody))
    assert found.relation("public", "rich") == msgspec.structs.replace(
        VIEW, definition="SELECT id FROM public . orders WHERE ( id > ? ) ;"
    )
    assert (found.relation("public", "orders"), found.functions, found.types) == (TABLE, CATALOG.functions, CATALOG.types)
    with pytest.raises(DocumentRefused):
        catalog_of(CatalogBody("shop", 1, 0, {"relations": 7}))


def test_without_definitions_no_view_is_told_of_its_query() -> None:
    body = catalog_body("shop", CATALOG, definitions=False)
    assert body.withheld == 0
    assert {relation.definition for relation in catalog_of(body).relations.values()} == {""}


@pytest.mark.parametrize(
    ("sql", "left"),
    [
        ("SELECT 'a', 1, 1.5, B'1', X'1F', E'b\\n', $$c$$, U&'d' -- e", "SELECT ? , ? , ? , ? , ? , ? , ? , ?"),
        ("SELECT * FROM t WHERE a = -5 /* 7 */ AND b IN (1, 2)", "SELECT * FROM t WHERE a = - ? AND b IN ( ? , ? )"),
        ("SELECT 'é', \"name 1\"", 'SELECT ? , "name 1"'),
        ("SELECT FROM WHERE", None),
    ],
)
def test_no_constant_is_left(sql: str, left: str | None) -> None:
    assert redacted(sql) == left
