"""Enrolment tokens: for one gateway, one project, one hour. Each carries the fingerprint of the root key, so that the gateway
notices a wrong or faked control plane. The store keeps a hash of the secret part."""

from hashlib import sha256
from typing import Final

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.store import directory
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act, record
from gatewayd.control.trust.documents import trust_in_force
from gatewayd.link.formats.documents import public_key
from gatewayd.link.formats.enrolment import EnrolmentToken, token_text
from gatewayd.link.formats.trust import fingerprint_of

LIFE_MS: Final = 3600 * 1000
_SECRET_BYTES: Final = 16

ADD: Final = Statement(
    "INSERT INTO enrol_tokens (project_id, token_id, lookup, name, made_by, made_ms, ends_ms) VALUES ($1, $2, $3, $4, $5, $6, $7)"
)
FIND_LOCKED: Final = Statement(
    "SELECT token_id, name, made_by, ends_ms, used_ms, gateway_id FROM enrol_tokens WHERE project_id = $1 AND"
    " token_id = $2 FOR UPDATE"
)
USE: Final = Statement(
    "UPDATE enrol_tokens SET used_ms = $3, gateway_id = $4 WHERE project_id = $1 AND token_id = $2 AND used_ms IS NULL"
)


class EnrolToken(msgspec.Struct, frozen=True):
    token_id: str
    name: str
    made_by: str | None
    ends_ms: int
    used_ms: int | None
    gateway_id: str | None


class NewToken(msgspec.Struct, frozen=True):
    """`text` is shown once."""

    token_id: str
    text: str
    ends_ms: int


def lookup_of(secret: str) -> bytes:
    return sha256(b"gatewayd enrol token\n" + secret.encode()).digest()


async def make_token(console: Console, org_id: str, project_id: str, name: str, person_id: str | None) -> NewToken:
    """A token for one gateway of the project, which will be called `name`. `person_id` None: for an engine that is
    spawned here."""
    trust = (await trust_in_force(console)).trust
    secret = console.entropy(_SECRET_BYTES).hex()
    fingerprint = fingerprint_of(public_key(trust.root_from_now_on))
    token_id, now_ms = console.new_id(), console.now_ms()
    event_id, salt, lookup = console.new_id(), console.entropy(32), lookup_of(secret)

    async def work(tx: Transaction) -> None:
        await tx.run(ADD, project_id, token_id, lookup, name, person_id, now_ms, now_ms + LIFE_MS)
        await directory.add(tx, "enrol_token", lookup, ProjectPlace(org_id, project_id, token_id))
        act = Act("gateway.token_made", person_id, project_id, token_id, {"name": name})
        await record(tx, org_id, act, event_id, salt, now_ms)

    await console.store.transaction(work)
    return NewToken(token_id, token_text(EnrolmentToken(secret, fingerprint)), now_ms + LIFE_MS)
