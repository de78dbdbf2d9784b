"""Trust documents: which working keys gateways believe, each version signed by the root (docs/link-protocol.md, Trust).

A start makes the newest anew when the ring CONTROL_SIGNING_KEY says something else: another working key, or another root, which
the old root then signs too. Later only what is lacking is added: while replicas with different rings run beside each other, each
would else take back what the other one has said, at every request. All versions stay: a gateway that was off walks through them.
"""

from typing import Final

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.keyring.ring import Ring
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trust.signing import root_keys, working_keys
from gatewayd.keys.envelope import parse
from gatewayd.link.formats.documents import public_text, read
from gatewayd.link.formats.trust import USES, Trust, WorkingKey, sign_trust

LIFE_MS: Final = 5 * 365 * 24 * 3600 * 1000
"""A working key that stays in the ring is prolonged by the next trust document, long before its end."""
_PROLONGED_MS: Final = LIFE_MS // 2

NEWEST: Final = Statement("SELECT version, envelope FROM trust_documents ORDER BY version DESC LIMIT 1")
ABOVE: Final = Statement("SELECT version, envelope FROM trust_documents WHERE version > $1 ORDER BY version LIMIT 100")
ADD: Final = Statement("INSERT INTO trust_documents (version, envelope, made_ms) VALUES ($1, $2, $3)")


class TrustProblem(Exception):
    """The ring CONTROL_SIGNING_KEY no longer holds the root that gateways have pinned."""


class TrustRow(msgspec.Struct, frozen=True):
    version: int
    envelope: bytes

    @property
    def trust(self) -> Trust:
        """What the document says. It is our own: the signature was made here."""
        return read(parse(self.envelope).payload, Trust)


async def ensure_trust(tx: Transaction, ring: Ring, now_ms: int, fresh_issuer: str) -> TrustRow:
    """The trust document in force, made anew where gateways could not believe what is signed here.

    `fresh_issuer`: the name of this control plane, should this be its first document. Raises TrustProblem.
    """
    newest = await tx.row(TrustRow, NEWEST)
    if newest is not None and suffices(newest.trust, ring, now_ms):
        return newest
    return await _follow(tx, newest, ring, now_ms, fresh_issuer)


async def _follow(tx: Transaction, newest: TrustRow | None, ring: Ring, now_ms: int, fresh_issuer: str) -> TrustRow:
    wanted = next_document(newest.trust if newest else None, ring, now_ms, fresh_issuer)
    if wanted is None:
        assert newest is not None
        return newest
    version, envelope = wanted
    await tx.run(ADD, version, envelope, now_ms)
    return TrustRow(version, envelope)


def suffices(held: Trust, ring: Ring, now_ms: int) -> bool:
    """Whether gateways that believe `held` believe what is signed with the current value, below a root of the ring."""
    current = public_text(working_keys(ring)[0].public)
    return current in _lasting(held, now_ms) and held.root_from_now_on in {public_text(key.public) for key in root_keys(ring)}


def next_document(held: Trust | None, ring: Ring, now_ms: int, fresh_issuer: str) -> tuple[int, bytes] | None:
    """Version and envelope of the document that must follow `held`; None when `held` says all that the ring does."""
    roots = {public_text(key.public): key for key in root_keys(ring)}
    root = next(iter(roots))
    keys = tuple(WorkingKey(public_text(key.public), USES, now_ms + LIFE_MS) for key in working_keys(ring))
    if held is None:
        return 1, sign_trust(Trust(1, fresh_issuer, root, keys, now_ms), roots[root])
    if held.root_from_now_on == root and _lasting(held, now_ms) == _publics(ring) == {key.public for key in held.keys}:
        return None
    signer = roots.get(held.root_from_now_on)
    if signer is None:
        raise TrustProblem(
            "CONTROL_SIGNING_KEY holds none of the values that gateways were enrolled with; put the old value back, after the new"
            " one, until every gateway has followed"
        )
    version = held.version + 1
    if held.root_from_now_on == root:
        return version, sign_trust(Trust(version, held.issuer, root, keys, now_ms), signer)
    trust = Trust(version, held.issuer, held.root_from_now_on, keys, now_ms, next_root=root)
    return version, sign_trust(trust, signer, roots[root])


def _lasting(held: Trust, now_ms: int) -> set[str]:
    return {key.public for key in held.keys if key.not_after > now_ms + _PROLONGED_MS}


def _publics(ring: Ring) -> set[str]:
    return {public_text(key.public) for key in working_keys(ring)}


async def settle_trust(console: Console) -> None:
    """At the start: the newest document says what the ring does, no more and no less. Raises TrustProblem."""
    now_ms, issuer, ring = console.now_ms(), console.new_id(), console.secrets.signing

    async def work(tx: Transaction) -> TrustRow:
        return await _follow(tx, await tx.row(TrustRow, NEWEST), ring, now_ms, issuer)

    await console.store.transaction(work)


async def trust_in_force(console: Console) -> TrustRow:
    """As `ensure_trust`, in a transaction of its own."""
    now_ms, issuer = console.now_ms(), console.new_id()
    ring = console.secrets.signing
    return await console.store.transaction(lambda tx: ensure_trust(tx, ring, now_ms, issuer))
