"""Non-interference of post_exec by machine (decision 10), as `test_masking_interference.py` has it of source_rewrite.

Most of these statements use masked columns for more than showing them, and are refused; in exchange nothing is rewritten, so the
raw values do come to the gateway. The second supply shows plainly what it reads, so most of it is answered.
"""

import os
from collections import Counter

import pytest

from tests.conftest import Postgres
from tests.masking.masking_rig import rig
from tests.masking.masking_shop import HIDING, SCHEMA, data
from tests.masking.masking_statements import RELATIONS, Column, Item, Statements
from tests.masking.test_masking_interference import COUNT, SEED, comparable, raw_words

MASKED = frozenset(
    {
        "email",
        "ssn",
        "phone",
        "birthday",
        "salary",
        "age",
        "profile",
        "tags",
        "card",
        "ip",
        "label",
        "badge",
        '"Näme x"',
        '"Wert"',
    }
)


class PlainStatements(Statements):
    """Masked columns stand in select lists only, and there as they are; what is computed is computed with others."""

    def column(self, items: list[Item], kind: str) -> str:  # type: ignore[override]  # the same in a narrower form
        kept = [Item(item.alias, tuple(column for column in item.columns if column.name not in MASKED)) for item in items]
        return super().column(kept, kind)

    def select(self, depth: int) -> tuple[str, tuple[Column, ...]]:
        sql, columns = super().select(depth)
        if not sql.startswith("SELECT ") or " AS o0" not in sql or "DISTINCT" in sql or "GROUP BY" in sql or self.chance(0.4):
            return sql, columns
        relation = self.random.choice([name for name in RELATIONS if any(each.name in MASKED for each in RELATIONS[name])])
        shown = self.random.choice([each for each in RELATIONS[relation] if each.name in MASKED])
        key = '"Id"' if "Größe" in relation else "id"
        value = f"(SELECT m.{shown.name} FROM {relation} AS m WHERE m.{key} = {self.random.randint(1, 40)})"
        return f"SELECT {value} AS shown, {sql.removeprefix('SELECT ')}".replace("ORDER BY 1", "ORDER BY 2"), ()


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
