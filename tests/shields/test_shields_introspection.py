"""Who looks at a database whose policy hides a table is told the truth about the rest, and of the hidden one its names alone."""

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gatewayd.masking.plan import Withheld
from gatewayd.postgres.embedded import VERSIONS, Version
from gatewayd.postgres.execute.result import Result
from tests.conftest import Postgres
from tests.masking.masking_rig import Denied, Failed, Outcome, Rig, rig

HERE = Path(__file__).parent
LIMITS = "limits: {max_rows: 100000, max_bytes: 100000000}\n"
POLICY = LIMITS + "table_access: {default: read, tables: {hidden: deny, vouched: read}}"
WRITING = LIMITS + "table_access: {default: read_write, tables: {hidden: deny, vouched: read}}"
CLOSED = LIMITS + "table_access: {default: deny, tables: {people: read, teams: read, 'app.*': read, vouched: read}}"
DEFAULT = "SELECT column_default AS d FROM information_schema.columns"
CHECKS = "SELECT pg_get_constraintdef(oid) AS d FROM pg_constraint"
PRETTY_CHECKS = "SELECT pg_get_constraintdef(oid, true) AS d FROM pg_constraint"
SECRET = re.compile(r".{0,40}(?:secret_|4242).{0,40}")


def captured(name: str) -> list[str]:
    blocks = (HERE / "captured" / name).read_text(encoding="utf-8").split("\n\n-- ")
    return [block.partition("\n")[2] for block in blocks]


ATTACKS = (HERE / "attacks.sql").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module", params=list(VERSIONS))
def version(request: pytest.FixtureRequest) -> Version:
    chosen: Version = request.param
    return chosen


@pytest.fixture(scope="module")
def databases(version: Version, start_module_postgres: Callable[[Version], Postgres]) -> dict[str, str]:
    """The first two differ in what `hidden` is made of; the third is for those who write."""
    server = start_module_postgres(version)
    server.create_database((HERE / "introspected.sql").read_text(encoding="utf-8"))
    base = "test_1"
    names = ("look_at_one", "look_at_two", "look_and_take")
    for name in names:
        server.server.psql(f"CREATE DATABASE {name} TEMPLATE {base}")
    server.server.psql((HERE / "otherwise.sql").read_text(encoding="utf-8"), "look_at_two")
    return {name: server.dsn(name) for name in names}


@pytest.fixture
async def ask(databases: dict[str, str]) -> AsyncIterator[Rig]:
    async with rig(databases["look_at_one"], POLICY) as made:
        yield made


def text(outcome: Outcome) -> str:
    return b"\n".join(outcome.rows).decode() if isinstance(outcome, Result) else str(outcome)


async def test_what_psql_asks_is_answered_and_tells_nothing_hidden(ask: Rig, version: Version) -> None:
    statements = captured(f"psql{version}.sql")
    refused = []
    for sql in statements:
        outcome = await ask(sql)
        assert not isinstance(outcome, Failed | Withheld), (sql, outcome)
        if isinstance(outcome, Denied):
            refused.append((sql, outcome.reason))
        elif (told := SECRET.findall(text(outcome))) and "secret_" not in sql:
            pytest.fail(f"{sql}\n{told}")
    assert len(refused) <= 0.03 * len(statements), refused


async def test_what_tools_ask_is_answered_and_tells_nothing_hidden(ask: Rig) -> None:
    for path in sorted((HERE / "captured").glob("*.sql")):
        if path.name.startswith("psql"):
            continue
        statements = captured(path.name)
        refused = []
        for sql in statements:
            outcome = await ask(sql)
            assert not isinstance(outcome, Failed | Withheld), (path.name, sql, outcome)
            if isinstance(outcome, Denied):
                refused.append((sql, outcome.reason))
            assert not SECRET.findall(text(outcome)), sql
        assert len(refused) <= 0.03 * len(statements), (path.name, refused)


@pytest.mark.parametrize("policy", [WRITING, CLOSED], ids=["one denied", "few allowed"])
async def test_no_way_of_asking_tells_what_is_hidden(databases: dict[str, str], policy: str) -> None:
    async with rig(databases["look_and_take"], policy) as made:
        for sql in ATTACKS:
            outcome = await made(sql)
            assert not SECRET.findall(text(outcome)), sql


async def test_what_is_hidden_changes_no_answer(databases: dict[str, str], version: Version) -> None:
    async with rig(databases["look_at_one"], WRITING) as one, rig(databases["look_at_two"], WRITING) as two:
        for sql in [*ATTACKS, *captured(f"psql{version}.sql")]:
            if "'secret_index'" in sql:
                continue  # names a relation that only one of them has
            says = [sorted(re.sub("look_at_(one|two)", "look", text(await made(sql))).split("\n")) for made in (one, two)]
            assert says[0] == says[1], (sql, set(says[0]) ^ set(says[1]))


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        (
            f"{PRETTY_CHECKS} WHERE conrelid = 'people'::regclass AND contype <> 'n'",
            [
                "CHECK (age::integer < 200)",
                "CHECK (size >= 0::numeric AND size <= 300::numeric)",
                "FOREIGN KEY (team_id) REFERENCES teams(id) ON DELETE CASCADE",
                "PRIMARY KEY (id)",
                "UNIQUE (team_id, name)",
            ],
        ),
        (
            "SELECT indexdef AS d FROM pg_indexes WHERE indexname = 'people_lower'",
            ["CREATE INDEX people_lower ON public.people USING btree (lower(name)) WHERE ((age)::integer > 17)"],
        ),
        ("SELECT pg_get_viewdef('app.grown') LIKE '%17%' AS d", [True]),
        ("SELECT view_definition LIKE '%17%' AS d FROM information_schema.views WHERE table_name = 'grown'", [True]),
        ("SELECT definition LIKE '%count(*)%' AS d FROM pg_matviews WHERE matviewname = 'counted'", [True]),
        (f"{DEFAULT} WHERE table_name = 'people' AND column_name = 'name'", ["'nobody'::text"]),
        ("SELECT reltuples AS d FROM pg_class WHERE relname = 'people'", [50]),
        ("SELECT reltuples AS d FROM pg_class WHERE relname = 'hidden'", [None]),
        ("SELECT pg_total_relation_size('people') > 0 AS d", [True]),
        ("SELECT pg_total_relation_size('hidden') AS d", [None]),
        (
            "SELECT pg_get_expr(relpartbound, oid) AS d FROM pg_class WHERE relname = 'events_2025'",
            ["FOR VALUES FROM ('2025-01-01') TO ('2026-01-01')"],
        ),
        ("SELECT pg_get_partkeydef('events'::regclass) AS d", ["RANGE (at)"]),
        ("SELECT obj_description('teams'::regclass) AS d", ["Who works with whom"]),
        ("SELECT col_description('teams'::regclass, 2) AS d", ["As on the door"]),
        ("SELECT last_value AS d FROM pg_sequences WHERE sequencename = 'people_id_seq'", [50]),
        ("SELECT qual AS d FROM pg_policies WHERE policyname = 'people_seen'", ["((age)::integer > 0)"]),
        ("SELECT qual AS d FROM pg_policies WHERE policyname = 'asks_hidden'", [None]),
        ("SELECT pg_get_triggerdef(oid) LIKE '%WHEN%' AS d FROM pg_trigger WHERE tgname = 'people_touched'", [True]),
        (
            "SELECT constraint_type AS d FROM information_schema.table_constraints WHERE constraint_name = 'people_named'",
            ["UNIQUE"],
        ),
        ("SELECT setting AS d FROM pg_settings WHERE name = 'max_index_keys'", ["32"]),
        ("SELECT count(*) AS d FROM pg_class WHERE relname IN ('hidden', 'over_hidden', 'vouched')", [3]),
        ("SELECT EXISTS (SELECT FROM pg_proc WHERE proname = 'lower' AND prosrc = 'lower') AS d", [True]),
    ],
)  # fmt: skip
async def test_the_rest_is_told_as_it_is(ask: Rig, sql: str, told: list[object]) -> None:
    rows = [row["d"] for row in await ask.rows(sql)]
    assert sorted(rows, key=str) == sorted(told, key=str)


async def test_masked_columns_keep_their_defaults_and_constants(databases: dict[str, str]) -> None:
    masks = "column_masks: {people: {name: full-redact}}\n" + POLICY
    async with rig(databases["look_at_one"], masks) as made:
        default = await made.rows(f"{DEFAULT} WHERE table_name = 'people' AND column_name = 'name'")
        assert default == [{"d": None}]
        defined = "SELECT indexdef FROM pg_indexes WHERE indexname = '{}'"
        assert await made.rows(defined.format("people_lower")) == [{"indexdef": None}]
        assert "people_born" in str(await made.rows(defined.format("people_born")))
        checks = await made.rows(f"{CHECKS} WHERE conrelid = 'people'::regclass AND contype = 'c'")
        assert [row["d"] is not None for row in checks] == [True, True]
        assert await made.rows("SELECT pg_get_viewdef('app.grown') AS d") == [{"d": None}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT pg_get_functiondef('grabs'::regproc)",
        "SELECT * FROM pg_stats",
        "SELECT * FROM pg_statistic_ext_data",
        "SELECT query FROM pg_stat_activity",
        "SELECT * FROM pg_authid",
        "SELECT pg_read_file('postgresql.conf')",
        "SELECT * FROM pg_stat_database",
        "EXPLAIN SELECT * FROM pg_constraint WHERE conname LIKE 'secret%'",
        "EXPLAIN SELECT pg_get_viewdef('over_hidden')",
        "CREATE VIEW kept AS SELECT * FROM pg_constraint",
        "CREATE MATERIALIZED VIEW kept AS SELECT pg_get_viewdef('over_hidden')",
    ],
)
async def test_what_cannot_be_shown_in_part_is_refused(databases: dict[str, str], sql: str) -> None:
    async with rig(databases["look_at_one"], WRITING) as made:
        assert isinstance(await made(sql), Denied)


async def test_an_argument_is_evaluated_once(ask: Rig) -> None:
    rows = await ask.rows("SELECT pg_get_viewdef(o) IS NULL AS d FROM (SELECT 'app.grown'::regclass AS o, random() AS r) AS q")
    assert rows == [{"d": False}]
