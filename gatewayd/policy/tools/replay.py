"""Recorded statements decided again under another policy: what would flip, by rule, table and agent (decision 14). Pure.

Statements are kept by their shape (fingerprint), so that a million calls of one program are one line. Memory is bounded by
SHAPES, the tallies by the names of agents and tables.
"""

from collections import Counter
from typing import Final, Literal

import msgspec

from gatewayd.policy.tools.expect import CaseVerdict

Flip = Literal["now denied", "now allowed", "now held"]
SHAPES: Final = 5000
NO_AGENT: Final = "-"


class Recorded(msgspec.Struct, frozen=True):
    """One call as the audit file has it, or `count` alike. `decision` None: it was held, or its DECIDED row is missing.
    `approved`: a human let it run."""

    id: str
    ts: int
    database: str
    agent: str | None
    sql: str
    fingerprint: str
    decision: Literal["ALLOW", "DENY"] | None = None
    rule: str | None = None
    tables: tuple[str, ...] = ()
    approved: bool = False
    count: int = 1
    token: str = ""
    """The id of the agent's token, "" where there was none: who is tainted by what it reads."""

    @property
    def was_held(self) -> bool:
        """A human decided it: the policy itself had held it."""
        return self.approved or self.rule in ("approval_denied", "approval_expired")


class StatementShape(msgspec.Struct):
    """Statements of one fingerprint that flip in one way. `sql` and `id` are of the first that came."""

    database: str
    change: Flip
    rule: str
    reason: str
    fingerprint: str
    sql: str
    id: str
    tables: tuple[str, ...]
    first_ts: int
    last_ts: int
    count: int = 0
    agents: dict[str, int] = {}


class Totals(msgspec.Struct):
    """How many statements were read, and what came of them. The last five are not compared, or not among `statements`."""

    statements: int = 0
    same: int = 0
    other_rule: int = 0  # still denied, by another rule
    now_denied: int = 0
    now_allowed: int = 0
    now_held: int = 0
    undecided: int = 0  # no decision is recorded
    cut: int = 0  # recorded up to the limit only, so not decided again
    other_database: int = 0  # the new policy has no database of that name
    shapes_left_out: int = 0  # flips that are counted and not listed

    @property
    def flips(self) -> int:
        """How many statements flip."""
        return self.now_denied + self.now_allowed + self.now_held


class Replay:
    """Takes one recorded statement and its new verdict after the other; the rest reads the sums."""

    def __init__(self, most_shapes: int = SHAPES) -> None:
        self._most_shapes = most_shapes
        self.totals = Totals()
        self.by_rule: Counter[tuple[Flip, str]] = Counter()
        self.by_table: Counter[tuple[Flip, str]] = Counter()
        self.by_agent: Counter[tuple[Flip, str]] = Counter()
        self._shapes: dict[tuple[str, str, Flip, str], StatementShape] = {}

    def shapes(self) -> list[StatementShape]:
        """The most frequent first."""
        return sorted(self._shapes.values(), key=lambda shape: -shape.count)

    def compare(self, recorded: Recorded, verdict: CaseVerdict) -> Flip | None:
        """Count one statement whose recorded decision is known."""
        count = recorded.count
        self.totals.statements += count
        change = change_of(recorded, verdict)
        if change is None:
            if recorded.decision == "DENY" and verdict.decision == "deny" and recorded.rule != verdict.rule:
                self.totals.other_rule += count
            else:
                self.totals.same += count
            return None
        rule = (recorded.rule or "") if change == "now allowed" else verdict.rule
        match change:
            case "now denied":
                self.totals.now_denied += count
            case "now allowed":
                self.totals.now_allowed += count
            case "now held":
                self.totals.now_held += count
        self.by_rule[change, rule] += count
        self.by_agent[change, recorded.agent or NO_AGENT] += count
        tables = recorded.tables or verdict.tables
        for table in tables:
            self.by_table[change, table] += count
        self._keep(recorded, verdict, change, rule, tables)
        return change

    def _keep(self, recorded: Recorded, verdict: CaseVerdict, change: Flip, rule: str, tables: tuple[str, ...]) -> None:
        key = (recorded.database, recorded.fingerprint, change, rule)
        shape = self._shapes.get(key)
        if shape is None:
            if len(self._shapes) >= self._most_shapes:
                self.totals.shapes_left_out += recorded.count
                return
            first = (recorded.fingerprint, recorded.sql, recorded.id, tables, recorded.ts, recorded.ts)
            shape = self._shapes[key] = StatementShape(recorded.database, change, rule, verdict.reason, *first)
        shape.count += recorded.count
        shape.last_ts = max(shape.last_ts, recorded.ts)
        agent = recorded.agent or NO_AGENT
        shape.agents[agent] = shape.agents.get(agent, 0) + recorded.count


def change_of(recorded: Recorded, verdict: CaseVerdict) -> Flip | None:
    """How the verdict differs from what was recorded; None when it does not, or the rule alone does."""
    was = "held" if recorded.was_held else "allow" if recorded.decision == "ALLOW" else "deny"
    # What was approved by nobody who is named reads ALLOW like any other. Under a policy that still holds, that is no change
    # worth a line, but it cannot be told apart from a statement that was never held, and hiding those would be worse.
    if was == verdict.decision:
        return None
    changes: dict[str, Flip] = {"deny": "now denied", "allow": "now allowed", "held": "now held"}
    return changes[verdict.decision]
