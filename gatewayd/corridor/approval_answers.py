"""The request that a held write sends to the gate, and what the gate's answer means for the call (docs/approvals.md). Pure."""

from hashlib import sha256
from typing import Final, Literal

from gatewayd.approvals import words
from gatewayd.approvals.messages import GateAsk
from gatewayd.audit.events import Query
from gatewayd.catalog import Catalog
from gatewayd.corridor.answer import OnHold
from gatewayd.corridor.hold import Ended, GateSilent, StillUndecided
from gatewayd.policy.decide.outcomes import Denied, Held
from gatewayd.policy.file.model import Policy
from gatewayd.policy.replacement import policy_hash
from gatewayd.sql.facts.statement import Statement

NO_GATE: Final = OnHold("this write needs a person's approval and no approval gate is configured; nothing ran")
GONE: Final = "its database was taken away or moved while this write waited, so it did not run; ask again"
WHY_UNDECIDED: Final[dict[Ended, str]] = {
    "undecided": "nobody has decided within {hold_s} s",
    "stopping": "the gateway is stopping or paused, and does not hold it any longer",
    "crowded": "too many writes wait here, so this one is not held",
    "silent": "the approval service took the request and does not answer any more",
}
CHANGED: Final = (
    "what its names stand for was changed since a person was asked about it, so it did not run; running it again asks again"
)


def effect_of(statement: Statement, catalog: Catalog) -> str:
    """A digest of the relations that the statement's names stand for, and of what the views among them read.

    32 hex digits. The same text over other relations is another write, and so has another digest. A name that does not exist is
    part of the digest as missing.
    """
    named = [(use.schema or "public", use.name) for use in statement.relations]
    found: dict[int, str] = {}
    waiting = [relation for schema, name in named if (relation := catalog.relation(schema, name)) is not None]
    missing = sorted({each for each in named if catalog.relation(*each) is None})
    while waiting:
        relation = waiting.pop()
        if relation.oid not in found:
            found[relation.oid] = relation.definition
            waiting += [read for oid in relation.reads if (read := catalog.by_oid.get(oid)) is not None]
    return sha256(repr((sorted(found.items()), missing)).encode()).hexdigest()[:32]


def gate_request(query: Query, held: Held, policy: Policy, catalog: Catalog, *, contained: bool) -> GateAsk:
    """The request to the gate, without its preview."""
    statement = held.allowed.statement
    return GateAsk(
        query_id=query.query_id,
        database=query.database,
        sql=statement.sql,
        intent=query.intent,
        statement_type=statement.kind,
        tables_touched=held.allowed.tables,
        tenant_id=query.tenant_id,
        agent_name=query.agent.name,
        agent_version=query.agent.version,
        mcp_token_id=query.agent.token_id,
        fingerprint=statement.fingerprint,
        write_class=held.write_class,
        policy_hash=policy_hash(policy),
        effect=effect_of(statement, catalog),
        contained=contained,
    )


def refused(held: Held, rule: Literal["approval_denied", "approval_expired"], reason: str) -> Denied:
    """The denial of a held write; its matched rule is `approvals.` and the class of the write."""
    allowed = held.allowed
    return Denied(rule, reason, allowed.statement.kind, allowed.tables, f"approvals.{held.write_class}")


def undecided(found: StillUndecided | GateSilent, query: Query, sql: str, hold_s: int, *, is_multi: bool) -> OnHold:
    """The answer while there is no decision: how to wait for it. `sql` and the intent are the arguments to repeat."""
    if isinstance(found, GateSilent):
        why = words.legible(found.reason, 300)
        reason = f"this write needs a person's approval, and the approval service is unavailable ({why}); nothing ran"
        return OnHold(reason, retry_after_s=found.retry_after_s)
    reason = f"this write waits for a person's approval; {WHY_UNDECIDED[found.why].format(hold_s=hold_s)}; nothing ran"
    resume = [("sql", sql), ("intent", query.intent or "")]
    if is_multi:
        resume.append(("database", query.database))
    return OnHold(reason, found.pending, tuple(resume))
