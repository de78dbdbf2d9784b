"""Non-interference by machine for statements about names: `masking_names.py`, on both paths.

`GATEWAYD_INTERFERENCE=100000` runs that many statements, `GATEWAYD_INTERFERENCE_SEED` starts elsewhere.
"""

from collections import Counter

import pytest

from gatewayd.masking.plan import Withheld
from tests.conftest import Postgres
from tests.masking.interference import COUNT, SEED, comparable, raw_words
from tests.masking.masking_names import EXTRA, FUNCTIONS, MASKS, Names
from tests.masking.masking_rig import Denied, rig
from tests.masking.masking_shop import HIDING, SCHEMA, data

POLICY = HIDING.replace("column_masks:\n", f"column_masks:\n{MASKS}") + 'functions: {allow: ["public.*"]}\n'
PRODUCTIONS = 70


@pytest.mark.timeout(0 if COUNT > 1000 else 600)
@pytest.mark.parametrize("rewriting", [True, False], ids=["source_rewrite", "post_exec"])
async def test_names_never_lead_to_raw_values(postgres: Postgres, rewriting: bool) -> None:
    raw = "UPDATE made SET raw = 'x' || id + {0}; INSERT INTO rowed VALUES (1, 'raw{0}');"
    dsns = [postgres.create_database(SCHEMA + data(seed, same_sizes=True) + EXTRA + raw.format(seed)) for seed in (11, 12)]
    seen: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    async with rig(dsns[0], POLICY, rewriting=rewriting) as one, rig(dsns[1], POLICY, rewriting=rewriting) as other:
        statements = Names(SEED)
        for number in range(COUNT):
            before = Counter(statements.produced)
            sql = statements.write() if number % 5 == 4 else statements.read()
            answers = [await one(sql), await other(sql)]
            assert comparable(answers[0]) == comparable(answers[1]), (sql, answers)
            assert not any(word in str(answers[0]) + str(answers[1]) for word in raw_words(sql)), sql
            kind = type(answers[0]).__name__
            seen[kind] += 1
            if not isinstance(answers[0], Denied | Withheld):
                answered.update((statements.produced - before).keys())
    print(f"seed {SEED}: {dict(seen)}, {len(statements.produced)} productions, {len(answered)} of them allowed")
    print("never allowed:", sorted(statements.produced.keys() - answered.keys()))
    assert FUNCTIONS.keys() <= statements.produced.keys()
    assert len(statements.produced) >= PRODUCTIONS
    assert seen["Denied"] + seen["Withheld"] < COUNT * (0.4 if rewriting else 0.67), seen
