"""Enrolment: a token and a public key in; who this gateway is from now on, and whom it may trust, out. One use, but for the same
key, whose answer may have been lost (docs/link-protocol.md, Enrolment)."""

from typing import Final

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.gateways import enrol_tokens, gateway
from gatewayd.control.gateways.gateway import Gateway
from gatewayd.control.gateways.reply import BAD, Reply, refused
from gatewayd.control.organisation.caps import CapReached, check_cap
from gatewayd.control.store import directory
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act, record
from gatewayd.control.trust.documents import trust_in_force
from gatewayd.control.trust.signing import signers
from gatewayd.keys.ed25519 import PublicKey
from gatewayd.keys.envelope import EnvelopeRefused, parse
from gatewayd.link.formats.answers import Enrolment, sign_answer
from gatewayd.link.formats.documents import DocumentRefused, public_key
from gatewayd.link.formats.requests import EnrolBody, LinkRequest, read_body, read_request

PLAN: Final = Statement("SELECT plan FROM organisations WHERE org_id = $1")
ENGINE_REPLICA: Final = Statement("SELECT replica FROM engine_tokens WHERE project_id = $1 AND token_id = $2")
_NONCE: Final = 128


class _TokenUnknown(Exception):
    pass


async def enrol(console: Console, data: bytes) -> Reply:
    try:
        claimed = read_body(read_body(parse(data).payload, LinkRequest).body, EnrolBody)
        key = public_key(claimed.public_key)
        found = read_request(data, key)
    except (DocumentRefused, EnvelopeRefused):
        return BAD
    body = read_body(found.request.body, EnrolBody)  # of the very bytes that the key has signed
    if found.request.kind != "enrol" or len(body.nonce) > _NONCE:
        return BAD
    place = await directory.find(console.store, ProjectPlace, "enrol_token", enrol_tokens.lookup_of(body.token))
    try:
        gateway_id = await _enrolled(console, place, key) if place is not None else None
    except CapReached as reached:
        return refused(409, str(reached))
    if place is None or gateway_id is None:
        return refused(403, "the token is unknown, used or older than an hour")
    trust = await trust_in_force(console)
    answer = Enrolment(gateway_id, place.project_id, trust.trust.issuer, place.org_id, found.digest, body.nonce, console.now_ms())
    signed = sign_answer(answer, signers(console.secrets.signing))
    return Reply(200, b'{"enrolment":%b,"trust":%b}' % (signed, trust.envelope))


async def _enrolled(console: Console, place: ProjectPlace, key: PublicKey) -> str | None:
    """The gateway's id; None when the token does not do. Raises CapReached."""
    new_id, now_ms, event_id, salt = console.new_id(), console.now_ms(), console.new_id(), console.entropy(32)
    lookup = directory.lookup_of_id(new_id)
    assert lookup is not None, "ids are made here"

    async def work(tx: Transaction) -> str:
        token = await tx.row(enrol_tokens.EnrolToken, enrol_tokens.FIND_LOCKED, place.project_id, place.id)
        if token is None or token.ends_ms <= now_ms:
            raise _TokenUnknown
        if token.gateway_id is not None:
            known = await tx.row(Gateway, gateway.FIND, place.project_id, token.gateway_id)
            if known is None or known.key != key:
                raise _TokenUnknown
            return known.gateway_id
        caps = console.settings.plans.of(await tx.value(PLAN, place.org_id) or "")
        if caps.gateways is not None:
            check_cap("gateways", await tx.value(gateway.COUNT, place.project_id, caps.gateways), caps.gateways)
        replica = await tx.value(ENGINE_REPLICA, place.project_id, place.id)
        await tx.run(gateway.ADD, place.project_id, new_id, token.name, key.raw, key.key_id, replica, now_ms)
        await directory.add(tx, "gateway", lookup, ProjectPlace(place.org_id, place.project_id, new_id))
        await tx.run(enrol_tokens.USE, place.project_id, place.id, now_ms, new_id)
        details = {"name": token.name, "key": key.key_id}
        act = Act("gateway.enrolled", token.made_by, place.project_id, new_id, details)
        await record(tx, place.org_id, act, event_id, salt, now_ms)
        return new_id

    try:
        return await console.store.transaction(work)
    except _TokenUnknown:
        return None


class EnrolCommand(msgspec.Struct, frozen=True):
    """What is pasted on the gateway's machine; shown once."""

    token_id: str
    token: str
    control_url: str
    command: str
    ends_ms: int


def command_of(console: Console, token: enrol_tokens.NewToken) -> EnrolCommand:
    url = console.settings.public_url
    command = f"GATEWAY_CONTROL_URL={url} GATEWAY_ENROL_TOKEN={token.text} DATABASE_URL=postgresql://… gatewayd serve"
    return EnrolCommand(token.token_id, token.text, url, command, token.ends_ms)
