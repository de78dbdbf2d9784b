"""Rotation: the identity in force names the next one, which proves itself and takes its place at once
(docs/link-protocol.md, Rotation).

The two do not overlap: a gateway whose answer was lost asks again with the next key, about itself, which changes nothing.
"""

from typing import Final

from gatewayd.control.console import Console
from gatewayd.control.gateways import identities
from gatewayd.control.gateways.gateway import Gateway
from gatewayd.control.gateways.reply import BAD, NOT_KNOWN, Reply, refused
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act, record
from gatewayd.control.trust.documents import trust_in_force
from gatewayd.control.trust.signing import signers
from gatewayd.keys.ed25519 import PublicKey
from gatewayd.link.formats.answers import Enrolment, sign_answer
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.requests import ReadRequest, read_body
from gatewayd.link.formats.rotation import RotateBody, next_key

_NONCE: Final = 128


async def rotate(console: Console, place: ProjectPlace, gateway: Gateway, found: ReadRequest) -> Reply:
    """`gateway` as it was when its key verified the request: the proof and the change are held to that very key."""
    try:
        body = read_body(found.request.body, RotateBody)
        following = next_key(body, gateway=place.id, signer=gateway.key)
    except DocumentRefused:
        return BAD
    if len(body.nonce) > _NONCE:
        return BAD
    try:
        if following != gateway.key and not await _replaced(console, place, gateway, following):
            return NOT_KNOWN
    except identities.TooManyRotations:
        return refused(429, f"this gateway has changed its identity {identities.ROTATIONS_A_DAY} times in 24 hours; try later")
    issuer = (await trust_in_force(console)).trust.issuer
    answer = Enrolment(place.id, place.project_id, issuer, place.org_id, found.digest, body.nonce, console.now_ms())
    return Reply(200, sign_answer(answer, signers(console.secrets.signing)))


async def _replaced(console: Console, place: ProjectPlace, gateway: Gateway, following: PublicKey) -> bool:
    event_id, salt, now_ms = console.new_id(), console.entropy(32), console.now_ms()
    details = {"name": gateway.name, "before": gateway.key_id, "key": following.key_id}

    async def work(tx: Transaction) -> bool:
        if not await identities.replace(tx, gateway, following, now_ms):
            return False
        act = Act("gateway.rotated", None, place.project_id, place.id, details)
        await record(tx, place.org_id, act, event_id, salt, now_ms)
        return True

    return await console.store.transaction(work)
