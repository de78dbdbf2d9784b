"""What runs in place of one allowed statement: first what shields what the policy hides, then what masks make of that. Pure.

Two rewritings one after the other, not one of both: masks then read the shielded text like any other, fences and all.
"""

from typing import Final

import msgspec

from gatewayd.catalog import Catalog
from gatewayd.masking import plan as masks
from gatewayd.masking.plan import Plan, Rewritten, Unmasked, Withheld
from gatewayd.masking.results.post_exec import PostExec
from gatewayd.masking.rewrite.source_rewrite import NotRewritten
from gatewayd.policy.decide.outcomes import Allowed
from gatewayd.policy.file.model import Policy
from gatewayd.shields.shielded import shielded
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement

_UNABLE: Final = (
    "this statement reads what the policy opens in part only, in a place where the gateway cannot shield the rest, so it did not "
    "run; read it with a plain SELECT"
)


def plan(allowed: Allowed, policy: Policy, catalog: Catalog, *, salt: bytes | None, rewriting: bool) -> Plan:
    """`allowed` is the decision of this policy over this catalog."""
    if not allowed.needs_shield:
        return masks.plan(allowed.statement, policy, catalog, salt=salt, rewriting=rewriting)
    try:
        statement, edits = shielded(allowed.statement, policy, catalog)
    except NotRewritten as failure:
        return Withheld("gate" if failure.shape else "rewrite", _UNABLE, str(failure), "table_access")
    # Words of errors are told less wherever there is a Rewritten, also one that changes nothing.
    alone = Rewritten(statement, (), (), edits)
    if not policy.column_masks:
        return alone
    read_anew = analyze(statement.sql)
    if not isinstance(read_anew, Statement):
        return Withheld("rewrite", _UNABLE, "the shielded text does not parse", "table_access")
    planned = masks.plan(read_anew, policy, catalog, salt=salt, rewriting=rewriting)
    match planned:
        case Unmasked():
            return alone
        case Rewritten():
            return msgspec.structs.replace(planned, earlier_edits=edits)
        case PostExec():
            return msgspec.structs.replace(planned, instead=statement, edits=edits)
        case Withheld():
            return planned
