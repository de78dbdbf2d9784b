"""Enrolment: a token and the identity in, whom this gateway belongs to out (docs/link-protocol.md, Enrolment)."""

import secrets
from typing import Final

import msgspec

from gatewayd.keys.ed25519 import SigningKey
from gatewayd.link.client import ControlPlane, Unreachable
from gatewayd.link.formats.answers import EnrolAnswer, read_enrolment
from gatewayd.link.formats.bundle import Seen
from gatewayd.link.formats.documents import DocumentRefused, public_text
from gatewayd.link.formats.enrolment import EnrolmentToken
from gatewayd.link.formats.requests import EnrolBody
from gatewayd.link.formats.trust import first_trust
from gatewayd.link.kept import LINK, RATCHET, TRUST, Enrolled, Kept, KeptTrust

WITHIN_S: Final = 30.0


class EnrolmentFailed(Exception):
    """The text says what was found and what to do. `is_final`: the same token will not do."""

    def __init__(self, text: str, *, is_final: bool) -> None:
        super().__init__(text)
        self.is_final = is_final


async def enrol(
    control: ControlPlane, token: EnrolmentToken, identity: SigningKey, kept: Kept, version: str, url: str
) -> Enrolled:
    """Asks, verifies, and keeps the answer on disk before it returns. Raises EnrolmentFailed, OSError.

    The token may be used up when this fails after its answer: the control plane gives the same identity the same answer again.
    """
    nonce = secrets.token_hex(16)
    sent = control.numbered("enrol", EnrolBody(token.secret, public_text(identity.public), nonce, version))
    try:
        answered = await control.send(sent, WITHIN_S, None)
    except Unreachable as failure:
        raise EnrolmentFailed(f"the control plane does not answer ({failure.reason})", is_final=False) from None
    if answered.status != 200:
        reason = "the token is unknown, used or older than an hour; make a new one on the control plane"
        raise EnrolmentFailed(f"answered status {answered.status}: {reason}", is_final=True)
    try:
        answer = msgspec.json.decode(answered.data, type=EnrolAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise EnrolmentFailed("what answered is no control plane; look at GATEWAY_CONTROL_URL", is_final=False) from None
    trust_data = bytes(answer.trust)
    try:
        trust = first_trust(trust_data, token.fingerprint)
        found = read_enrolment(bytes(answer.enrolment), trust, control.clock.now_ms(), request=sent.digest, nonce=nonce)
    except DocumentRefused as refused:
        text = f"the answer is not that of the control plane which made the token ({refused}); nothing of it was believed"
        raise EnrolmentFailed(text, is_final=True) from None
    root = trust.root_from_now_on
    enrolled = Enrolled(found.gateway, found.project, found.issuer, found.tenant_id, url, identity.key_id, root)
    # link.json last: without it the gateway is not linked, and asks again
    kept.keep(TRUST, KeptTrust(root, trust_data.decode()))
    kept.keep(RATCHET, Seen(found.issuer, found.project))
    kept.keep(LINK, enrolled)
    return enrolled
