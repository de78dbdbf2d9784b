"""Ways around masks that a hostile reading found, each with its variants: two databases that differ in the raw values of masked
columns alone must answer alike, on both paths. The honest statements beside them must be answered."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatewayd.masking.plan import Withheld
from gatewayd.postgres.execute.result import Result
from tests.conftest import Postgres
from tests.masking.masking_rig import Denied, Failed, Outcome, Rig, rig

CASES: dict[str, dict[str, list[str]]] = yaml.safe_load(Path(__file__).with_name("found.yaml").read_text("utf-8"))
SCHEMA = """
CREATE TYPE pair AS (ssn text, more int);
CREATE TABLE users (id int PRIMARY KEY, org_id int, name text, ssn text, email text, tags text[], pairs pair[]);
INSERT INTO users VALUES (1, 1, 'ann', '{a}', 'ann@x', '{{t}}', NULL), (2, 1, 'bob', '{a}', 'bob@x', NULL, NULL),
    (3, 2, 'cy', '{b}', 'cy@x', NULL, NULL);
CREATE TABLE notes (id int PRIMARY KEY, user_id int, body text);
INSERT INTO notes VALUES (1, 1, 'one'), (2, 3, 'two');
CREATE TABLE people (a int, b text, c text, d int);
INSERT INTO people SELECT n % 7, 'x', CASE WHEN n % 100 < {share} THEN 'm' ELSE n::text END, n FROM generate_series(1, 3000) n;
CREATE INDEX ON people (c);
CREATE TABLE things (id int PRIMARY KEY, label text);
INSERT INTO things SELECT n, n::text FROM generate_series(1, 500) n;
ANALYZE people, things;
CREATE FUNCTION regexp_split_to_table(p pair) RETURNS TABLE (one int) LANGUAGE sql IMMUTABLE AS 'SELECT 1';
CREATE FUNCTION two_columns() RETURNS TABLE (x int, y int) LANGUAGE sql IMMUTABLE AS 'SELECT 1, 2';
CREATE FUNCTION a_pair() RETURNS pair LANGUAGE sql IMMUTABLE AS $$SELECT ROW('p', 1)::pair$$;
CREATE TABLE made (id int, secret text, low text GENERATED ALWAYS AS (lower(coalesce(secret, '-'))) STORED UNIQUE);
INSERT INTO made (id, secret) VALUES (1, '{a}'), (2, '{b}');
CREATE TABLE bounded (id int, name text, secret text);
INSERT INTO bounded VALUES (1, 'x', '{a}');
CREATE FUNCTION fits(bounded) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$SELECT $1.name <> 'no' OR $1.secret <> '900-12-0003'$$;
ALTER TABLE bounded ADD CONSTRAINT fits CHECK (fits(bounded));
CREATE TABLE whole (id int, secret text);
INSERT INTO whole VALUES (1, '{a}');
CREATE FUNCTION text_of(whole) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT $1.id || $1.secret$$;
CREATE UNIQUE INDEX ON whole (text_of(whole));
CREATE FUNCTION xmin(r record) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN row_to_json(r)::text; END;';
"""
POLICY = """
table_access: {default: read_write}
functions: {allow: ["public.*"]}
column_masks:
  users: {ssn: full-redact, email: full-redact}
  people: {c: full-redact}
  made: {secret: full-redact}
  bounded: {secret: full-redact}
  whole: {secret: full-redact}
"""
VALUES = {"one": {"a": "900-12-0003", "b": "900-12-0004", "share": 95}, "two": {"a": "800", "b": "801", "share": 1}}


@pytest.fixture(params=[True, False], ids=["source_rewrite", "post_exec"])
async def twins(request: pytest.FixtureRequest, postgres: Postgres) -> AsyncIterator[tuple[Rig, Rig]]:
    one, two = (postgres.create_database(SCHEMA.format(t="{t}", **values)) for values in VALUES.values())
    async with rig(one, POLICY, rewriting=request.param) as first, rig(two, POLICY, rewriting=request.param) as second:
        yield first, second


def shown(outcome: Outcome) -> Any:
    if isinstance(outcome, Result):
        return sorted(outcome.rows), outcome.withheld, outcome.rows_affected
    return (outcome.sqlstate, outcome.message) if isinstance(outcome, Failed) else outcome


async def test_no_answer_depends_on_masked_values(twins: tuple[Rig, Rig]) -> None:
    different = []
    for family, statements in CASES["hostile"].items():
        for sql in statements:
            one, two = [shown(await ask(sql)) for ask in twins]
            if one != two or "900-12" in str(one):
                different.append((family, sql, one, two))
    assert not different, "\n".join(map(str, different))


async def test_the_honest_ones_beside_them_are_answered(twins: tuple[Rig, Rig]) -> None:
    refused = []
    for statements in CASES["honest"].values():
        for sql in statements:
            outcome = await twins[0](sql)
            if not isinstance(outcome, Result) or outcome.withheld:
                refused.append((sql, outcome))
    assert not refused, "\n".join(map(str, refused))


async def test_no_statement_is_denied_for_another_reason(twins: tuple[Rig, Rig]) -> None:
    """Else the first test would show nothing."""
    denied = []
    for statements in CASES["hostile"].values():
        for sql in statements:
            outcome = await twins[0](sql)
            if isinstance(outcome, Denied):
                denied.append((sql, outcome.reason))
    assert not denied, "\n".join(map(str, denied))


async def test_a_long_list_of_constants_is_no_reason_to_refuse(twins: tuple[Rig, Rig]) -> None:
    """Constants in bulk are left out of the facts' tree, so the tree that a rewritten text is held against must be another one."""
    outcome = await twins[0](f"SELECT id, ssn FROM users WHERE id IN ({', '.join(map(str, range(6000)))})")
    assert isinstance(outcome, Result)
    assert len(outcome.rows) == 3


async def test_a_text_that_grows_beyond_its_bound_is_refused_with_the_bound(twins: tuple[Rig, Rig]) -> None:
    sql = "SELECT 1 FROM " + ", ".join(f"(SELECT ssn FROM users WHERE id IN ({', '.join(['1'] * 3000)})) q{n}" for n in range(40))
    for ask in twins:
        outcome = await ask(sql)
        assert isinstance(outcome, Withheld) if ask.rewriting else isinstance(outcome, Result)
        assert not isinstance(outcome, Withheld) or "or it has too many parts" in outcome.reason_agent
