"""Two databases that differ in the raw values of masked columns alone, and how their answers are compared.

`GATEWAYD_INTERFERENCE=100000` runs that many statements, `GATEWAYD_INTERFERENCE_SEED` starts elsewhere."""

import os

from tests.masking.masking_rig import Failed, Outcome

COUNT = int(os.environ.get("GATEWAYD_INTERFERENCE", "400"))
SEED = int(os.environ.get("GATEWAYD_INTERFERENCE_SEED", "1"))
RAW = ("mail", "tel", "card", "secret")
"""What raw values begin with."""


def comparable(outcome: Outcome) -> object:
    if isinstance(outcome, Failed) and outcome.sqlstate == "57014":
        return Failed("57014", "", None, None)
    return outcome


def raw_words(sql: str) -> list[str]:
    return [f"{word}{digit}" for word in RAW for digit in range(1, 10) if f"{word}{digit}" not in sql]
