"""Erasing the details of rows: nothing of them stays in the file, and all proofs stay valid (docs/audit-format.md).

The salt is erased too, so that nobody can test guesses against the commitment, which stays in the table `erased`. A row of the
audit records what was erased, when and why.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.audit.leaf import PayloadRefused, commitment_of, erased_payload, facts_of
from gatewayd.audit.rows import COLUMNS
from gatewayd.audit.stored_tree import LeafMissing

REASON_CHARACTERS: Final = 512
_QUERY_IDS: Final = 500
_SELECT: Final = f"SELECT {', '.join(COLUMNS)}, seq, salt FROM audit_events"
_ERASABLE: Final = "seq > ? AND salt IS NOT NULL AND event_type NOT IN ('ERASED', 'POLICY_RELOADED')"


class ErasureChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rows to erase: those that meet all given conditions. `before` selects rows with a smaller id."""

    query_ids: tuple[str, ...] = ()
    agent: str | None = None
    before: str | None = None


def choice_of(query_ids: Sequence[str], agent: str | None, before: str | None) -> ErasureChoice:
    """The choice of these conditions. Raises ValueError, which names the field, for an invalid one or if none is given."""
    for each in query_ids:
        if not is_ulid(each):
            raise ValueError(f"query_ids: found {each[:40]!r}, expected ids of 26 characters")
    if len(query_ids) > _QUERY_IDS:
        raise ValueError(f"query_ids: found {len(query_ids)}, expected at most {_QUERY_IDS}")
    if before is not None and not is_ulid(before):
        raise ValueError(f"before: found {before[:40]!r}, expected an id of 26 characters")
    if not query_ids and agent is None and before is None:
        raise ValueError("query_ids, agent, before: found none of them, expected at least one")
    return ErasureChoice(tuple(each.upper() for each in query_ids), agent, before and before.upper())


def reason_of_erasure(text: str) -> str:
    """The reason as it is recorded, with single spaces. Raises ValueError if it is empty or too long."""
    reason = " ".join(text.split())
    if not reason or len(reason) > REASON_CHARACTERS or any("\ud800" <= each <= "\udfff" for each in reason):
        raise ValueError(f"reason: found {len(reason)} characters, expected 1 to {REASON_CHARACTERS}")
    return reason


class Erasable(msgspec.Struct, frozen=True):
    """Rows with details, oldest first: (id, seq, columns, salt)."""

    rows: tuple[tuple[Any, ...], ...]

    @property
    def last_seq(self) -> int:
        return int(self.rows[-1][len(COLUMNS)]) if self.rows else 0


def find(connection: sqlite3.Connection, choice: ErasureChoice, after_seq: int, at_most: int) -> Erasable:
    """The next rows of the choice with details to erase: at most `at_most`, with a seq above `after_seq`."""
    conditions, parameters = [_ERASABLE], [after_seq]
    values: list[str | int] = [*parameters]
    if choice.query_ids:
        conditions.append(f"query_id IN ({', '.join('?' * len(choice.query_ids))})")
        values += choice.query_ids
    if choice.agent is not None:
        conditions.append("agent_name = ?")
        values.append(choice.agent)
    if choice.before is not None:
        conditions.append("id < ?")
        values.append(choice.before)
    sql = f"{_SELECT} WHERE {' AND '.join(conditions)} ORDER BY seq LIMIT ?"
    return Erasable(tuple(connection.execute(sql, (*values, at_most)).fetchall()))


def erase(connection: sqlite3.Connection, erasable: Erasable) -> list[tuple[int, int]]:
    """Erases the details within the caller's transaction. Returns the ranges of seq that were erased.

    Rows without details keep their salt: they have nothing to hide, and stay fully provable. Raises LeafMissing for a changed
    row.
    """
    seqs: list[int] = []
    for row in erasable.rows:
        columns, seq, salt = row[: len(COLUMNS)], row[len(COLUMNS)], row[len(COLUMNS) + 1]
        try:
            facts = facts_of(columns)
        except PayloadRefused:
            raise LeafMissing(f"the row of seq {seq} is not the one that was recorded") from None
        if not facts.has_details:
            continue
        intent = None if columns[6] is None else ""
        connection.execute("INSERT INTO erased VALUES (?, ?)", (seq, commitment_of(salt, facts.details)))
        connection.execute(
            "UPDATE audit_events SET agent_intent = ?, payload = ?, salt = NULL WHERE seq = ?",
            (intent, erased_payload(columns[10]), seq),
        )
        seqs.append(seq)
    return ranges_of(seqs)


def ranges_of(seqs: Sequence[int]) -> list[tuple[int, int]]:
    """Groups rising numbers into ranges (first, last)."""
    ranges: list[tuple[int, int]] = []
    for seq in seqs:
        if ranges and ranges[-1][1] == seq - 1:
            ranges[-1] = (ranges[-1][0], seq)
        else:
            ranges.append((seq, seq))
    return ranges
