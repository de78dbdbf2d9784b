"""A pushed batch, checked row by row and made into rows of the store. Pure: it runs in a thread, beside the event loop.

What a row says must lead to its leaf; a projection, which lacks the text, is kept as unproved. Whether the leaves
lead to the root
is asked where the head is (`receive.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gatewayd.audit.ids import ulid_text, ulid_value
from gatewayd.audit.leaf import DETAIL_KEYS, ERASED_KEY, PayloadRefused, commitment_of, facts_of, leaf_of
from gatewayd.audit.rows import COLUMNS
from gatewayd.control.audit.filter_keys import filter_key, tables_of
from gatewayd.control.audit.rollup import Counted, counted
from gatewayd.control.audit.statement_days import StatementCall, call_of
from gatewayd.link.formats.rows import AuditBody, PushedRow

ROWS_MOST: Final = 2000
_TEXT: Final = 200
_BIGGEST: Final = 1 << 62

EVENT_COLUMNS: Final = (
    "project_id", "gateway_id", "instance", "seq", "id", "query_id", "ts", "received_ms", "event_type", "tenant_id",
    "database_name", "agent_name", "agent_version", "has_intent", "token_id", "payload", "schema_version", "commitment",
    "unproved", "keys",
)  # fmt: skip
DETAIL_COLUMNS: Final = ("project_id", "gateway_id", "instance", "seq", "details", "salt")


class RowsRefused(Exception):
    """A batch that is not taken, by no fault of the tree: the text says which row and what is wrong with it."""


class Origin(msgspec.Struct, frozen=True):
    """Where a batch comes from, and when it came."""

    project_id: str
    gateway_id: str
    received_ms: int


class StatementText(msgspec.Struct, frozen=True):
    """A statement that is to be found by its text: `sql` has its constants unless `is_redacted`."""

    fingerprint: str
    sql: str
    ts: int
    is_redacted: bool


class CheckedBatch(msgspec.Struct, frozen=True):
    """`events` and `details` are rows in the order of EVENT_COLUMNS and DETAIL_COLUMNS. `counted`: what each row
    adds to the rollup, `calls`: what as a statement.
    `erased`: ranges of seq whose details are gone."""

    leaves: list[bytes]
    events: list[tuple[object, ...]]
    details: list[tuple[object, ...]]
    counted: list[Counted]
    calls: list[StatementCall | None]
    statements: dict[str, StatementText]
    erased: list[tuple[int, int]]

    def after(self, count: int) -> "CheckedBatch":
        """Without the first `count` rows, which are held already."""
        if not count:
            return self
        gone = {each[3] for each in self.events[:count]}
        details = [each for each in self.details if each[3] not in gone]
        return msgspec.structs.replace(
            self, leaves=self.leaves[count:], events=self.events[count:], details=details, counted=self.counted[count:],
            calls=self.calls[count:],
        )  # fmt: skip


_payload_of = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder(order="sorted").encode


def check_batch(body: AuditBody, origin: Origin, fingerprints: Mapping[str, str]) -> CheckedBatch:
    """`fingerprints`: by query_id, of queries whose first row came with an earlier batch. Raises RowsRefused."""
    _check_span(body)
    found = CheckedBatch([], [], [], [], [], {}, [])
    known = dict(fingerprints)
    for place, row in enumerate(body.rows):
        if row.seq != body.from_seq + place:
            raise RowsRefused(f"row {place}: found seq {row.seq}, expected {body.from_seq + place}")
        try:
            _row(row, body.instance, origin, known, found)
        except (PayloadRefused, ValueError, msgspec.MsgspecError) as refused:
            raise RowsRefused(f"seq {row.seq}: {refused}") from None
    return found


def asked_before(body: AuditBody) -> list[str]:
    """The queries of which the batch has a decision or an end but not the first row."""
    first = {row.row.get("query_id") for row in body.rows if row.row.get("event_type") == "ATTEMPTED"}
    rest = {row.row.get("query_id") for row in body.rows if row.row.get("event_type") in ("DECIDED", "FAILED")}
    return sorted(str(each) for each in rest - first if isinstance(each, str) and ulid_value(each) is not None)


def _check_span(body: AuditBody) -> None:
    if ulid_value(body.instance) is None or body.instance != body.instance.upper():
        raise RowsRefused("instance: expected an id")
    if not 0 < body.first_seq <= body.from_seq <= body.to_seq < _BIGGEST:
        raise RowsRefused("first_seq, from_seq, to_seq: expected them rising from 1")
    if len(body.rows) != body.to_seq - body.from_seq + 1 or len(body.rows) > ROWS_MOST:
        raise RowsRefused(f"rows: found {len(body.rows)}, expected {body.to_seq - body.from_seq + 1}, at most {ROWS_MOST}")
    if body.size != body.to_seq - body.first_seq + 1:
        raise RowsRefused("size: it is not that of the rows up to to_seq")


def _row(row: PushedRow, instance: str, origin: Origin, known: dict[str, str], found: CheckedBatch) -> None:
    columns = row.row
    if tuple(sorted(columns)) != _SORTED_COLUMNS:
        raise ValueError("expected the columns of an audit row")
    facts = facts_of([columns[name] for name in COLUMNS])
    leaf, commitment = _bytes32(row.leaf), _bytes32(row.commitment)
    salt = bytes.fromhex(row.salt) if row.salt is not None else None
    is_leaf = leaf_of(row.seq, facts.envelope, commitment) == leaf
    is_bare = salt is None or len(salt) != 32
    if row.details == "full" and (is_bare or not is_leaf or commitment_of(salt or b"", facts.details) != commitment):
        raise ValueError("its columns do not lead to its leaf")
    payload = _payload_of(str(columns["payload"]))
    kind, query_id = str(columns["event_type"]), str(columns["query_id"])
    for key in (*DETAIL_KEYS, ERASED_KEY):
        if isinstance(payload.get(key), str):
            payload[key] = ""
    payload.pop(ERASED_KEY, None)
    fingerprint = payload.get("sql_fingerprint")
    if isinstance(fingerprint, str) and fingerprint:
        known[query_id] = fingerprint
    ids = _Ids(columns)
    database, agent, version = (_storable(columns[name]) for name in ("database", "agent_name", "agent_version"))
    is_whole = ids.are_exact and (database, agent, version) == tuple(
        columns[name] for name in ("database", "agent_name", "agent_version")
    )
    ts = columns["ts"]
    if not isinstance(ts, int) or not 0 <= ts < 1 << 48:
        raise ValueError("ts: expected milliseconds since 1970")
    schema_version = columns["schema_version"]
    if not isinstance(schema_version, int) or not 0 <= schema_version < 1 << 31:
        raise ValueError("schema_version: expected a number")
    found.leaves.append(leaf)
    found.events.append(
        (
            origin.project_id, origin.gateway_id, instance, row.seq, ids.id, ids.query_id, ts, origin.received_ms,
            _storable(kind),
            _storable(columns["tenant_id"]) or "", database or "", agent, version,
            columns["agent_intent"] is not None, ids.token_id,
            _encode(payload).decode(), schema_version, commitment,
            row.details != "full" or not is_whole,
            keys_of(origin.project_id, kind, database or "", agent, ids.token_id, payload, known.get(query_id)),
        )
    )  # fmt: skip
    details: bytes | None = facts.details if row.details == "full" else None
    if row.statement is not None:
        details = _encode({"statement": row.statement})
    if details is not None and (salt is not None or row.statement is not None):
        found.details.append((origin.project_id, origin.gateway_id, instance, row.seq, details.decode(), salt))
    found.counted.append(counted(ts, kind, database or "", agent, ids.token_id, payload))
    found.calls.append(call_of(kind, database or "", agent, ids.query_id, ts, known.get(query_id), payload))
    _statement(found, columns, row.statement, ts)
    if kind == "ERASED":
        found.erased.extend(_ranges(payload.get("seqs")))


_SORTED_COLUMNS: Final = tuple(sorted(COLUMNS))


class _Ids:
    """The ids of a row as the store keeps them. `are_exact`: they come out again just as they were."""

    def __init__(self, columns: Mapping[str, str | int | None]) -> None:
        self.are_exact = True
        id_, query_id = self._id(columns["id"]), self._id(columns["query_id"])
        if id_ is None or query_id is None:
            raise ValueError("id, query_id: expected ids of 26 characters")
        self.id, self.query_id = id_, query_id
        self.token_id = self._id(columns["mcp_token_id"])

    def _id(self, text: str | int | None) -> str | None:
        value = ulid_value(text) if isinstance(text, str) else None
        found = None if value is None else ulid_text(value)
        self.are_exact &= found == text
        return found


def keys_of(
    project: str,
    kind: str,
    database: str,
    agent: str | None,
    token: str | None,
    payload: Mapping[str, Any],
    fingerprint: str | None,
) -> list[int]:
    if kind not in ("ATTEMPTED", "DECIDED"):  # the two that a search looks for
        return []
    keys = [filter_key(project, "event", kind), filter_key(project, "database", database)]
    if agent:
        keys.append(filter_key(project, "agent", agent))
    if token:
        keys.append(filter_key(project, "token", token))
    if fingerprint:
        keys.append(filter_key(project, "fingerprint", fingerprint))
    if kind == "DECIDED":
        keys.append(filter_key(project, "decision", str(payload.get("decision"))))
        if isinstance(rule := payload.get("policy_rule"), str):
            keys.append(filter_key(project, "rule", rule))
        keys += [filter_key(project, "table", table) for table in tables_of(payload)]
    return keys


def _statement(found: CheckedBatch, columns: Mapping[str, str | int | None], redacted: str | None, ts: int) -> None:
    if columns["event_type"] != "ATTEMPTED":
        return
    payload = _payload_of(str(columns["payload"]))
    sql, fingerprint = redacted or payload.get("sql_raw"), payload.get("sql_fingerprint")
    if isinstance(sql, str) and sql and isinstance(fingerprint, str) and fingerprint:
        found.statements[fingerprint] = StatementText(fingerprint[:_TEXT], sql, ts, redacted is not None)


def _ranges(value: object) -> Sequence[tuple[int, int]]:
    try:
        return msgspec.convert(value, list[tuple[int, int]])
    except msgspec.ValidationError:
        return []


def _storable(value: str | int | None) -> str | None:
    """PostgreSQL keeps no NUL in a text."""
    return None if value is None else str(value).replace("\0", "�")


def _bytes32(text: str) -> bytes:
    data = bytes.fromhex(text)
    if len(data) != 32:
        raise ValueError("leaf, commitment: expected 32 bytes in hex")
    return data
