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
from gatewayd.policy.decide.by_names import decide_by_names
from gatewayd.policy.file.model import Policy
from gatewayd.policy.tools.expect import CaseVerdict, verdict_of
from gatewayd.shields.judged import judged
from gatewayd.sql.facts.analyze import analyze

Decider = Callable[[str], CaseVerdict]
Judge = Callable[..., CaseVerdict]


def catalogs(chosen: tuple[DatabaseEntry, ...]) -> Mapping[str, Catalog]:
    """The live catalogs of the entries by name. Ends the command with 69 when one does not answer."""
    from gatewayd.cli.catalogs import inspect

    return {name: inspected.catalog for name, inspected in inspect(chosen).items()}


def decider(policy: Policy, catalog: Catalog | None, judge: Judge = judged) -> Decider:
    """Answers for one database; with None by names alone. `judge` is asked where there is a catalog."""
    known_statements = KnownStatements()  # programs send the same statements again and again
    rewriting = Environment(os.environ, read_bytes).flag("GATEWAY_MASK_SOURCE_REWRITE")

    def decided(sql: str) -> CaseVerdict:
        known = known_statements.get(sql) or known_statements.add(sql, analyze(sql))
        if catalog is None:
            return verdict_of(decide_by_names(known.statement, policy))
        return judge(known.statement, policy, catalog, rewriting=rewriting)

    return decided
