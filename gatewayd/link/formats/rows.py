"""Batches of audit rows as they are pushed, and what may be left out of them (docs/link-protocol.md, Audit push)."""

from typing import Final, Literal

import msgspec

BATCH_ROWS: Final = 1000
BATCH_BYTES: Final = 4 * 1024 * 1024

Details = Literal["full", "redacted", "none"]


class PushedRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One row. `row` holds the columns of the audit file, `payload` as the stored text; of a projection the details are "", and
    `statement` is the text with `?` for each constant, where `details` is `redacted`.

    `leaf` and `commitment` go in any case, so the tree is checked without the text; `salt` only with all details: it proves them.
    """

    seq: int
    leaf: str
    commitment: str
    row: dict[str, str | int | None]
    details: Details
    salt: str | None = None
    statement: str | None = None


class AuditBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rows `from_seq` to `to_seq` of the instance, whose first row has `first_seq`; `root` is the tree's over all rows up to
    `to_seq`, `size` of them.

    `gap` is there where the rows before `from_seq` are gone on both sides: the compact range of their leaves, in hex.
    """

    instance: str
    first_seq: int
    from_seq: int
    to_seq: int
    rows: tuple[PushedRow, ...]
    size: int
    root: str
    gap: str | None = None
