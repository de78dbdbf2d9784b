"""Whether the approval gate answers as the protocol says, and takes our token (docs/approvals.md)."""

from collections.abc import AsyncIterator
from typing import Final

from gatewayd import __version__
from gatewayd.approvals.gate import Unavailable
from gatewayd.approvals.http_gate import HttpGate
from gatewayd.approvals.messages import StatusAsked
from gatewayd.cli.doctor.finding import Check, fail, ok, warn
from gatewayd.cli.policyfile import DatabaseEntry
from gatewayd.config.settings import Settings
from gatewayd.policy.decide.guardrails import classes_held

_WITHIN_S: Final = 8.0
_NOBODYS: Final = "gatewayd-doctor"
"""No request has this id: asking about it claims nothing."""


async def checks(settings: Settings, entries: tuple[DatabaseEntry, ...]) -> AsyncIterator[Check]:
    """Nothing where no gate is configured: a policy that needs one is refused then."""
    if settings.approval_url is None or settings.approval_token is None:
        return
    holds = any(classes_held(entry.policy.approvals) for entry in entries)
    try:
        async with HttpGate(settings.approval_url, settings.approval_token, __version__) as gate:
            status = await gate.status(StatusAsked(_NOBODYS), _WITHIN_S)
    except Unavailable as failure:
        remedy = "look at the gate, GATEWAY_APPROVAL_URL and GATEWAY_APPROVAL_TOKEN"
        yield (fail if holds else warn)("approval gate", f"gives no answer that counts: {failure.reason}", remedy)
        return
    if status.status != "not_found":
        yield fail("approval gate", f"says `{status.status}` of a request that nobody made", "ask whose gate this is")
    elif not holds:
        yield warn("approval gate", "answers, and no policy holds a write", "switch approvals on in the policy, or leave it out")
    else:
        yield ok("approval gate", "answers, and takes the token")
