"""The audit file's metadata, stored as texts in its `meta` table and signed as a whole (docs/audit-format.md, Metadata). Pure.

Heads cover the rows; the metadata cover the rest: which instance it is, what was pruned, which heads are kept.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final, Literal, NewType

import msgspec

from gatewayd.audit.leaf import canonical
from gatewayd.audit.tree import CompactRange
from gatewayd.keys.ed25519 import SigningKey, strict_base64
from gatewayd.keys.identity import verifier_of
from gatewayd.keys.note import VerifierKey, open_note, sign_note

Instance = NewType("Instance", str)

# why an instance ended
Reason = Literal["fork", "linked", "identity", "rows missing", "damaged"]

SIGNATURE: Final = "signature"
_FIRST_LINE: Final = "gatewayd audit meta\n"


class MetaDamaged(ValueError):
    """The meta table does not hold what gatewayd writes into it."""


class Previous(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An instance that has ended. `root` is base64, `until` milliseconds since the epoch."""

    instance: Instance
    first_seq: int
    size: int
    root: str
    reason: str
    until: int
    verifier: str  # of the key that signed its heads

    @property
    def root_bytes(self) -> bytes:
        return strict_base64(self.root)


class Pruned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The compact range of the first `size` leaves of an instance, whose rows were deleted."""

    instance: Instance
    size: int
    range: str  # base64

    @property
    def tree(self) -> CompactRange:
        return CompactRange.decode(self.size, strict_base64(self.range))


class Acked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last head of the present instance that the control plane has acknowledged."""

    size: int
    root: str  # base64
    ts: int


class Linked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the gateway was last linked, and how long acknowledged rows were to be kept."""

    linked: bool
    retention_h: float


class Heads(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The count and digest of the table `checkpoints`."""

    count: int
    digest: str  # hex of SHA-256


class Meta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole table except the signature, under the table's keys."""

    instance: Instance
    first_seq: int
    identity: str  # key id
    verifier: str  # the key in signed-note form
    heads: Heads
    last_id: str = ""  # the largest id at the last deletion: later ids are above it
    previous_instances: tuple[Previous, ...] = ()
    pruned_to: int = 0  # every row up to this seq was deleted
    pruned: tuple[Pruned, ...] = ()
    acked: Acked | None = None
    linked: Linked | None = None
    taints_kept: bool | None = None  # a standalone gateway keeps taints beside this file: the file of them must be there
    format_1_to: str = ""  # the largest id when the file was converted: rows up to it may stand in no tree

    def pruned_tree(self, instance: str) -> CompactRange:
        """The compact range of an instance's deleted rows; empty if all its rows are there."""
        return next((each.tree for each in self.pruned if each.instance == instance), CompactRange())

    def spans(self) -> list[tuple[Instance, int, int | None]]:
        """(instance, first seq, seq after its last or None for the present one), oldest first."""
        before = [(each.instance, each.first_seq, each.first_seq + each.size) for each in self.previous_instances]
        return [*before, (self.instance, self.first_seq, None)]

    def rows(self, key: SigningKey) -> dict[str, str]:
        """The table's rows, with the signature."""
        texts = _texts(self)
        return {**texts, SIGNATURE: sign_note(_signed(texts), str(verifier_of(key).name), key)}


def read_meta(rows: Mapping[str, str]) -> Meta:
    """The metadata in the table's rows, their signature unchecked. Raises MetaDamaged."""
    fields: dict[str, object] = {}
    for key, value in rows.items():
        if key in _PLAIN:
            fields[key] = value
        elif key != SIGNATURE:
            try:
                fields[key] = msgspec.json.decode(value)
            except (msgspec.DecodeError, UnicodeEncodeError):
                raise MetaDamaged(f"its meta row `{key}` is no JSON") from None
    try:
        meta = msgspec.convert(fields, Meta)
        for each in meta.pruned:
            each.tree  # noqa: B018 - raises when it does not fit its size
        for previous in meta.previous_instances:
            previous.root_bytes  # noqa: B018 - raises when it is no base64
    except (msgspec.ValidationError, ValueError) as failure:
        raise MetaDamaged(f"its meta table is damaged ({failure})") from None
    return meta


def check_signature(rows: Mapping[str, str], key: VerifierKey) -> None:
    """Raises NoteRefused or MetaDamaged unless `key` signed exactly these rows."""
    text, _ = open_note(rows.get(SIGNATURE, ""), [key])
    if text != _signed({name: value for name, value in rows.items() if name != SIGNATURE}):
        raise MetaDamaged("its meta table is not the one that was signed")


_MAY_BE_EMPTY: Final = frozenset({"last_id", "format_1_to"})
_PLAIN: Final = frozenset({"instance", "identity", "verifier", "last_id", "format_1_to"})


def _texts(meta: Meta) -> dict[str, str]:
    fields = {name: getattr(meta, name) for name in meta.__struct_fields__}
    return {
        name: value if name in _PLAIN else canonical(value).decode()
        for name, value in fields.items()
        if value is not None and (value or name not in _MAY_BE_EMPTY)
    }


def _signed(texts: Mapping[str, str]) -> str:
    return f"{_FIRST_LINE}{sha256(canonical(dict(texts))).hexdigest()}\n"
