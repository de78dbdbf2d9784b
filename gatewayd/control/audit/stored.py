"""Events as the store has them, and as the row of the audit file that they came from. Pure, but for the statements."""

from typing import Any, Final

import msgspec

from gatewayd.audit.leaf import ERASED_KEY
from gatewayd.control.store.statement import DayStatement

OF_QUERIES: Final = DayStatement(
    "SELECT e.gateway_id, e.instance, e.seq, e.id, e.query_id, e.ts, e.received_ms, e.event_type, e.tenant_id, e.database_name,"
    " e.agent_name, e.agent_version, e.has_intent, e.token_id, left(e.payload, $3) AS payload, e.schema_version, e.commitment,"
    " e.unproved, left(d.details, $3) AS details, d.salt FROM {events} AS e LEFT JOIN {details} AS d"
    " ON d.project_id = e.project_id AND d.gateway_id = e.gateway_id AND d.instance = e.instance AND d.seq = e.seq"
    " AND d.project_id = $1 WHERE e.project_id = $1 AND e.query_id = ANY($2) ORDER BY e.id LIMIT 10000"
)
WHOLE: Final = (1 << 31) - 1
"""Characters: all of them."""

_ESCAPED: Final = 8
"""More characters than an escaped one takes."""
_fields = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder(order="sorted").encode


class StoredEvent(msgspec.Struct, frozen=True):
    """`payload` has "" for each detail; `details` is canonical JSON, None once it is erased or where it never left
    the gateway."""

    gateway_id: str
    instance: str
    seq: int
    id: str
    query_id: str
    ts: int
    received_ms: int
    event_type: str
    tenant_id: str
    database_name: str
    agent_name: str | None
    agent_version: str | None
    has_intent: bool
    token_id: str | None
    payload: str
    schema_version: int
    commitment: bytes
    unproved: bool
    details: str | None
    salt: bytes | None

    def closed(self, most: int) -> "StoredEvent":
        """With texts that were cut after `most` characters ended there, so that they can be read."""
        details = self.details
        if len(self.payload) < most and (details is None or len(details) < most):
            return self
        return msgspec.structs.replace(
            self, payload=_closed(self.payload, most), details=None if details is None else _closed(details, most)
        )

    @property
    def facts(self) -> dict[str, Any]:
        """The payload with what is known of its details; `agent_intent` among them."""
        return _fields(self.payload) | (_fields(self.details) if self.details is not None else {})

    @property
    def is_whole(self) -> bool:
        """Whether the details are here as they were written."""
        return self.salt is not None

    def row(self) -> dict[str, str | int | None]:
        """The columns of the row in the audit file; with "" for details that are not here."""
        payload = _fields(self.payload)
        intent = "" if self.has_intent else None
        if self.is_whole:
            details = _fields(self.details or "{}")
            intent = details.pop("agent_intent", None)
            payload |= details
        else:
            payload[ERASED_KEY] = True
        return {
            "id": self.id,
            "query_id": self.query_id,
            "tenant_id": self.tenant_id,
            "database": self.database_name,
            "agent_name": self.agent_name,
            "agent_version": self.agent_version,
            "agent_intent": intent,
            "mcp_token_id": self.token_id,
            "ts": self.ts,
            "event_type": self.event_type,
            "payload": _encode(payload).decode(),
            "schema_version": self.schema_version,
        }


def _closed(text: str, most: int) -> str:
    """Canonical JSON, ended within the value where it was cut: a statement, whose keys are the last of their order."""
    if len(text) < most:
        return text
    for end in range(len(text), max(0, len(text) - _ESCAPED), -1):
        try:
            _fields(ended := text[:end] + '…"}')
        except msgspec.DecodeError:
            continue
        return ended
    return "{}"
