"""A bundle's own tests: statements and what its policy must make of them, asked of each database's catalog."""

from collections.abc import Iterable
from typing import Final

from gatewayd.catalog import Catalog
from gatewayd.policy.decide.decision import decide
from gatewayd.policy.file.model import Policy
from gatewayd.policy.tools.expect import Case, verdict_of
from gatewayd.sql.facts.analyze import analyze

WAITING: Final = "the policy's own tests wait for this database's catalog; nothing ran; try again later"


def of(cases: Iterable[Case], database: str, databases: int) -> tuple[Case, ...]:
    """The cases that are about this database: those that name it, and those that name none where it is the only one."""
    return tuple(case for case in cases if case.database == database or (case.database is None and databases == 1))


def failing(cases: Iterable[Case], database: str, policy: Policy, catalog: Catalog) -> str | None:
    """The first case whose verdict is another one, in words without its statement."""
    for number, case in enumerate(cases, 1):
        if case.expect is None:
            continue
        verdict = verdict_of(decide(analyze(case.sql), policy, catalog))
        if not verdict.meets(case.expect):
            found = verdict.rule if verdict.decision == "deny" else verdict.decision
            where = f" (line {case.line})" if case.line else ""
            return f"test {number}{where} of database {database}: expected {case.expect}, found {found}"
    return None
