"""Raw values under consistent-hash and pseudonymize influence answers through their transform and in no other way (decision 10).

By machine, in both paths: a statement over the masked shop answers what it answers, without masks, over a shop that stores the
transformed values. Counts and seeds as in `test_masking_interference.py`.
"""

import json
import re
from collections import Counter

import pytest

from gatewayd.policy.file.model import ConsistentHash, Mask, Pseudonymize
from gatewayd.postgres.execute.result import Result
from tests.conftest import Postgres
from tests.masking.interference import COUNT, SEED
from tests.masking.masking_reference import masked
from tests.masking.masking_rig import Failed, Outcome, rig
from tests.masking.masking_shop import KEYED, SCHEMA, data
from tests.masking.masking_statements import Item, Statements
from tests.masking.plain_statements import PlainStatements

BY_KIND: dict[str, Mask] = {
    "mail": Pseudonymize("email"),
    "ssn": ConsistentHash(),
    "tel": ConsistentHash(),
    "card": ConsistentHash(),
    "l": Pseudonymize("name"),
    "b": ConsistentHash(),
    "w": Pseudonymize("phone"),
}
"""What KEYED does, by what the shop's raw texts begin with."""


def transformed(kind: str, value: str) -> str:
    mask = BY_KIND.get(kind)
    return value if mask is None else str(json.loads(masked(mask, "text", json.dumps(value).encode())))


class Determined(Statements):
    """Statements whose answer the data alone decides, but for the order of its rows."""

    def read(self) -> str:
        while True:
            sql = super().read().removeprefix("EXPLAIN ")
            if "row_to_json" not in sql or " (k0" not in sql:  # a row has its table's names there, not those of the alias
                return sql

    def tail(self, width: int) -> str:
        return re.sub(r" LIMIT \d+", "", super().tail(width))

    def window(self, items: list[Item]) -> str:  # type: ignore[override]  # the same in a narrower form
        found = super().window(items)
        return re.sub(r"row_number\(\)|ntile\(3\)|lag\([^()]*\)", "rank()", found)


class PlainDetermined(Determined, PlainStatements):
    """Such that post_exec answers most of them as well."""


@pytest.mark.timeout(0 if COUNT > 1000 else 600)
@pytest.mark.parametrize("path", ["source_rewrite", "post_exec"])
async def test_answers_are_those_of_the_transformed_values(postgres: Postgres, path: str) -> None:
    rewriting = path == "source_rewrite"
    statements = Determined(SEED) if rewriting else PlainDetermined(SEED)
    raw, shown = (postgres.create_database(SCHEMA + each) for each in (data(11), data(11, stored=transformed)))
    seen: Counter[str] = Counter()
    async with rig(raw, KEYED, rewriting=rewriting) as ask, rig(shown, PLAIN, rewriting=rewriting) as tell:
        for _ in range(COUNT):
            sql = statements.read()
            answer = await ask(sql)
            if isinstance(answer, Result | Failed):
                compared = comparable(answer), comparable(await tell(sql))
                assert compared[0] == compared[1] or any(error in compared for error in OF_PLANS), sql
            seen[f"{type(answer).__name__}{', masked' if ask.columns else ''}"] += 1
    print(f"seed {SEED}, {path}: {dict(seen)}")
    assert seen["Result, masked"] > COUNT * 0.15, seen


PLAIN = KEYED.partition("column_masks")[0]


OF_PLANS = ("0A000", "57014")
"""FULL JOIN by a condition that only some plans can do, and the statement timeout: a mask's expression may lead to another plan."""


def comparable(outcome: Outcome) -> object:
    if isinstance(outcome, Result):
        return len(outcome.rows) if outcome.truncated else sorted(outcome.rows)
    return outcome.sqlstate if isinstance(outcome, Failed) else outcome
