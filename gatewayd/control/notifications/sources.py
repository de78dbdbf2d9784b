"""Where notices come from: acts of the trail, findings, what gateways say of themselves, requests for writes.

Each is called in the transaction of what it tells. A fact is an id, the name of a database or token, or a word of ours; but for
`agent_claims`, which is what the agent calls itself.
"""

from collections.abc import Mapping
from typing import Final

from gatewayd.control.notifications.kinds import OF_ACT, OF_FINDING, Kind
from gatewayd.control.notifications.outbox import Notice, tell
from gatewayd.control.store.store import Transaction

_TARGET: Final[dict[Kind, str]] = {
    "approval.decided": "approval",
    "policy.published": "version",
    "gateway.cut": "gateway",
    "channel.disabled": "channel",
}
"""What the target of an act is called in its notice; `target` where kinds of things differ."""


async def tell_act(
    tx: Transaction,
    org_id: str,
    action: str,
    *,
    person_id: str | None,
    project_id: str | None,
    target: str | None,
    details: Mapping[str, str],
    event_id: str,
    now_ms: int,
) -> None:
    """An act of the trail, where it is one that is told."""
    kind = OF_ACT.get(action)
    if kind is None:
        return
    facts = {"act": action}
    if person_id is not None:
        facts["person"] = person_id
    if target is not None:
        facts[_TARGET.get(kind, "target")] = target
    if action.startswith("token."):
        facts["token"] = details.get("name", "")
    await tell(tx, org_id, Notice(kind, event_id, _path(kind, project_id, target), project_id, facts), now_ms)


async def tell_finding(
    tx: Transaction, org_id: str, project_id: str, gateway_id: str, kind: str, finding_id: str, now_ms: int
) -> None:
    facts = {"gateway": gateway_id, "finding": kind}
    path = f"/projects/{project_id}/gateways/{gateway_id}"
    await tell(tx, org_id, Notice(OF_FINDING[kind], finding_id, path, project_id, facts), now_ms)


async def tell_waiting(
    tx: Transaction,
    org_id: str,
    project_id: str,
    approval_id: str,
    *,
    database: str,
    token: str | None,
    agent: str | None,
    now_ms: int,
) -> None:
    facts = {"approval": approval_id, "database": database}
    if token is not None:
        facts["token"] = token
    if agent is not None:
        facts["agent_claims"] = agent
    await tell(tx, org_id, Notice("approval.waiting", approval_id, _approval(project_id, approval_id), project_id, facts), now_ms)


async def tell_expired(tx: Transaction, org_id: str, project_id: str, approval_id: str, now_ms: int) -> None:
    """The row of the open request was deleted in this transaction: so it is told once."""
    facts = {"approval": approval_id}
    await tell(tx, org_id, Notice("approval.expired", approval_id, _approval(project_id, approval_id), project_id, facts), now_ms)


async def tell_gateway(
    tx: Transaction, org_id: str, project_id: str, gateway_id: str, kind: Kind, event_id: str, now_ms: int
) -> None:
    path = f"/projects/{project_id}/gateways/{gateway_id}"
    await tell(tx, org_id, Notice(kind, event_id, path, project_id, {"gateway": gateway_id}), now_ms)


def _approval(project_id: str, approval_id: str) -> str:
    return f"/projects/{project_id}/approvals/{approval_id}"


def _path(kind: Kind, project_id: str | None, target: str | None) -> str:
    match kind:
        case "approval.decided" if project_id and target:
            return _approval(project_id, target)
        case "gateway.cut" if project_id and target:
            return f"/projects/{project_id}/gateways/{target}"
        case "policy.published" if project_id:
            return f"/projects/{project_id}/policy"
        case "channel.disabled" if target:
            return f"/notifications/webhooks/{target}"
        case _:
            return "/trail"
