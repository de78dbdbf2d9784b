"""What would become of a statement under a policy: what `policy test` and `policy replay` ask, the masks included.

With a catalog the answer is that of a running gatewayd before it executes. By names alone masks cannot be judged, because the
columns are not known."""

import os
from collections.abc import Callable, Mapping
from typing import Final

from gatewayd.catalog import Catalog
from gatewayd.cli.policyfile import DatabaseEntry
from gatewayd.config.environment import Environment
from gatewayd.config.settings import read_bytes
from gatewayd.corridor.known_statements import KnownStatements
from gatewayd.masking.plan import Withheld, plan
from gatewayd.policy.decide.by_names import decide_by_names
from gatewayd.policy.decide.decision import decide
from gatewayd.policy.decide.outcomes import Allowed
from gatewayd.policy.file.model import Policy
from gatewayd.policy.tools.expect import CaseVerdict, verdict_of
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement

Decider = Callable[[str], CaseVerdict]

_ANY_SALT: Final = b"nothing is masked with it"


def catalogs(chosen: tuple[DatabaseEntry, ...]) -> Mapping[str, Catalog]:
    """The live catalogs of the entries by name. Ends the command with 69 when one does not answer."""
    from gatewayd.cli.catalogs import inspect

    return {name: inspected.catalog for name, inspected in inspect(chosen).items()}


def decider(policy: Policy, catalog: Catalog | None) -> Decider:
    """Answers for one database; with None by names alone."""
    known_statements = KnownStatements()  # programs send the same statements again and again

    def decided(sql: str) -> CaseVerdict:
        known = known_statements.get(sql) or known_statements.add(sql, analyze(sql))
        decision = known.decision(1, 1)
        if decision is None:
            facts = known.statement
            decision = decide_by_names(facts, policy) if catalog is None else decide(facts, policy, catalog)
            known.keep(decision, 1, 1)
        verdict = verdict_of(decision)
        if catalog is not None and policy.column_masks and isinstance(decision, Allowed):
            return _masked(decision.statement, policy, catalog, verdict)
        return verdict

    return decided


def _masked(statement: Statement, policy: Policy, catalog: Catalog, verdict: CaseVerdict) -> CaseVerdict:
    rewriting = policy.mask_source_rewrite
    if rewriting is None:
        rewriting = Environment(os.environ, read_bytes).flag("GATEWAY_MASK_SOURCE_REWRITE")
    planned = plan(statement, policy, catalog, salt=_ANY_SALT, rewriting=rewriting)
    if isinstance(planned, Withheld):
        return CaseVerdict("deny", "column_masking", planned.reason_agent, verdict.tables)
    return verdict
