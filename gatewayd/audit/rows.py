"""An event as the columns of its row, cut to the limits of events.py (decision 4: cut, never refuse). Pure.

The id is not here: the writer gives it when the row is about to be committed.
"""

from typing import Final

import msgspec

from gatewayd.audit import events
from gatewayd.audit.events import Attempted, Decided, Event, Executed, Failed, Payload

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

Row = tuple[str, str, str, str | None, str | None, str | None, str | None, int, str, str, int]
"""The columns after `id`, in their order; the payload is JSON text."""

_encode = msgspec.json.Encoder().encode


def row_of(event: Event) -> Row:
    query = event.query
    agent = query.agent
    return (
        query.query_id,
        query.tenant_id,
        query.database,
        _cut(agent.name, events.AGENT_NAME_CHARACTERS),
        _cut(agent.version, events.AGENT_VERSION_CHARACTERS),
        _cut(query.intent, events.INTENT_CHARACTERS),
        agent.token_id,
        event.ts_ms,
        events.EVENT_TYPE[type(event.payload)],
        json_of(_cut_payload(event.payload)).decode(),
        events.SCHEMA_VERSION,
    )


def json_of(value: msgspec.Struct) -> bytes:
    """The JSON of `value`; a lone surrogate in any text, which UTF-8 has no form for, is written as its escape."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_without_surrogates(msgspec.to_builtins(value)))


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
    """The longest beginning of `text` whose UTF-8 has at most `limit` bytes; a lone surrogate is written as its escape."""
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
