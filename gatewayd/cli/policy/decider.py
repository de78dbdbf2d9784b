"""What would become of a statement under a policy: what `policy test` and `policy replay` ask, the masks included.

With a catalog the answer is that of a running gatewayd before it executes. By names alone masks cannot be judged, because the
columns are not known."""

import os
from collections.abc import Callable, Mapping

from gatewayd.catalog import Catalog
from gatewayd.cli.policyfile import DatabaseEntry
from gatewayd.config.environment import Environment
from gatewayd.config.settings import read_bytes
from gatewayd.corridor.known_statements import KnownStatements
from gatewayd.judge import ANY_SALT, judge
from gatewayd.policy.file.model import Policy
from gatewayd.policy.tools.expect import CaseVerdict, verdict_of
from gatewayd.sql.facts.analyze import analyze

Decider = Callable[[str, bool], CaseVerdict]
"""The verdict on a statement, sent by an agent that is tainted or not."""


def catalogs(chosen: tuple[DatabaseEntry, ...]) -> Mapping[str, Catalog]:
    """The live catalogs of the entries by name. Ends the command with 69 when one does not answer."""
    from gatewayd.cli.catalogs import inspect

    return {name: inspected.catalog for name, inspected in inspect(chosen).items()}


def decider(policy: Policy, catalog: Catalog | None, *, recorded: bool = False) -> Decider:
    """Answers for one database; with None by names alone. `recorded` statements are told as an agent is told them: where a name
    does not exist, that is PostgreSQL's to say. Others are asked about because they are meant to run, or not to."""
    rewriting = Environment(os.environ, read_bytes).flag("GATEWAY_MASK_SOURCE_REWRITE")
    known_statements = KnownStatements()  # programs send the same statements again and again

    def decided(sql: str, tainted: bool) -> CaseVerdict:
        known = known_statements.get(sql) or known_statements.add(sql, analyze(sql))
        known = known.under_taint() if tainted else known
        verdict = known.verdict(1, 1)
        if verdict is None:
            verdict = judge(known.statement, policy, catalog, salt=ANY_SALT, rewriting=rewriting, tainted=tainted)
            known.keep(verdict, 1, 1)
        return verdict_of(verdict.final_decision if recorded else verdict.decision_to_run)

    return decided
