"""The columns of an event's row, cut to the limits of events.py (decision 4: cut, never refuse). Pure.

The id, the seq and the salt are not here: the writer adds them when it commits the row.
"""

from functools import lru_cache
from typing import Final

import msgspec

from gatewayd.audit import events
from gatewayd.audit.events import Attempted, Decided, Event, Executed, Failed, Payload
from gatewayd.audit.leaf import facts_of

COLUMNS: Final = (
    "id",
    "query_id",
    "tenant_id",
    "database",
    "agent_name",
    "agent_version",
    "agent_intent",
    "mcp_token_id",
    "ts",
    "event_type",
    "payload",
    "schema_version",
)

RowColumns = tuple[str, str, str, str | None, str | None, str | None, str | None, int, str, str, int]
"""The columns after `id`, in the specification's order; the payload is JSON text."""


class Row(msgspec.Struct, frozen=True, gc=False):
    """A row without its id, which belongs between `head` and `tail`. `details` can be erased (see leaf.py)."""

    columns: RowColumns
    head: bytes
    tail: bytes
    details: bytes

    def envelope(self, id_: str) -> bytes:
        """The envelope of the row with this id (see leaf.py)."""
        return b"".join((self.head, id_.encode(), self.tail))

    @property
    def ts_ms(self) -> int:
        return self.columns[7]

    @property
    def characters(self) -> int:
        return len(self.columns[9])


class _Head(msgspec.Struct, frozen=True, gc=False):
    agent_intent: str | None
    agent_name: str | None
    agent_version: str | None
    database: str
    event_type: str


class _Tail(msgspec.Struct, frozen=True, gc=False):
    mcp_token_id: str | None
    payload: msgspec.Raw
    query_id: str
    schema_version: int
    tenant_id: str
    ts: int


class _Details(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    agent_intent: str | None = None
    error_message: str | None = None
    masking_reason: str | None = None
    reason: str | None = None
    sql_raw: str | None = None


_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def row_of(event: Event) -> Row:
    """The row of an event."""
    query = event.query
    agent = query.agent
    intent = _cut(query.intent, events.INTENT_CHARACTERS)
    payload = _cut_payload(event.payload)
    try:
        text = _encode_sorted(payload)
        blanked, details = _halves(payload, text, intent)
    except UnicodeEncodeError:
        text = _encode_sorted(_without_surrogates(msgspec.to_builtins(payload)))
        blanked, details = None, b""
    columns: RowColumns = (
        query.query_id,
        query.tenant_id,
        query.database,
        _cut(agent.name, events.AGENT_NAME_CHARACTERS),
        _cut(agent.version, events.AGENT_VERSION_CHARACTERS),
        intent,
        agent.token_id,
        event.ts_ms,
        events.EVENT_TYPE[type(payload)],
        text.decode(),
        events.SCHEMA_VERSION,
    )
    if blanked is None:
        return row_from(columns)
    head = _head(None if intent is None else "", columns[3], columns[4], columns[2], columns[8])
    tail = _encode(_Tail(columns[6], msgspec.Raw(blanked), columns[0], columns[10], columns[1], columns[7]))
    return Row(columns, head, b'",' + tail[1:], details)


@lru_cache(1024)  # most calls come from the same agents with the same values
def _head(intent: str | None, name: str | None, version: str | None, database: str, event_type: str) -> bytes:
    return _encode(_Head(intent, name, version, database, event_type))[:-1] + b',"id":"'


def row_from(columns: RowColumns) -> Row:
    """The row of columns in the form in which they are stored. `row_of` gives the same result faster."""
    facts = facts_of(("", *columns))
    head, id_, tail = facts.envelope.partition(b',"id":""')
    assert id_  # the first match is the key: a quote inside a string is escaped
    return Row(columns, head + b',"id":"', b'"' + tail, facts.details)


def json_of(value: msgspec.Struct) -> bytes:
    """The JSON of `value`. A lone surrogate in a text, which UTF-8 cannot represent, is written as an escape."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_without_surrogates(msgspec.to_builtins(value)))


def _halves(payload: Payload, text: bytes, intent: str | None) -> tuple[bytes | None, bytes]:
    """The payload's part of the envelope, and the details. The first is None if only the general way by `facts_of` works."""
    match payload:
        case Attempted(sql_raw=sql):
            blanked = Attempted("", payload.sql_fingerprint, payload.preview_of)
            return _encode_sorted(blanked), _encode(_Details(intent, sql_raw=sql))
        case Decided(reason=None) | Executed(masking_reason=None):
            return text, _encode(_Details(intent))
        case _:
            return None, b""


def _cut(text: str | None, characters: int) -> str | None:
    if text is None or text.isascii():
        return text if text is None or len(text) <= characters else text[:characters]
    return _escaped(text[:characters])[:characters]


def _cut_payload(payload: Payload) -> Payload:
    match payload:
        case Attempted(sql_raw=sql) if len(sql) * 4 > events.SQL_RAW_BYTES:  # a character has at most 4 bytes
            return msgspec.structs.replace(payload, sql_raw=cut_to_bytes(sql, events.SQL_RAW_BYTES))
        case Decided(tables_touched=tables) if tables is not None and len(tables) > events.TABLES:
            return msgspec.structs.replace(payload, tables_touched=tables[: events.TABLES])
        case Executed(columns_masked=columns, masking_reason=reason) if columns is not None or reason is not None:
            return msgspec.structs.replace(
                payload,
                columns_masked=columns and columns[: events.COLUMNS_MASKED],
                masking_reason=reason and reason[: events.MASKING_REASON_CHARACTERS],
            )
        case Failed(error_message=message) if len(message) > events.ERROR_MESSAGE_CHARACTERS:
            return msgspec.structs.replace(payload, error_message=message[: events.ERROR_MESSAGE_CHARACTERS])
        case _:
            return payload


def cut_to_bytes(text: str, limit: int) -> str:
    """The longest beginning of `text` with at most `limit` bytes of UTF-8. A lone surrogate is written as an escape."""
    encoded = text.encode(errors="backslashreplace")
    return text if len(encoded) <= limit else encoded[:limit].decode(errors="ignore")


def _escaped(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def _without_surrogates(value: object) -> object:
    match value:
        case str():
            return _escaped(value)
        case dict():
            return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_surrogates(item) for item in value]
        case _:
            return value
