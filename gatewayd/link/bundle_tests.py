"""A bundle's own tests: statements and what its policy must make of them, asked of each database's catalog."""

from collections.abc import Iterable
from typing import Final

from gatewayd.catalog import Catalog
from gatewayd.judge import ANY_SALT, judge
from gatewayd.policy.file.model import Policy
from gatewayd.policy.tools.expect import Case, verdict_of

WAITING: Final = "the policy's own tests wait for this database's catalog; nothing ran; try again later"


def of(cases: Iterable[Case], database: str, databases: int) -> tuple[Case, ...]:
    """The cases that are about this database: those that name it, and those that name none where it is the only one."""
    return tuple(case for case in cases if case.database == database or (case.database is None and databases == 1))


def failing(cases: Iterable[Case], database: str, policy: Policy, catalog: Catalog, *, rewriting: bool) -> str | None:
    """`rewriting` as the judge takes it. The first case whose verdict is another one, in words without its statement."""
    for number, case in enumerate(cases, 1):
        if case.expect is None:
            continue
        judged = judge(case.sql, policy, catalog, salt=ANY_SALT, rewriting=rewriting, tainted=case.tainted)
        verdict = verdict_of(judged.decision_to_run)
        if not verdict.meets(case.expect):
            found = verdict.rule if verdict.decision == "deny" else verdict.decision
            where = f" (line {case.line})" if case.line else ""
            return f"test {number}{where} of database {database}: expected {case.expect}, found {found}"
    return None
