"""The preview of a held write: its row count and its plan, for the reviewer and never for the agent (docs/approvals.md, Preview).

Both come from statements that go through the whole corridor as queries of their own (`ask`). If counting fails, the preview says
why it has no count.
"""

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final

import msgspec

from gatewayd.approvals.counting import Counting, Uncountable, counting, explain
from gatewayd.approvals.messages import Preview
from gatewayd.approvals.words import legible
from gatewayd.catalog import Catalog
from gatewayd.corridor.answer import Answer, Answered, Broken, Refused
from gatewayd.policy.file.model import Limits
from gatewayd.sql.facts.statement import Statement

COUNT_MS: Final = 2000
_LOCK_MS: Final = 500
_ROWS: Final = 200
_BYTES: Final = 32 * 1024
PLAN_LINES: Final = 100
LINE_CHARACTERS: Final = 300
_TIMED_OUT: Final = "57014"

Ask = Callable[[str], Awaitable[Answer]]


class _Count(msgspec.Struct):
    rows: int


def limits(policy: Limits) -> Limits:
    """The limits of the gateway's own statements, never above those of the policy."""
    return Limits(_ROWS, _BYTES, min(policy.statement_timeout_ms, COUNT_MS), min(policy.lock_timeout_ms, _LOCK_MS))


async def preview(statement: Statement, catalog: Catalog, ask: Ask) -> Preview:
    """The row count and the plan of a write; either may be missing."""
    began = perf_counter()
    try:
        made = counting(statement, catalog)
        rows, why = await _count(made, ask)
    except Uncountable as reason:
        rows, why = None, str(reason)
    took_ms = round((perf_counter() - began) * 1000) if rows is not None else None
    text = explain(statement)
    plan = _lines(await ask(text)) if text is not None else ()
    return Preview(rows, plan, took_ms, why)


async def _count(made: Counting, ask: Ask) -> tuple[int | None, str | None]:
    if made.sql is None:
        return made.rows, made.why
    match await ask(made.sql):
        case Answered(result=result) if result.rows:
            return msgspec.json.decode(result.rows[0], type=_Count).rows, made.why
        case Refused(denied=denied):
            return None, legible(f"the policy does not let its rows be read: {denied.reason}", 500)
        case Broken(sqlstate=sqlstate) if sqlstate == _TIMED_OUT:
            return None, f"counting took longer than {COUNT_MS // 1000} s"
        case Broken(sqlstate=sqlstate):
            return None, f"the database could not count (SQLSTATE {sqlstate})"
        case _:
            return None, "it could not be counted"


def _lines(answer: Answer) -> tuple[str, ...]:
    if not isinstance(answer, Answered):
        return ()
    rows = [msgspec.json.decode(row, type=dict[str, str]) for row in answer.result.rows[:PLAN_LINES]]
    return tuple(legible(line, LINE_CHARACTERS) for row in rows for line in row.values())
