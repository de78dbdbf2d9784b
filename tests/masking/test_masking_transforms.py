"""The masks in SQL, on a real server, and the keyed ones in Python give the bytes that docs/policy.md says, for every value of every
type they fit (decision 10)."""

import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from decimal import Decimal

import msgspec
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewayd.catalog import Catalog, Type, unread
from gatewayd.masking.rules.families import Family, family, misfit
from gatewayd.masking.transforms.dictionaries import ENTRIES
from gatewayd.masking.transforms.in_python import Keyed, transform
from gatewayd.masking.transforms.in_sql import Parameters, masked
from gatewayd.policy.file.model import ConsistentHash, Generalize, Limits, Mask, Noise, Partial, Pseudonymize
from gatewayd.postgres.pool import Pool
from tests.conftest import Postgres
from tests.masking.masking_reference import masked as reference
from tests.masking.masking_table import MASKS, SALT, VALUES

Pairs = list["Pair"]
Ask = Callable[[Pool], Awaitable[Pairs]]

CASES = [
    pytest.param(kind, type_, mask, id=f"{type_}-{index}-{type(mask).__name__}")
    for kind, type_, _ in VALUES
    for index, mask in enumerate(MASKS)
    if misfit(mask, kind) is None
]
LITERALS = {(kind, type_): values for kind, type_, values in VALUES}


class Pair(msgspec.Struct, frozen=True):
    raw: bytes  # the JSON value as it is
    text: bytes | None
    masked: bytes  # the JSON value as the SQL expression masks it


async def asked(pool: Pool, type_: str, kind: Family, mask: Mask, values: list[str | None]) -> list[Pair]:
    parameters = Parameters(SALT)
    expression = masked(mask, 'm."c"', kind, parameters)
    literals = [f"(NULL::{type_})" if value is None else f"('{value}'::{type_})" for value in values]
    sql = (
        "SELECT row_to_json(r)::text AS r, m.c::text AS c, row_to_json(t)::text AS t FROM (SELECT * FROM (VALUES "
        f"{', '.join(literals)}) AS v (c)) AS m, LATERAL (SELECT m.c AS v) AS r, LATERAL (SELECT {expression} AS v) AS t"
    )
    async with pool.connection() as connection:
        rows = await connection.fetch(sql, *parameters.values)

    def value(text: str) -> bytes:
        return text.removeprefix('{"v":').removesuffix("}").encode()

    return [Pair(value(row["r"]), row["c"] if row["c"] is None else row["c"].encode(), value(row["t"])) for row in rows]


def hold(mask: Mask, kind: Family, pairs: Pairs) -> None:
    expected = [reference(mask, kind, pair.raw) for pair in pairs]
    assert [pair.masked for pair in pairs] == expected
    if isinstance(mask, Keyed):
        assert transform(mask, SALT)([pair.text for pair in pairs]) == expected


def python(mask: Keyed, text: bytes) -> bytes:
    (value,) = transform(mask, SALT)([text])
    return value


@pytest.mark.parametrize(("kind", "type_", "mask"), CASES)
async def test_sql_and_python_mask_as_the_policy_page_says(pool: Pool, kind: Family, type_: str, mask: Mask) -> None:
    pairs = await asked(pool, type_, kind, mask, [*LITERALS[kind, type_], None])
    hold(mask, kind, pairs)
    assert pairs[-1] == Pair(b"null", None, b"null")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1, max_size=8),
    mask=st.sampled_from([mask for mask in MASKS if misfit(mask, "text") is None]),
)
def test_any_text(run_in_trio: Callable[[Ask], Pairs], values: list[str], mask: Mask) -> None:
    quoted: list[str | None] = [value.replace("'", "''") for value in values]
    hold(mask, "text", run_in_trio(lambda pool: asked(pool, "text", "text", mask, quoted)))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=5), min_size=1, max_size=8),
    mask=st.sampled_from([mask for mask in MASKS if misfit(mask, "numeric") is None]),
)
def test_any_number(run_in_trio: Callable[[Ask], Pairs], values: list[Decimal], mask: Mask) -> None:
    hold(mask, "numeric", run_in_trio(lambda pool: asked(pool, "numeric", "numeric", mask, [f"{value:f}" for value in values])))


def test_a_hash_is_the_hmac_of_the_text() -> None:
    expected = hmac.new(SALT, b"1.50", "sha256").hexdigest()[:32]
    assert python(ConsistentHash(), b"1.50") == f'"{expected}"'.encode()


@pytest.mark.parametrize(
    ("mask", "text", "expected"),
    [
        (Partial(keepStart=1, keepEnd=4), "alice@example.com", "a••••••••••••.com"),
        (Partial(keepStart=2, keepEnd=2), "abcd", "••••"),
        (Partial(keepStart=2, keepEnd=2), "abcde", "ab•de"),
        (Partial(keepStart=2), "", "•"),
        (Partial(), "日本", "••"),
        (Partial(keepEnd=1, glyph="*"), "日本", "*本"),
    ],
)
async def test_partial_counts_characters(pool: Pool, mask: Partial, text: str, expected: str) -> None:
    (pair,) = await asked(pool, "text", "text", mask, [text])
    assert msgspec.json.decode(pair.masked) == expected


@pytest.mark.parametrize(
    ("width", "value", "expected"),
    [
        (10, "27", b"20"),
        (10, "-27", b"-30"),
        (10, "-30", b"-30"),
        (1000, "-9223372036854775808", b"-9223372036854776000"),
        (3, "2.99999999999999999999999", b"0.00000000000000000000000"),
        (0.5, "17.75", b"17.50"),
        (0.1, "0.30000000000000004", b"0.30000000000000000"),
    ],
)
async def test_numbers_are_cut_exactly(pool: Pool, width: float, value: str, expected: bytes) -> None:
    (pair,) = await asked(pool, "numeric", "numeric", Generalize(width), [value])
    assert pair.masked == expected


def test_a_pseudonym_is_never_the_value_itself() -> None:
    for kind, entries in ENTRIES.items():
        assert len(set(entries)) == len(entries) == 256
        for entry in entries:
            assert msgspec.json.decode(python(Pseudonymize(kind), entry.encode())) in set(entries) - {entry}


def test_noise_stays_within_its_ratio_and_hides_small_numbers() -> None:
    for number in range(1, 400):
        noisy = Decimal(python(Noise(0.1), str(number).encode()).decode())
        assert Decimal("0.9") * number <= noisy <= Decimal("1.1") * number
    assert len({python(Noise(0.1), str(number).encode()) for number in range(1, 400)}) > 390


def test_hash_and_choice_share_no_digits() -> None:
    """Who sees a hash of a value must not know how the same value was given its noise or its pseudonym."""
    digest = hmac.new(SALT, b"x", "sha256").hexdigest()
    assert python(ConsistentHash(), b"x") == f'"{digest[:32]}"'.encode()
    assert python(Pseudonymize("name"), b"x").decode().strip('"') == ENTRIES["name"][int(digest[32:47], 16) % 256]


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("text", "text"),
        ("character", "blank-padded"),
        ("public.citext", "text"),
        ('app."Mail"', "text"),
        ("app.age", "integer"),
        ("app.ghost", "other"),
        ("text[]", "other"),
        ("money", "other"),
        ('"char"', "other"),
    ],
)
def test_families(type_: str, expected: Family) -> None:
    types = {
        ("public", "citext"): Type("public", "citext", "base", extension="citext"),
        ("app", "Mail"): Type("app", "Mail", "domain", base="character varying"),
        ("app", "age"): Type("app", "age", "domain", base="integer"),
    }
    catalog = Catalog(revision=1, database="d", types=types)
    assert family(type_, catalog) == expected
    assert family("text", unread("d")) == "text"


@pytest.fixture
async def pool(postgres: Postgres) -> AsyncIterator[Pool]:
    pool = Pool("test", postgres.dsn(), Limits(), 2)
    yield pool
    await pool.aclose()


@pytest.fixture
def run_in_trio(postgres: Postgres) -> Callable[[Ask], Pairs]:
    """Runs `ask(pool)` to its end: hypothesis calls its test from no event loop."""

    async def main(ask: Ask) -> Pairs:
        pool = Pool("test", postgres.dsn(), Limits(), 1)
        try:
            return await ask(pool)
        finally:
            await pool.aclose()

    return lambda ask: trio.run(main, ask)
