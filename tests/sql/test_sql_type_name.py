"""A string constant that names a type: read as PostgreSQL reads it, or not taken for one."""

import pytest

from gatewayd.sql.text.type_name import type_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("int2", ["int2"]),
        ("integer", ["pg_catalog", "int4"]),
        ("varchar(3)", ["pg_catalog", "varchar"]),
        ("public.mood", ["public", "mood"]),
        ('"Mood"[]', ["Mood"]),
        ("timestamp with time zone", ["pg_catalog", "timestamptz"]),
    ],
)
def test_a_type_is_read_by_its_grammar(text: str, names: list[str]) -> None:
    found = type_names(text)
    assert found is not None
    assert [part["String"]["sval"] for part in found] == names


@pytest.mark.parametrize(
    "text",
    [
        "",
        "int4 FROM secrets",
        "int4, 1",
        "int4 AS a",
        "int4 + 1",
        "int4::text",
        "int4) ; SELECT (1",
        "int4; SELECT 1",
        "SETOF int4",
        "secrets.word%TYPE",
        "prüfung",
        "int4" + " " * 200,
    ],
)
def test_what_is_more_than_a_type_is_none(text: str) -> None:
    assert type_names(text) is None
