"""Rotation of the identity: a next key, proved and acknowledged before it takes the place of the present one
(docs/link-protocol.md, Rotation).

The next key is on the disk before the control plane hears of it, so no answer that is lost loses the gateway: done again, it goes
on where it was.
"""

import secrets
from typing import Final

import msgspec

from gatewayd.keys.ed25519 import SigningKey
from gatewayd.keys.identity import NEXT_NAME, ensure_identity, replace_identity
from gatewayd.link.client import ControlPlane, RequestRefused, Unreachable
from gatewayd.link.formats.answers import read_enrolment
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.rotation import rotate_body
from gatewayd.link.formats.trust import Trust
from gatewayd.link.kept import LINK, Enrolled, Kept

WITHIN_S: Final = 30.0


_REFUSED: Final = {
    "cut": "this gateway is cut; a person who may manage gateways restores it there first",
    "duplicated": "another process uses this identity; a person decides there which one stays",
}


class RotationFailed(Exception):
    """The identity in force stays. The text says what was found and what to do."""


class RotationRefused(RotationFailed):
    """The control plane has signed that it refuses, so it knows the key that asked."""


async def rotate(
    control: ControlPlane, as_next: ControlPlane, identity: SigningKey, enrolled: Enrolled, trust: Trust, kept: Kept
) -> SigningKey:
    """The identity in force from now on. `as_next` signs with the next key, which `next_identity` gives. Raises RotationFailed,
    IdentityRefused, OSError."""
    following = next_identity(kept)
    if enrolled.identity != following.key_id:  # else the control plane has it already, and only the file is missing
        try:
            await _asked(control, identity, following, enrolled, trust)
        except RotationRefused:
            raise
        except RotationFailed:
            # Its answer to an earlier question may have been lost: then it knows the next key alone.
            await _asked(as_next, following, following, enrolled, trust)
        kept.keep(LINK, msgspec.structs.replace(enrolled, identity=following.key_id))
    replace_identity(str(kept.folder))
    return following


def next_identity(kept: Kept) -> SigningKey:
    """The next key, made now when there is none. Raises IdentityRefused."""
    return ensure_identity(str(kept.folder), name=NEXT_NAME)


async def _asked(
    control: ControlPlane,
    signer: SigningKey,
    following: SigningKey,
    enrolled: Enrolled,
    trust: Trust,
    *,
    knows_the_time: bool = False,
) -> None:
    nonce = secrets.token_hex(16)
    body = rotate_body(following, gateway=enrolled.gateway, signer=signer.public, nonce=nonce)
    sent = control.numbered("rotate", body)
    try:
        answered = await control.send(sent, WITHIN_S, trust)
        found = read_enrolment(answered.data, trust, control.clock.now_ms(), request=sent.digest, nonce=nonce)
    except Unreachable as failure:
        raise RotationFailed(f"the control plane does not answer ({failure.reason}); try again") from None
    except RequestRefused as refused:
        reason = refused.refusal.reason
        if reason == "clock" and not knows_the_time:
            control.clock.learn(refused.refusal.ts)
            await _asked(control, signer, following, enrolled, trust, knows_the_time=True)
            return
        raise RotationRefused(f"the control plane refuses it ({reason}): {_REFUSED.get(reason, 'try again')}") from None
    except DocumentRefused as refused:
        raise RotationFailed(f"its answer does not verify ({refused.check}); the identity in force stays") from None
    if (found.gateway, found.project, found.issuer) != (enrolled.gateway, enrolled.project, enrolled.issuer):
        raise RotationFailed("its answer is about another gateway; the identity in force stays")
