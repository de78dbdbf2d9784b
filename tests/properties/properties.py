"""The properties of one statement, and of a batch of them, on a pair of databases (decision 3.10)."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from gatewayd.policy.decide import decision as deciding
from gatewayd.policy.decide.outcomes import Allowed, Decision, Denied
from gatewayd.postgres.catalog.read_catalog import read_catalog
from gatewayd.postgres.execute.failure import FAILURES
from gatewayd.postgres.execute.result import ExecutionFailed
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests.properties.model import OF_THE_SESSION
from tests.properties.oracle import disagreements
from tests.properties.policies import ALL, HIDING_SOMETHING
from tests.properties.world import Answer, World

HIDDEN: Final = ("secrets", "hr.people", "hr.reviews", "events_2023", "animals_rare", "spy_kept")
MAKES: Final = re.compile(r"(CREATE (TABLE|VIEW|MATERIALIZED VIEW|INDEX|SEQUENCE)|SELECT) .*\bmade\b", re.DOTALL)
"""Definitions that are run: what they make is called `made` and can be dropped again."""
BY_NATURE: Final = frozenset({"57014", "54001", "55P03", "53200", "53000", "53100", "54000"})
"""Timeouts and exhausted memory: which row they strike at is chance."""
_DIFFERS: Final = re.compile(
    r"\b(" + "|".join(sorted(OF_THE_SESSION)) + r"|\w*read_only|pg_stat(?:io)?_\w*)\b|current_time|localtime|current_date",
    re.IGNORECASE,
)


class Finding(msgspec.Struct, frozen=True):
    kind: str  # crash, interference, effect, wall, disagreement, writes, wrap, fingerprint
    sql: str
    policy: str
    detail: str


class Counts:
    """What a run has tried."""

    def __init__(self) -> None:
        self.by: Counter[str] = Counter()
        self.denied: Counter[str] = Counter()

    def __getitem__(self, name: str) -> int:
        return self.by[name]


Decide = Callable[[str, str, World], Decision]


def decision(sql: str, policy: str, world: World) -> Decision:
    """As the pipeline decides."""
    statement = analyze(sql)
    found = deciding.decide(statement, ALL[policy], world.catalog)
    if isinstance(statement, Statement):
        deciding.unknown_names(statement, world.catalog)
    return found


def is_read(allowed: Allowed) -> bool:
    return allowed.statement.category == "read" and not allowed.statement.locks


def is_row_write(allowed: Allowed) -> bool:
    statement = allowed.statement
    return statement.explains == "no" and (
        statement.category == "row write" or (statement.category == "read" and statement.locks)
    )


async def examine(
    world: World, sql: str, policy: str, *, counts: Counts | None = None, decide: Decide = decision
) -> list[Finding]:
    """Everything about one statement under one policy, each step watched on its own. `decide` may be another one, to see that
    the properties notice it."""
    return await examine_batch(world, [(sql, policy)], counts or Counts(), alone=True, decide=decide)


async def examine_batch(
    world: World, statements: Iterable[tuple[str, str]], counts: Counts, *, alone: bool = False, decide: Decide = decision
) -> list[Finding]:
    """Findings about many statements. What changes the database is looked for after all of them, and then one by one."""
    findings: list[Finding] = []
    reads: list[tuple[str, str, Allowed]] = []
    writes: list[tuple[str, str, Allowed]] = []
    definitions: list[tuple[str, str, Allowed]] = []
    for sql, policy in statements:
        counts.by["statements"] += 1
        try:
            decided = decide(sql, policy, world)
        except Exception as error:
            findings.append(Finding("crash", sql, policy, repr(error)))
            continue
        if isinstance(decided, Denied):
            counts.by[f"denied: {decided.policy_rule}"] += 1
            counts.denied[re.sub(r"`[^`]*`|\d+", "…", decided.reason.partition(":")[2] or decided.reason)[:70]] += 1
        elif isinstance(decided, Allowed):
            counts.by["allowed"] += 1
            counts.by[f"allowed under {policy}"] += 1
            if is_read(decided):
                reads.append((sql, policy, decided))
            elif is_row_write(decided):
                writes.append((sql, policy, decided))
            elif decided.statement.category == "relation write" and policy in HIDING_SOMETHING and MAKES.match(sql):
                definitions.append((sql, policy, decided))
            else:
                counts.by["allowed definitions (decided, not run)"] += 1
    findings += await _reads(world, reads, counts, decide, alone=alone)
    if writes:
        findings += await _writes(world, writes, counts)
    for sql, policy, allowed in definitions:
        findings += await _defines(world, sql, policy, allowed, counts, decide)
    return findings


async def _reads(
    world: World, reads: list[tuple[str, str, Allowed]], counts: Counts, decide: Decide, *, alone: bool
) -> list[Finding]:
    findings: list[Finding] = []
    for sql, policy, allowed in reads:
        findings += [Finding("disagreement", sql, policy, each) for each in await disagreements(world, allowed, ALL[policy])]
    await world.level_xids()
    if alone:
        await world.one.renew()
    before = await world.one.state()
    rows = await world.one.rows() if alone else {}
    for sql, policy, allowed in reads:
        one = await world.one.answer(allowed, ALL[policy], world.catalog)
        other = await world.other.answer(allowed, ALL[policy], world.catalog)
        counts.by["reads run"] += 1
        counts.by["reads answered" if not isinstance(one, tuple) else "reads failed"] += 1
        if isinstance(one, tuple):
            counts.by[f"sqlstate {one[0]}"] += 1
            if one[0] == "XX000" and "wrapped" in one[1]:
                findings.append(Finding("wrap", sql, policy, one[1]))
        if isinstance(other, tuple) and other[0] == "25006":
            findings.append(Finding("wall", sql, policy, f"only the READ ONLY transaction stopped it: {other[1]}"))
        elif one != other and policy in HIDING_SOMETHING and not _differs_by_nature(allowed):
            if await _is_steady(world, allowed, policy, one, other):
                findings.append(Finding("interference", sql, policy, _difference(one, other)))
            else:
                counts.by["unsteady answers"] += 1
    after = await world.one.state()
    if alone:
        after |= await world.one.rows()
        before |= rows
    if before != after:
        if alone:
            findings += [Finding("effect", sql, policy, _changes(before, after)) for sql, policy, _ in reads]
        else:
            counts.by["batches looked into"] += 1
            counts.by[f"because of {_changes(before, after)}"] += 1
            await world.one.renew()
            for sql, policy, _ in reads:
                findings += [each for each in await examine(world, sql, policy, decide=decide) if each.kind == "effect"]
    return findings


def _differs_by_nature(allowed: Allowed) -> bool:
    return _DIFFERS.search(allowed.statement.sql) is not None or (allowed.statement.setting or "").endswith("read_only")


def _by_chance(*answers: Answer) -> bool:
    return any(isinstance(each, tuple) and each[0] in BY_NATURE for each in answers)


async def _is_steady(world: World, allowed: Allowed, policy: str, one: Answer, other: Answer) -> bool:
    """Whether each server answers as it did before; neither did by chance."""
    if _by_chance(one, other):
        return False
    for _ in range(2):
        again = [await each.answer(allowed, ALL[policy], world.catalog) for each in (world.one, world.other)]
        if again != [one, other]:
            return False
    return True


async def _writes(world: World, writes: list[tuple[str, str, Allowed]], counts: Counts) -> list[Finding]:
    """Row writes answer alike on both, leave both alike, and touch nothing that the policy hides."""
    findings: list[Finding] = []
    hidden = {name: value for name, value in (await world.one.rows()).items() if name in HIDDEN}
    dirty = False
    for sql, policy, allowed in writes:
        if policy == "open":
            continue
        findings += [Finding("disagreement", sql, policy, each) for each in await disagreements(world, allowed, ALL[policy])]
        await world.level_xids()
        one = await world.one.answer(allowed, ALL[policy], world.catalog)
        other = await world.other.answer(allowed, ALL[policy], world.catalog)
        counts.by["writes run"] += 1
        if isinstance(one, tuple) and isinstance(other, tuple) and one == other:
            counts.by["writes failed"] += 1
            continue
        dirty = True
        counts.by["writes answered"] += 1
        by_nature = _by_chance(one, other) or _differs_by_nature(allowed)
        here, there = await world.one.rows(), await world.other.rows()
        if {name: value for name, value in here.items() if name in HIDDEN} != hidden:
            findings.append(Finding("writes", sql, policy, "it changed what the policy hides"))
        if not by_nature and one != other:
            findings.append(Finding("interference", sql, policy, _difference(one, other)))
        changed = [name for name in here if name not in HIDDEN and here[name] != there[name]]
        if changed and not by_nature:
            findings.append(Finding("interference", sql, policy, f"it left other rows in {', '.join(changed)}"))
        if changed or by_nature:
            await world.restore()
            dirty = False
    if dirty:
        await world.restore()
    return findings


async def _defines(world: World, sql: str, policy: str, allowed: Allowed, counts: Counts, decide: Decide) -> list[Finding]:
    """What a definition makes answers alike too, when it may be read."""
    await world.level_xids()
    one = await world.one.answer(allowed, ALL[policy], world.catalog)
    other = await world.other.answer(allowed, ALL[policy], world.catalog)
    counts.by["definitions run"] += 1
    findings = []
    if one != other and not _differs_by_nature(allowed) and not _by_chance(one, other):
        findings.append(Finding("interference", sql, policy, _difference(one, other)))
    if not isinstance(one, tuple):
        counts.by["definitions answered"] += 1
        before = world.catalog
        world.catalog = await read_catalog(world.one.watch, before.revision + 1)
        for question in ("TABLE made", "SELECT count(*), max(made::text) FROM made", "EXPLAIN SELECT * FROM made"):
            found = await examine_batch(world, [(question, policy)], Counts(), decide=decide)
            if not _differs_by_nature(allowed):
                findings += [Finding(each.kind, f"{sql}; {question}", policy, each.detail) for each in found]
        world.catalog = before
    for side in (world.one, world.other):
        for kind in ("TABLE", "VIEW", "MATERIALIZED VIEW", "SEQUENCE", "INDEX"):
            try:
                await side.run(f"BEGIN READ WRITE; DROP {kind} IF EXISTS made CASCADE; COMMIT")
            except (*FAILURES, ExecutionFailed):  # it is of another kind
                async with side.watch.connection() as connection:
                    await connection.rollback()
    return findings


def _difference(one: Answer, other: Answer) -> str:
    if isinstance(one, tuple) or isinstance(other, tuple):
        return f"{_short(one)} / {_short(other)}"
    pairs = [(a, b) for a, b in zip(one.rows, other.rows, strict=False) if a != b]
    if pairs:
        return f"{pairs[0][0][:160]!r} / {pairs[0][1][:160]!r}"
    return f"{one.rows_returned} rows / {other.rows_returned} rows; {one.rows_affected} / {other.rows_affected} affected"


def _short(answer: Answer) -> str:
    return (
        f"{answer[0]} {answer[1][:120]}" if isinstance(answer, tuple) else f"{answer.rows_returned} rows {answer.rows[:1]!r:.120}"
    )


def _changes(before: dict[str, Any], after: dict[str, Any]) -> str:
    return "; ".join(f"{name}: {before.get(name)} -> {after[name]}" for name in after if before.get(name) != after[name])[:300]
