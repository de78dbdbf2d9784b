"""The judge: takes a statement, a policy and a catalog, and returns the verdict, masks included. Pure.

Everything that decides a statement decides it here: the corridor, dry runs, `policy test` and `policy replay`, a bundle's own
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
LIGHT_COLUMNS: Final = 300  # of all tables together; a relation of pg_catalog counts as this many
ANY_SALT: Final = b"nothing is masked with it"
"""The salt of callers that decide a statement and do not run it."""


class Verdict(msgspec.Struct, frozen=True):
    """The decision about one statement under one policy, over one catalog, and the plan of its masks."""

    statement: Statement | Unparsed
    decision: Decision
    plan: Plan = UNMASKED
    """How masks change a statement that is allowed or held."""
    unknown: Unknown | None = None
    """A name in it that the catalog does not have: a reason to read a newer catalog, and not to cache this verdict."""
    refused: Denied | None = None
    """Set if an unknown name is all that is wrong. PostgreSQL may parse the statement and must not run it; this is the denial
    that it would get if the name existed."""
    contained_by: Policy | None = None
    """The stricter policy of a tainted grant, if the statement was decided by that one."""
    mask_s: float = 0.0
    """The seconds that the masks' plan took; 0 without a clock."""

    @property
    def allowed(self) -> Allowed | None:
        """The statement that may run, at once or after an approval; None if it is denied."""
        match self.decision:
            case Held(allowed=allowed):
                return allowed
            case Allowed():
                return self.decision
        return None

    @property
    def final_decision(self) -> Decision:
        """The decision for the sender of the statement: a denial if its masks refuse it."""
        allowed = self.allowed
        if allowed is None or not isinstance(self.plan, Withheld):
            return self.decision
        return refused_by_masks(allowed, self.plan.reason_agent, self.plan.rule)

    @property
    def decision_to_run(self) -> Decision:
        """`final_decision` for a caller that runs the statement: a denial if a name in it does not exist."""
        return self.final_decision if self.refused is None else self.refused


def is_light(statement: Statement | Unparsed, policy: Policy, catalog: Catalog) -> bool:
    """Whether judging the statement takes at most some 5 ms. Masked or hidden columns make it longer by an amount that grows with
    the columns of its tables, and a call such as `pg_get_constraintdef` adds 4 kB."""
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
    """The verdict on `text`, which may also be the facts of a statement that was analysed already.

    Without a catalog only the names in policy and statement decide, and no mask is planned. `rewriting` is the value of
    GATEWAY_MASK_SOURCE_REWRITE, for policies that do not set it. `tainted` decides as for a grant that has read a source of
    foreign text. `clock` returns seconds.

    *Raises* only bugs; a caller that decides for an agent then denies (decision 3).
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
    """The denial of a statement that the policy allows and whose masks refuse to run it or to show its result."""
    return Denied(rule, reason, allowed.statement.kind, allowed.tables, rule)
