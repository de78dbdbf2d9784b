"""Flips: which of the last week's statements a new policy would answer otherwise than they were answered.

Each kind of statement that was recorded is decided again by the engine's own judge (`judge.py`), over the catalog that
a gateway has sent last; nothing runs. What the policy in force decides that way already is no flip of this change. Bounds:
KINDS_MOST kinds, the most frequent first, and `judge_s` seconds of a worker thread, one at a time in a replica; the answer says
how many calls were looked at, and why others could not be judged.
"""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec
import trio

from gatewayd.catalog import Catalog
from gatewayd.control.console import Console
from gatewayd.control.policies.held_catalogs import catalog_heads
from gatewayd.control.policies.recorded_kinds import Kind, Week, texts_of, week_of
from gatewayd.judge import ANY_SALT, judge
from gatewayd.policy.file.model import Policies, Policy
from gatewayd.policy.tools.expect import CaseVerdict, verdict_of
from gatewayd.policy.tools.replay import Flip, Replay, change_of
from gatewayd.sql.text.redact import redacted

SHOWN: Final = 100
_AT_ONCE: Final = 200
_NAMES: Final = 50

NO_CATALOG: Final = "no gateway has sent the catalog of this database yet"
NO_DATABASE: Final = "the new policy has no database of this name"
NO_TEXT: Final = "the text is not held here: it was erased, kept by its gateway, or longer than 100 kB"
NO_TIME: Final = "there were more kinds of statements than one look takes"


class FlipCount(msgspec.Struct, frozen=True):
    """`calls` recorded calls with this rule, table or agent would change so."""

    change: Flip
    name: str
    calls: int


class FlippedStatement(msgspec.Struct, frozen=True):
    """`query_id` is one of the calls. `sql` is without its constants where the reader may not see the audit; None: it cannot be
    shown so. `rule` and `reason` are of the new answer, but for what is now allowed: there the rule that refused."""

    change: Flip
    calls: int
    database: str
    rule: str
    reason: str
    sql: str | None
    fingerprint: str
    query_id: str
    tables: list[str]
    agents: dict[str, int]
    last_ms: int


class NotJudged(msgspec.Struct, frozen=True):
    database: str
    why: str
    calls: int


class Flips(msgspec.Struct, frozen=True):
    """Counted in calls, but for `kinds`. `calls` were recorded since `since_day` (days since 1970, UTC); `looked_at` of them were
    decided again. `already`: they flip under the policy in force, too. `statements`: the most frequent SHOWN."""

    since_day: int
    calls: int
    looked_at: int
    kinds: int
    now_denied: int
    now_allowed: int
    now_held: int
    same: int
    other_rule: int
    already: int
    by_rule: list[FlipCount]
    by_table: list[FlipCount]
    by_agent: list[FlipCount]
    statements: list[FlippedStatement]
    statements_left_out: int
    not_judged: list[NotJudged]

    @property
    def flips(self) -> int:
        return self.now_denied + self.now_allowed + self.now_held


async def find_flips(console: Console, project_id: str, new: Policies, in_force: Policies | None, *, constants: bool) -> Flips:
    """`constants`: whether statements are shown with them. Waits for its turn: one at a time in a replica.

    Cancellation: it ends after at most the statements that the thread has in hand.
    """
    async with console.judging:
        week = await week_of(console, project_id)
        catalogs = await _catalogs(console, project_id, week)
        looking = _Looking(_by_name(new), _by_name(in_force), catalogs, console.bounds.judge_s)
        for at in range(0, len(week.kinds), _AT_ONCE):
            if looking.is_over:
                break
            some = [kind for kind in week.kinds[at : at + _AT_ONCE] if looking.can_judge(kind)]
            texts = await texts_of(console, project_id, some)
            await trio.to_thread.run_sync(looking.judge, some, texts)
        return await trio.to_thread.run_sync(_summed, looking, week, constants)


async def _catalogs(console: Console, project_id: str, week: Week) -> dict[str, Catalog]:
    found = {}
    heads = await catalog_heads(console.store, project_id)
    for name in {kind.database_name for kind in week.kinds} & heads.keys():
        catalog = await console.catalogs.find(console.store, project_id, heads[name])
        if catalog is not None:
            found[name] = catalog
    return found


def _by_name(policies: Policies | None) -> Mapping[str, Policy]:
    return {each.name: each.policy for each in policies.databases or ()} if policies is not None else {}


class _Looking:
    """One look: what has been decided again so far. Filled in a thread, one batch after the other."""

    def __init__(
        self, new: Mapping[str, Policy], in_force: Mapping[str, Policy], catalogs: Mapping[str, Catalog], judge_s: float
    ) -> None:
        self.replay: Final = Replay()
        self.already = 0
        self.not_judged: Final[Counter[tuple[str, str]]] = Counter()
        self._new = new
        self._in_force = in_force
        self._catalogs = catalogs
        self._judge_s = judge_s
        self._spent_s = 0.0

    @property
    def is_over(self) -> bool:
        return self._spent_s > self._judge_s

    def can_judge(self, kind: Kind) -> bool:
        why = None
        if kind.database_name not in self._new:
            why = NO_DATABASE
        elif kind.database_name not in self._catalogs:
            why = NO_CATALOG
        if why is not None:
            self.not_judged[kind.database_name, why] += kind.calls
        return why is None

    def judge(self, kinds: list[Kind], texts: Mapping[str, str]) -> None:
        began = time.perf_counter()
        for kind in kinds:
            sql = texts.get(kind.query_id)
            if sql is None:
                self.not_judged[kind.database_name, NO_TEXT] += kind.calls
            elif self._spent_s + time.perf_counter() - began <= self._judge_s:
                self._compare(kind, sql)
        self._spent_s += time.perf_counter() - began

    def _compare(self, kind: Kind, sql: str) -> None:
        name = kind.database_name
        verdict = self._verdict(sql, self._new[name], self._catalogs[name])
        recorded = kind.recorded(sql)
        if change_of(recorded, verdict) is not None and name in self._in_force:
            now = self._verdict(sql, self._in_force[name], self._catalogs[name])
            if now.decision == verdict.decision:
                self.already += recorded.count
                return
        self.replay.compare(recorded, verdict)

    def _verdict(self, sql: str, policy: Policy, catalog: Catalog) -> CaseVerdict:
        return verdict_of(judge(sql, policy, catalog, salt=ANY_SALT).final_decision)


def _summed(looking: _Looking, week: Week, constants: bool) -> Flips:
    replay, totals = looking.replay, looking.replay.totals
    looked_at = totals.statements + looking.already
    not_judged = [NotJudged(database, why, calls) for (database, why), calls in looking.not_judged.most_common(_NAMES)]
    late = week.calls - looked_at - looking.not_judged.total()
    if late > 0:
        not_judged.append(NotJudged("", NO_TIME, late))
    shapes = replay.shapes()
    return Flips(
        week.since_day, week.calls, looked_at, len(week.kinds), totals.now_denied, totals.now_allowed, totals.now_held,
        totals.same, totals.other_rule, looking.already, _counts(replay.by_rule), _counts(replay.by_table),
        _counts(replay.by_agent),
        [
            FlippedStatement(
                each.change, each.count, each.database, each.rule, each.reason, each.sql if constants else redacted(each.sql),
                each.fingerprint, each.id, list(each.tables), dict(Counter(each.agents).most_common(_NAMES)), each.last_ts,
            )
            for each in shapes[:SHOWN]
        ],
        totals.shapes_left_out + sum(each.count for each in shapes[SHOWN:]),
        not_judged,
    )  # fmt: skip


def _counts(found: Counter[tuple[Flip, str]]) -> list[FlipCount]:
    return [FlipCount(change, name, calls) for (change, name), calls in found.most_common(_NAMES)]
