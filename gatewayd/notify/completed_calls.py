"""Completed calls for the senders: the deny webhook takes denials, telemetry counts all of them. What the gateway counts
for a reviewer is no call of an agent's."""

from gatewayd.corridor.gateway import Completed, Observer
from gatewayd.notify.telemetry import Telemetry
from gatewayd.notify.usage import CountedCall
from gatewayd.notify.webhook import DenyWebhook


def to_webhook(webhook: DenyWebhook) -> Observer:
    """An observer that hands denials to the webhook."""

    def observe(completed: Completed) -> None:
        if completed.denied is not None and completed.audit_id is not None and completed.tool != "preview":
            webhook.denied(completed.query, completed.audit_id, completed.denied, completed.sql)

    return observe


def to_telemetry(telemetry: Telemetry) -> Observer:
    """An observer that hands each call of an agent to telemetry."""

    def observe(completed: Completed) -> None:
        if completed.decision not in ("ALLOW", "DENY") or completed.tool == "preview":
            return
        telemetry.called(
            CountedCall(
                tool=completed.tool,
                decision=completed.decision,
                rule=completed.denied.policy_rule if completed.denied else None,
                statement_type=completed.statement_type,
                error_class=completed.error_class,
                overhead_s=completed.parse_s + completed.decide_s + completed.audit_s + completed.mask_s,
            )
        )

    return observe
