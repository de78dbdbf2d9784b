"""What a gateway answers to a statement before it runs: the decision, and what masks and shields make of what is allowed. Pure.

Tools that try policies ask here. The corridor takes the same steps for agents, with waiting and remembering between them.
"""

from typing import Final

from gatewayd.catalog import Catalog
from gatewayd.masking.plan import Withheld
from gatewayd.policy.decide.decision import decide, decide_unknown, unknown_names
from gatewayd.policy.decide.outcomes import Allowed, Denied, Held
from gatewayd.policy.file.model import Policy
from gatewayd.policy.tools.expect import CaseVerdict, verdict_of
from gatewayd.shields.whole_plan import plan
from gatewayd.sql.facts.statement import Statement, Unparsed

_ANY_SALT: Final = b"nothing is masked with it"


def answered(statement: Statement | Unparsed, policy: Policy, catalog: Catalog, *, rewriting: bool) -> CaseVerdict:
    """As `judged`, but as a running gateway treats names that do not exist: they are PostgreSQL's to tell, so such a statement is
    let through to be parsed, and never runs."""
    verdict = judged(statement, policy, catalog, rewriting=rewriting)
    if verdict.decision != "deny" or not isinstance(statement, Statement):
        return verdict
    unknown = unknown_names(statement, catalog)
    parsed = decide_unknown(statement, unknown, policy, catalog) if unknown is not None else None
    return verdict_of(parsed) if parsed is not None else verdict


def judged(statement: Statement | Unparsed, policy: Policy, catalog: Catalog, *, rewriting: bool) -> CaseVerdict:
    """The verdict over a catalog that has been read. `rewriting`: what GATEWAY_MASK_SOURCE_REWRITE says, where the policy does
    not say it."""
    decision = decide(statement, policy, catalog)
    verdict = verdict_of(decision)
    match decision:
        case Denied():
            return verdict
        case Held():
            allowed: Allowed = decision.allowed
        case Allowed():
            allowed = decision
    if not (allowed.needs_shield or policy.column_masks):
        return verdict
    own = policy.mask_source_rewrite
    planned = plan(allowed, policy, catalog, salt=_ANY_SALT, rewriting=rewriting if own is None else own)
    if isinstance(planned, Withheld):
        return CaseVerdict("deny", planned.rule, planned.reason_agent, verdict.tables, planned.rule)
    return verdict
