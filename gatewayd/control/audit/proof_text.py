"""One query with its proofs: for each event its row, the inclusion proof and a signed head, as `gatewayd audit
verify-proof` takes
them (docs/audit-format.md, Proofs).

The head is the newest one that the gateway itself signed, with its identity of that time, and that covers the row. Where none has
come yet, the control plane signs what it holds, as a witness, with its working key.
"""

import msgspec

from gatewayd.audit.heads import WITNESS_NAME, Head
from gatewayd.audit.leaf import canonical, facts_of, leaf_of
from gatewayd.audit.proof_form import proof_text
from gatewayd.audit.rows import COLUMNS
from gatewayd.audit.tree import root_from_inclusion
from gatewayd.control.audit import tiles
from gatewayd.control.audit.held import FIND, HeldHead
from gatewayd.control.audit.stored import StoredEvent
from gatewayd.control.audit.witness import NEWEST, OWN_HEAD_WITHIN_MS, KeptNote, verifier
from gatewayd.control.console import Console
from gatewayd.control.gateways.gateway import FIND as FIND_GATEWAY
from gatewayd.control.gateways.gateway import Gateway
from gatewayd.control.gateways.identities import identity
from gatewayd.control.store.store import Transaction
from gatewayd.control.trust.signing import signers
from gatewayd.keys.ed25519 import base64_of
from gatewayd.keys.note import VerifierKey, sign_note


class NoProof(Exception):
    """There is no proof to give; the text says why."""


class Proof(msgspec.Struct, frozen=True):
    """`text` proves itself under one of `keys`, each a verifier key of a signed note. `is_witnessed`: the gateway's
    own head has not come
    yet, and the control plane has signed in its place; `own_by_ms` is when it is due then."""

    text: str
    keys: list[str]
    is_witnessed: bool
    own_by_ms: int | None = None


async def prove(console: Console, project_id: str, events: list[StoredEvent]) -> Proof:
    """Raises NoProof."""
    witness = signers(console.secrets.signing)[0]
    witness_name = WITNESS_NAME.format(witness.key_id)

    async def work(tx: Transaction) -> Proof:
        blocks: list[str] = []
        keys: list[str] = []
        is_witnessed = False
        for event in events:
            gateway = await tx.row(Gateway, FIND_GATEWAY, project_id, event.gateway_id)
            head = await tx.row(HeldHead, FIND, project_id, event.gateway_id, event.instance)
            if gateway is None or head is None:
                raise NoProof("its gateway is not known any more")
            index = event.seq - head.first_seq
            note = await tx.row(KeptNote, NEWEST, project_id, event.gateway_id, event.instance, head.size)
            key_id = note.head.key_id if note is not None else gateway.key_id
            signer = await identity(tx, gateway, key_id)
            if note is not None and note.size > index and signer is not None:
                size, root, signed, key = note.size, note.head.root, note.note, verifier(signer)
            else:
                text = Head(key_id, event.instance, head.size, head.root).text
                size, root, signed = head.size, head.root, sign_note(text, witness_name, witness)
                key, is_witnessed = VerifierKey(witness_name, witness.public), True
            try:
                proof = await tiles.prove(tx, (project_id, event.gateway_id, event.instance), index, size)
            except tiles.TileMissing:
                raise NoProof("leaf hashes that it needs are not held") from None
            if root_from_inclusion(_leaf(event), index, size, proof) != root:
                raise NoProof("what is held does not lead to the head: rows before it were lost, or something was changed")
            blocks.append(_block(event, index, proof, signed))
            keys.append(str(key))
        due_ms = max(each.received_ms for each in events) + OWN_HEAD_WITHIN_MS
        return Proof("".join(blocks), sorted(set(keys)), is_witnessed, due_ms if is_witnessed else None)

    return await console.store.transaction(work)


def _leaf(event: StoredEvent) -> bytes:
    row = event.row()
    return leaf_of(event.seq, facts_of([row[name] for name in COLUMNS]).envelope, event.commitment)


def _block(event: StoredEvent, index: int, proof: list[bytes], note: str) -> str:
    shown: dict[str, object] = {"row": event.row(), "seq": event.seq}
    shown |= {"salt": base64_of(event.salt)} if event.salt is not None else {"commitment": base64_of(event.commitment)}
    return proof_text(canonical(shown), index, proof, note)
