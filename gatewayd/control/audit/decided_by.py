"""Which policy decided a recorded query, and which of its lines.

The version that its bundle brought is judged again over the catalog that is held now. Where that answers otherwise than was
recorded, the catalog has changed since, and no line is named.
"""

from typing import Final

import msgspec
import trio

from gatewayd.control.audit.summary import QuerySummary
from gatewayd.control.console import Console
from gatewayd.control.policies.checked import CheckedPolicy, check_policy
from gatewayd.control.policies.deciding_line import PolicyLine, deciding_line
from gatewayd.control.policies.held_catalogs import catalog_heads
from gatewayd.control.store.statement import Statement
from gatewayd.judge import ANY_SALT, judge
from gatewayd.policy.tools.expect import verdict_of
from gatewayd.policy.tools.replay import Recorded, change_of

SQL_MOST: Final = 100_000

VERSION_OF: Final = Statement(
    "SELECT v.version, v.yaml FROM bundles AS b JOIN policy_versions AS v"
    " ON v.project_id = b.project_id AND v.version = b.policy_version AND v.project_id = $1"
    " WHERE b.project_id = $1 AND b.version = $2"
)


class DecidedBy(msgspec.Struct, frozen=True):
    version: int
    line: PolicyLine | None


class _Version(msgspec.Struct, frozen=True):
    version: int
    yaml: str


async def decided_by(console: Console, project_id: str, query: QuerySummary, bundle: int | None) -> DecidedBy | None:
    """None where its policy is not one of this control plane's."""
    if bundle is None:
        return None
    version = await console.store.row(_Version, VERSION_OF, project_id, bundle)
    if version is None:
        return None
    head = (await catalog_heads(console.store, project_id)).get(query.database)
    catalog = await console.catalogs.find(console.store, project_id, head) if head is not None else None
    if catalog is None or query.sql is None or query.is_redacted or len(query.sql) > SQL_MOST or query.decision is None:
        return DecidedBy(version.version, None)
    sql, decision = query.sql, "ALLOW" if query.decision == "ALLOW" else "DENY"

    def look() -> PolicyLine | None:
        checked = check_policy(version.yaml)
        named = checked.policies.databases or () if isinstance(checked, CheckedPolicy) else ()
        policy = next((each.policy for each in named if each.name == query.database), None)
        if policy is None:
            return None
        verdict = verdict_of(judge(sql, policy, catalog, salt=ANY_SALT).final_decision)
        recorded = Recorded("", 0, query.database, None, sql, "", decision, query.rule)  # type: ignore[arg-type]  # one of the two
        is_same = change_of(recorded, verdict) is None or (verdict.decision == "held" and decision == "ALLOW")
        return deciding_line(version.yaml, query.database, verdict) if is_same else None

    return DecidedBy(version.version, await trio.to_thread.run_sync(look))
