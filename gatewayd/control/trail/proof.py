"""What people did, proved to somebody who has neither the store nor a network: heads, proofs of one act, whole exports. Pure.

A head is C2SP tlog-checkpoint text with the origin `gatewayd-control/<key id>/<organisation>/<instance>`, signed with the control
plane's working key. An export is lines of JSON, one act each, with the signed head over all of them at the end.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from gatewayd.audit.heads import WITNESS_NAME
from gatewayd.audit.proof_form import FIRST_LINE, proof_text, read_proof
from gatewayd.audit.tree import CompactRange, root_from_inclusion
from gatewayd.control.trail.record import Event, canonical, commitment_of, leaf_of
from gatewayd.keys.ed25519 import SigningKey, base64_of, strict_base64
from gatewayd.keys.note import NoteRefused, VerifierKey, open_note, sign_note

_ULID: Final = "[0-9A-HJKMNP-TV-Z]{26}"
_TEXT: Final = re.compile(
    rf"gatewayd-control/([0-9a-f]{{32}})/({_ULID})/({_ULID})\n(0|[1-9][0-9]{{0,17}})\n([A-Za-z0-9+/]{{43}}=)\n", re.ASCII
)


class TrailRefused(Exception):
    """What proves nothing; the text says which part is wrong."""


class TrailHead(msgspec.Struct, frozen=True):
    """The tree of an organisation at `size` acts."""

    organisation: str
    instance: str
    size: int
    root: bytes


class ExportedAct(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`envelope` and `details` are the canonical JSON that the leaf is made from; `salt` is base64. Where the details are erased
    there is the leaf itself, in base64: it holds the tree together, and proves nothing of the envelope."""

    seq: int
    envelope: str
    details: str | None = None
    salt: str | None = None
    erased_leaf: str | None = None

    @property
    def leaf(self) -> bytes:
        """Raises ValueError for what is neither whole nor erased, or no base64."""
        if self.details is not None and self.salt is not None and self.erased_leaf is None:
            return leaf_of(self.seq, self.envelope, commitment_of(strict_base64(self.salt), self.details))
        if self.details is None and self.salt is None and self.erased_leaf is not None:
            return strict_base64(self.erased_leaf)
        raise ValueError("expected details and salt, or the leaf of an act whose details are erased")


class ExportedHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last line of an export: a signed head, and the key that signed it, as `name+hash+base64`."""

    head: str
    key: str


class CheckedTrail(msgspec.Struct, frozen=True):
    """Acts that are proved, envelope and `details`, under `head`, which `signer` signed; `erased` stands in the place of both."""

    acts: list[dict[str, Any]]
    head: TrailHead
    signer: VerifierKey


def sign_head(head: TrailHead, key: SigningKey) -> str:
    origin = f"gatewayd-control/{key.key_id}/{head.organisation}/{head.instance}"
    return sign_note(f"{origin}\n{head.size}\n{base64_of(head.root)}\n", WITNESS_NAME.format(key.key_id), key)


def verifier_of(key: SigningKey) -> VerifierKey:
    return VerifierKey(WITNESS_NAME.format(key.key_id), key.public)


def open_head(note: str, keys: Sequence[VerifierKey]) -> tuple[TrailHead, VerifierKey]:
    """The head of a note that one of `keys` signed. Raises TrailRefused."""
    try:
        text, signer = open_note(note, keys)
        matched = _TEXT.fullmatch(text)
        if matched is None or signer.name != WITNESS_NAME.format(matched[1]):
            raise TrailRefused("its head is not one of what people did, or names another key than the one that signed it")
        return TrailHead(matched[2], matched[3], int(matched[4]), strict_base64(matched[5])), signer
    except (NoteRefused, ValueError) as refused:
        raise TrailRefused(f"its head: {refused}") from None


def exported(event: Event) -> ExportedAct:
    if event.details is None or event.salt is None:
        return ExportedAct(event.seq, event.envelope, erased_leaf=base64_of(event.leaf))
    return ExportedAct(event.seq, event.envelope, event.details, base64_of(event.salt))


def act_proof(act: ExportedAct, hashes: Sequence[bytes], note: str) -> str:
    """The text that `check_act` takes."""
    return proof_text(canonical(msgspec.to_builtins(act)).encode(), act.seq - 1, hashes, note)


def check(text: str, keys: Sequence[VerifierKey], heads: Iterable[str] = ()) -> CheckedTrail:
    """What a proof of one act, or an export, proves under a head that one of `keys` signed. `heads`: notes that were kept
    elsewhere, which an export must lead to as well. Raises TrailRefused."""
    return check_act(text, keys) if text.startswith(FIRST_LINE) else check_export(text.splitlines(), keys, heads)


def check_act(text: str, keys: Sequence[VerifierKey]) -> CheckedTrail:
    """Raises TrailRefused."""
    try:
        form = read_proof(text)
        if form is None:
            raise TrailRefused("it is not in the form of a tlog-proof")
        act = msgspec.json.decode(form.extra, type=ExportedAct)
        head, signer = open_head(form.note, keys)
        if act.seq != form.index + 1 or root_from_inclusion(act.leaf, form.index, head.size, form.hashes) != head.root:
            raise TrailRefused("its act is not one that the head is over")
    except (msgspec.MsgspecError, ValueError) as refused:
        raise TrailRefused(f"its act: {refused}") from None
    return CheckedTrail([_facts(act, head)], head, signer)


def check_export(lines: Sequence[str], keys: Sequence[VerifierKey], heads: Iterable[str] = ()) -> CheckedTrail:
    """Raises TrailRefused."""
    if not lines:
        raise TrailRefused("it is empty")
    try:
        last = msgspec.json.decode(lines[-1], type=ExportedHead)
    except msgspec.MsgspecError:
        raise TrailRefused("its last line is no signed head: an export ends with one") from None
    head, signer = open_head(last.head, keys)
    before = {kept.size: kept for kept, _ in (open_head(note, keys) for note in heads)}
    if any((each.organisation, each.instance) != (head.organisation, head.instance) for each in before.values()):
        raise TrailRefused("a head given with it is of another organisation")
    tree, acts = CompactRange(), []
    for number, line in enumerate(lines[:-1], 1):
        try:
            act = msgspec.json.decode(line, type=ExportedAct)
            tree.append(act.leaf)
        except (msgspec.MsgspecError, ValueError) as refused:
            raise TrailRefused(f"line {number}: {refused}") from None
        if act.seq != number:
            raise TrailRefused(f"line {number}: found act {act.seq}, expected {number}")
        if number in before and before[number].root != tree.root():
            raise TrailRefused(f"the head of {number} acts that was given is not over the first {number} here")
        acts.append(_facts(act, head))
    if tree.size != head.size or tree.root() != head.root:
        raise TrailRefused(f"its {tree.size} acts are not the {head.size} that its head is over")
    if any(size > head.size for size in before):
        raise TrailRefused(f"a head given with it is over more acts than the {head.size} here")
    return CheckedTrail(acts, head, signer)


def _facts(act: ExportedAct, head: TrailHead) -> dict[str, Any]:
    """Envelope and details; of an erased act only that it was there. Raises TrailRefused where they are of another place."""
    if act.details is None:
        return {"seq": act.seq, "erased": True}
    try:
        envelope, details = (msgspec.json.decode(each, type=dict[str, Any]) for each in (act.envelope, act.details))
    except msgspec.MsgspecError as refused:
        raise TrailRefused(f"act {act.seq}: {refused}") from None
    if canonical(envelope) != act.envelope or canonical(details) != act.details:
        raise TrailRefused(f"act {act.seq}: it is not in the form that gatewayd writes")
    place = (envelope.get("organisation"), envelope.get("instance"), envelope.get("seq"))
    if place != (head.organisation, head.instance, act.seq):
        raise TrailRefused(f"act {act.seq}: it says that it is of another place")
    return envelope | {"details": details}
