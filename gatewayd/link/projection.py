"""What of an audit row leaves the machine: all of it, its statement without constants, or no text at all (docs/link-protocol.md).

The leaf and the commitment go in any case, so the tree is checked without the text. Pure.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from gatewayd.audit.leaf import DETAIL_KEYS, commitment_of, erased_payload, facts_of
from gatewayd.audit.rows import COLUMNS
from gatewayd.link.formats.rows import PushedRow
from gatewayd.sql.text.redact import redacted

Statements = Literal["full", "redacted", "none"]
_INTENT: Final = COLUMNS.index("agent_intent")
_EVENT_TYPE: Final = COLUMNS.index("event_type")
_PAYLOAD: Final = COLUMNS.index("payload")
_FINGERPRINT: Final = re.compile(r'"sql_fingerprint":"[^"]*"')


class StoredRow(msgspec.Struct, frozen=True):
    """A row as the file holds it. `commitment` is there where the details were erased."""

    columns: tuple[str | int | None, ...]
    seq: int
    leaf: bytes
    salt: bytes | None
    commitment: bytes | None


class NotProjected(Exception):
    """The row's statement could not be redacted; `row` is what goes without it."""

    def __init__(self, row: PushedRow) -> None:
        super().__init__(row.seq)
        self.row = row


def pushed(stored: StoredRow, statements: Statements) -> PushedRow:
    """The row as it is sent. Raises NotProjected where its statement has to stay behind although it was to go redacted."""
    commitment = stored.commitment
    if commitment is None:
        assert stored.salt is not None
        commitment = commitment_of(stored.salt, facts_of(stored.columns).details)
    if statements == "full" and stored.salt is not None:
        return _row(stored, stored.columns, commitment, "full", salt=stored.salt.hex())
    columns = list(stored.columns)
    payload = str(columns[_PAYLOAD])
    fields: dict[str, Any] = msgspec.json.decode(payload)
    sql = fields.get("sql_raw")
    if any(isinstance(fields.get(key), str) for key in DETAIL_KEYS):
        columns[_PAYLOAD] = erased_payload(payload)
    columns[_INTENT] = None if columns[_INTENT] is None else ""
    if not isinstance(sql, str) or stored.salt is None:
        return _row(stored, columns, commitment, "none")
    statement = redacted(sql)
    if statement is None:  # its fingerprint is a hash of the text itself, which could be guessed
        columns[_PAYLOAD] = _FINGERPRINT.sub('"sql_fingerprint":""', str(columns[_PAYLOAD]))
        row = _row(stored, columns, commitment, "none")
        if statements == "redacted":
            raise NotProjected(row)
        return row
    if statements == "none":
        return _row(stored, columns, commitment, "none")
    return _row(stored, columns, commitment, "redacted", statement=statement)


def _row(
    stored: StoredRow,
    columns: Sequence[str | int | None],
    commitment: bytes,
    details: Statements,
    *,
    salt: str | None = None,
    statement: str | None = None,
) -> PushedRow:
    row = dict(zip(COLUMNS, columns, strict=True))
    return PushedRow(stored.seq, stored.leaf.hex(), commitment.hex(), row, details, salt, statement)
