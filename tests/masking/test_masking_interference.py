"""Non-interference by machine (decisions 3.10, 10): two databases that differ in the raw values of masked columns alone answer every
statement with the same bytes: rows, their order and number, errors, refusals.

`GATEWAYD_INTERFERENCE=100000` runs that many statements, `GATEWAYD_INTERFERENCE_SEED` starts elsewhere.
"""

from collections import Counter

import pytest

from gatewayd.postgres.execute.result import Result
from tests.conftest import Postgres
from tests.masking.interference import COUNT, SEED, comparable, raw_words
from tests.masking.masking_rig import rig
from tests.masking.masking_shop import HIDING, SCHEMA, data
from tests.masking.masking_statements import Statements


@pytest.mark.timeout(0 if COUNT > 1000 else 600)
@pytest.mark.parametrize("writes", [False, True], ids=["reads", "writes"])
async def test_raw_values_of_masked_columns_influence_nothing(postgres: Postgres, writes: bool) -> None:
    dsns = [postgres.create_database(SCHEMA + data(seed, same_sizes=writes)) for seed in (11, 12)]
    seen: Counter[str] = Counter()
    async with rig(dsns[0], HIDING) as one, rig(dsns[1], HIDING) as other:
        statements = Statements(SEED)
        for number in range(COUNT):
            sql = statements.write() if writes and number % 3 else statements.read()
            answers = [await one(sql), await other(sql)]
            assert comparable(answers[0]) == comparable(answers[1]), sql
            assert not any(word in str(answers[0]) + str(answers[1]) for word in raw_words(sql)), sql
            seen[type(answers[0]).__name__] += 1
    print(f"seed {SEED}: {dict(seen)}")
    assert seen["Result"] > COUNT * (0.2 if writes else 0.5), seen


def test_results_are_compared_by_their_bytes() -> None:
    assert comparable(Result((b"1",), 1)) != comparable(Result((b"2",), 1))
