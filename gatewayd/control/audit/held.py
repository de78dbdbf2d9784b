"""The audit heads that are held, one for each instance of a gateway's file."""

from typing import Final

import msgspec

from gatewayd.control.store.statement import Statement

FIND: Final = Statement(
    "SELECT instance, first_seq, size, root, frontier, received_ms FROM audit_heads"
    " WHERE project_id = $1 AND gateway_id = $2 AND instance = $3"
)
FIND_LOCKED: Final = Statement(
    "SELECT instance, first_seq, size, root, frontier, received_ms FROM audit_heads"
    " WHERE project_id = $1 AND gateway_id = $2 AND instance = $3 FOR UPDATE"
)
SPANS: Final = Statement(
    "SELECT gateway_id, instance, first_seq, size, root, received_ms, superseded_ms FROM audit_heads"
    " WHERE project_id = $1 AND gateway_id = $2 ORDER BY instance DESC LIMIT 1000"
)
OF_PROJECT: Final = Statement(
    "SELECT gateway_id, instance, first_seq, size, root, received_ms, superseded_ms FROM audit_heads"
    " WHERE project_id = $1 AND superseded_ms IS NULL ORDER BY gateway_id, instance LIMIT 1000"
)
ADD_HEAD: Final = Statement(
    "INSERT INTO audit_heads (project_id, gateway_id, instance, first_seq, size, root, frontier, received_ms)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
)
MOVE: Final = Statement(
    "UPDATE audit_heads SET size = $5, root = $6, frontier = $7, received_ms = $8, verified_ms = $8"
    " WHERE project_id = $1 AND gateway_id = $2 AND instance = $3 AND size = $4"
)
SUPERSEDE: Final = Statement(
    "UPDATE audit_heads SET superseded_ms = $4 WHERE project_id = $1 AND gateway_id = $2 AND instance <> $3"
    " AND superseded_ms IS NULL"
)


class HeldHead(msgspec.Struct, frozen=True):
    instance: str
    first_seq: int
    size: int
    root: bytes
    frontier: bytes
    received_ms: int


class Span(msgspec.Struct, frozen=True):
    """The rows that are held of one instance."""

    gateway_id: str
    instance: str
    first_seq: int
    size: int
    root: bytes
    received_ms: int
    superseded_ms: int | None
