"""Every type in one table: the answer is the server's own row_to_json text, byte for byte, and valid JSON (decision 6)."""

from typing import Any

import msgspec
import pytest

from gatewayd.policy.file.model import Limits
from tests.postgres.postgres_asking import asking

TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'ok "quoted"');
CREATE TYPE pair AS (a int, "b c" text);
CREATE DOMAIN positive AS numeric(10, 3) CHECK (VALUE > 0);
CREATE DOMAIN tags AS text[];
CREATE TYPE floats AS RANGE (subtype = float8);
CREATE EXTENSION IF NOT EXISTS vector;
"""
VALUES = {
    "int2": "'-32768'::int2",
    "int4": "2147483647",
    "int8": "9223372036854775807::int8",
    "numeric": "'12345678901234567890.1234567890'::numeric",
    "numeric_scale": "1.500::numeric(10, 3)",
    "numeric_nan": "'NaN'::numeric",
    "numeric_infinity": "'-Infinity'::numeric",
    "float4": "1.1::float4",
    "float8": "0.1::float8 + 0.2::float8",
    "float8_nan": "'NaN'::float8",
    "float8_infinity": "'-Infinity'::float8",
    "float8_zero": "'-0'::float8",
    "money": "'12.34'::money",
    "bool": "true",
    "text": "E'\\u00fc\\t\\n\\\\ \"quoted\" \\u0001 </script> \\U0001F600'",
    "text_long": "repeat('x\"', 500000)",
    "varchar": "'x'::varchar(3)",
    "char": "'x'::char(3)",
    "one_char": "'x'::\"char\"",
    "name": "'n'::name",
    "bytea": "'\\x00ff10'::bytea",
    "date": "'2024-02-29'::date",
    "date_far": "'10000-01-01'::date",
    "date_bc": "'0044-03-15 BC'::date",
    "date_infinity": "'infinity'::date",
    "timestamp": "'2024-02-29 23:59:59.123456'::timestamp",
    "timestamptz": "'2024-02-29 23:59:59.5+09'::timestamptz",
    "timestamptz_far": "'10000-01-01 00:00:00+00'::timestamptz",
    "timestamptz_bc": "'0044-03-15 12:00:00+00 BC'::timestamptz",
    "timestamptz_infinity": "'-infinity'::timestamptz",
    "time": "'24:00:00'::time",
    "timetz": "'12:34:56.789+05:30'::timetz",
    "interval": "'1 year 2 months -3 days 04:05:06.789'::interval",
    "json": '\'{"b": 1,  "a": [1, null], "b": 2}\'::json',
    "jsonb": '\'{"b": 1e400,  "a": [1, null]}\'::jsonb',
    "uuid": "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
    "inet": "'::1/64'::inet",
    "cidr": "'10.0.0.0/8'::cidr",
    "macaddr": "'08:00:2b:01:02:03'::macaddr",
    "bit": "B'101'",
    "varbit": "'101'::varbit",
    "xml": "NULL::xml",  # the embedded server is built without libxml: no value can be made
    "tsvector": "'a:1 fat:2'::tsvector",
    "tsquery": "'fat & (rat | ''cat'')'::tsquery",
    "point": "'(1,2)'::point",
    "line": "'{1,2,3}'::line",
    "lseg": "'[(1,2),(3,4)]'::lseg",
    "box": "'(1,2),(3,4)'::box",
    "path": "'[(1,2),(3,4)]'::path",
    "polygon": "'((1,2),(3,4))'::polygon",
    "circle": "'<(1,2),3>'::circle",
    "int4range": "'[1,5)'::int4range",
    "tstzrange": "'[2024-01-01 00:00+00,)'::tstzrange",
    "range_empty": "'empty'::numrange",
    "range_own": "'[1.5,2.5]'::floats",
    "multirange": "'{[1,3), [5,7)}'::int4multirange",
    "array": "ARRAY[1, NULL, 3]",
    "array_nested": "ARRAY[ARRAY['a', 'b\"'], ARRAY[NULL, '{}']]",
    "array_empty": "'{}'::int[]",
    "array_bounds": "'[2:3]={1,2}'::int[]",
    "array_json": "ARRAY['{\"a\": 1}'::jsonb]",
    "array_composite": "ARRAY[ROW(1, 'x')::pair, NULL]",
    "enum": "'ok \"quoted\"'::mood",
    "composite": "ROW(1, NULL)::pair",
    "record": "ROW(1, 'x', ROW(2))",
    "domain": "1.5::positive",
    "domain_array": "ARRAY['a']::tags",
    "extension": "'[1,2.5,3]'::vector",
    "regclass": "'pg_class'::regclass",
    "oid": "1::oid",
    "pg_lsn": "'16/B374D848'::pg_lsn",
    "null": "NULL::int",
    "null_row": "NULL::pair",
}


@pytest.mark.parametrize("version", [16, 18])
async def test_every_type_is_exactly_as_the_server_says(start_postgres: Any, version: int) -> None:
    server = start_postgres(version=version)
    dsn = server.create_database(TYPES)
    columns = ", ".join(f'{expression} AS "{name}"' for name, expression in VALUES.items())
    # psql speaks to the server without the gateway; only the settings of decision 6 are the same.
    settings = "SET TimeZone = 'UTC'; SET IntervalStyle = 'iso_8601'; SET DateStyle = 'ISO'; SET bytea_output = 'hex';"
    expected = server.execute(f"{settings} SELECT row_to_json(q)::text FROM (SELECT {columns}) AS q", dsn)
    async with asking(dsn) as ask:
        (row,) = (await ask(f"SELECT {columns}", Limits(max_bytes=4_000_000))).rows
    assert row.decode() == expected
    values = msgspec.json.decode(row)
    assert list(values) == list(VALUES)
    assert values["int8"] == 9223372036854775807
    assert b'"numeric":12345678901234567890.1234567890' in row
    assert b'"numeric_scale":1.500' in row
    assert values["numeric_nan"] == values["float8_nan"] == "NaN"
    assert values["timestamptz"] == "2024-02-29T14:59:59.5+00:00"
    assert values["date_far"] == "10000-01-01"
    assert values["date_bc"] == "0044-03-15 BC"
    assert values["interval"] == "P1Y2M-3DT4H5M6.789S"
    assert values["bytea"] == "\\x00ff10"
    assert values["composite"] == {"a": 1, "b c": None}
    assert values["extension"] == "[1,2.5,3]"
    assert len(values["text_long"]) == 1_000_000
