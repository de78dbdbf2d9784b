"""Non-interference of post_exec by machine (decision 10), as `test_masking_interference.py` has it of source_rewrite.

Most of these statements use masked columns for more than showing them, and are refused; in exchange nothing is rewritten, so the
raw values do come to the gateway. The second supply shows plainly what it reads, so most of it is answered.
"""

import os
from collections import Counter

import pytest

from tests.conftest import Postgres
from tests.masking.interference import COUNT, SEED, comparable, raw_words
from tests.masking.masking_rig import rig
from tests.masking.masking_shop import HIDING, SCHEMA, data
from tests.masking.masking_statements import Statements
from tests.masking.plain_statements import PlainStatements


@pytest.mark.timeout(0 if COUNT > 1000 else 600)
@pytest.mark.parametrize("kind", ["reads", "writes", "plain"])
async def test_raw_values_of_masked_columns_influence_nothing(postgres: Postgres, kind: str) -> None:
    writes = kind == "writes"
    dsns = [postgres.create_database(SCHEMA + data(seed, same_sizes=writes)) for seed in (11, 12)]
    seen: Counter[str] = Counter()
    async with rig(dsns[0], HIDING, rewriting=False) as one, rig(dsns[1], HIDING, rewriting=False) as other:
        statements = PlainStatements(SEED) if kind == "plain" else Statements(SEED)
        for number in range(COUNT):
            sql = statements.write() if writes and number % 3 else statements.read()
            answers = [await one(sql), await other(sql)]
            if os.environ.get("GATEWAYD_INTERFERENCE_SHOW"):
                print(
                    type(answers[0]).__name__,
                    getattr(answers[0], "reason_agent", getattr(answers[0], "message", ""))[:140],
                    "|",
                    sql,
                )
            assert comparable(answers[0]) == comparable(answers[1]), sql
            assert not any(word in str(answers[0]) + str(answers[1]) for word in raw_words(sql)), sql
            seen[type(answers[0]).__name__] += 1
    print(f"seed {SEED}: {dict(seen)}")
    assert seen["Result"] > COUNT * (0.4 if kind == "plain" else 0.1), seen
