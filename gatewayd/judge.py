"""The judge: a statement, a policy and a catalog in, the verdict out, masks included. Pure.

Whoever asks what becomes of a statement asks here: the corridor, dry runs, `policy test` and `policy replay`, a bundle's own
tests, the control plane's flips. So no two of them can disagree.
"""

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from gatewayd.catalog import FIRST_USER_OID, Catalog
from gatewayd.masking.plan import UNMASKED, Plan, Withheld
from gatewayd.policy.decide.by_names import decide_by_names
from gatewayd.policy.decide.decision import decide, decide_unknown, rules_of, unknown_names
from gatewayd.policy.decide.outcomes import Allowed, Decision, Denied, Held
from gatewayd.policy.decide.unknown_names import Unknown
from gatewayd.policy.file.model import Policy
from gatewayd.shields.whole_plan import plan
from gatewayd.sql.builtins import filtered_functions
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement, Unparsed

LIGHT_CHARACTERS: Final = 2048
LIGHT_HIDING_CHARACTERS: Final = 640
LIGHT_COLUMNS: Final = 300  # of all tables together; a relation of the catalog counts for as many
ANY_SALT: Final = b"nothing is masked with it"
"""For those who ask what becomes of a statement and run none."""


class Verdict(msgspec.Struct, frozen=True):
    """What becomes of one statement under one policy, over one catalog."""

    statement: Statement | Unparsed
    decision: Decision
    plan: Plan = UNMASKED
    """What runs in place of a statement that is allowed or held."""
    unknown: Unknown | None = None
    """What it names that nobody knows: worth a newer catalog, and worth asking again when the same text comes again."""
    refused: Denied | None = None
    """Set where a name that does not exist is all that is wrong: it may be parsed and must not run, and this is what it would be
    told if the name did exist."""
    contained_by: Policy | None = None
    """What it was decided by in place of the policy asked about: what a tainted grant is held to."""
    mask_s: float = 0.0
    """What masks took, where the judge was given a clock."""

    @property
    def allowed(self) -> Allowed | None:
        """What may run, at once or after an approval."""
        match self.decision:
            case Held(allowed=allowed):
                return allowed
            case Allowed():
                return self.decision
        return None

    @property
    def told(self) -> Decision:
        """The decision as whoever sent the statement gets it: what masks keep from running is denied."""
        allowed = self.allowed
        if allowed is None or not isinstance(self.plan, Withheld):
            return self.decision
        return refused_by_masks(allowed, self.plan.reason_agent, self.plan.rule)

    @property
    def on_running(self) -> Decision:
        """The same for whoever means to run it: with a name that does not exist it does not run."""
        return self.told if self.refused is None else self.refused


def is_light(statement: Statement | Unparsed, policy: Policy, catalog: Catalog) -> bool:
    """Whether judging it surely takes no more than some 5 ms. What is masked or hidden adds to a statement as many bytes as the
    tables have columns, and 4 kB for a call such as `pg_get_constraintdef`."""
    if len(statement.sql) > LIGHT_CHARACTERS:
        return False
    if isinstance(statement, Unparsed):
        return True
    if any(use.name in filtered_functions.FUNCTIONS for use in statement.functions):
        return False
    if not policy.hides_something and policy.taint is None:
        return True
    if len(statement.sql) > LIGHT_HIDING_CHARACTERS:
        return False
    relations = rules_of(policy, catalog).relations
    columns = 0
    for use in statement.relations:
        relation = catalog.relation(*relations.locate(use))
        if relation is not None:
            columns += len(relation.columns) if relation.oid >= FIRST_USER_OID else LIGHT_COLUMNS
    return columns < LIGHT_COLUMNS


def judge(
    text: str | Statement | Unparsed,
    policy: Policy,
    catalog: Catalog | None,
    *,
    salt: bytes | None = None,
    rewriting: bool = False,
    tainted: bool = False,
    clock: Callable[[], float] = lambda: 0.0,
) -> Verdict:
    """`text` may be the facts of a statement that `analyze` has read. Without a catalog the names in policy and statement decide
    alone, and no mask is judged. `rewriting` is what GATEWAY_MASK_SOURCE_REWRITE says, for policies that do not say it.
    `tainted`: as for a grant that has read a source of foreign text.

    *Raises* bugs only: whoever asks for an agent denies then (decision 3).
    """
    statement = analyze(text) if isinstance(text, str) else text
    if catalog is None:
        return Verdict(statement, decide_by_names(statement, policy, tainted=tainted))
    decision = decide(statement, policy, catalog, tainted=tainted)
    if isinstance(statement, Unparsed):
        return Verdict(statement, decision)
    unknown = unknown_names(statement, catalog)
    if unknown is not None and isinstance(decision, Denied):
        parsed_alone = decide_unknown(statement, unknown, policy, catalog)
        if parsed_alone is not None:
            return Verdict(statement, parsed_alone, unknown=unknown, refused=decision)
    verdict = Verdict(statement, decision, unknown=unknown)
    allowed = verdict.allowed
    if allowed is not None and allowed.is_contained:
        policy = rules_of(policy, catalog).contained
        verdict = msgspec.structs.replace(verdict, contained_by=policy)
    if allowed is None or not (allowed.needs_shield or policy.column_masks):
        return verdict
    if policy.mask_source_rewrite is not None:
        rewriting = policy.mask_source_rewrite
    began = clock()
    planned = plan(allowed, policy, catalog, salt=salt, rewriting=rewriting)
    return msgspec.structs.replace(verdict, plan=planned, mask_s=clock() - began)


def refused_by_masks(allowed: Allowed, reason: str, rule: Literal["column_masking", "table_access"] = "column_masking") -> Denied:
    """What a statement that the policy allows is told where its masks keep it from running, or its result from being shown."""
    return Denied(rule, reason, allowed.statement.kind, allowed.tables, rule)
