"""Deadlines and sizes of the services, as frozen values that are passed to them. Operators' settings are in `settings.py`.

Each service gets only its own bounds. A test passes other values instead of waiting for the usual ones.
"""

import msgspec


class HttpBounds(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of one HTTP server, in the units that the names end with."""

    connections: int = 4096
    keep_alive_s: float = 75.0
    """How long a connection may wait for the first byte of its next request."""
    head_s: float = 30.0
    """How long the rest of a request head may take after its first byte."""
    linger_s: float = 2.0
    """How long a client may be silent that was answered before its whole request was read."""
    linger_most_s: float = 30.0
    """How long such a client may continue to send: a body of some MiB takes several seconds on a slow line."""
    send_s: float = 30.0
    """How long a write may wait for a client that reads nothing."""
    unsent_bytes: int = 256 * 1024 * 1024
    """The largest sum of answers that clients do not read, over all connections."""
    begun_in_a_pass: int = 16
    """How many of the requests that are taken in turns may begin in one pass of the event loop."""
    waiting_unread: int = 1024
    """How many of these requests may wait unread: about a second of work. Further ones are turned away."""


class McpBounds(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of MCP over HTTP."""

    body_s: float = 30.0
    """How long the whole body of a request may take."""
    bodies_bytes: int = 64 * 1024 * 1024
    """The largest sum of large request bodies, over all requests."""
    keep_alive_s: float = 25.0
    """The interval of comments on an event stream that carries nothing else."""
    sessions: int = 10_000
    session_idle_s: float = 30 * 60.0


class SenderBounds(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of the senders to the operator's addresses: deny webhook and telemetry."""

    post_s: float = 5.0
    """How long one POST may take, with the status of its answer."""
    last_s: float = 1.0
    """How long queued posts may still be sent after a stop."""
    queued: int = 256
    posts_in_flight: int = 4
    dropped_log_s: float = 60.0
    """The shortest time between two log lines about dropped posts."""


class DatabaseBounds(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of the sessions with one database, in addition to the limits of its policy."""

    connect_s: float = 10.0
    grace_s: float = 5.0
    """How long the server may be silent after statement_timeout, and how long it may then take to confirm a cancellation. So no
    wait is longer than statement_timeout + 2 * grace_s."""
    slot_s: float = 5.0
    """How long a call may wait for a free session, in addition to lock_timeout."""
    row_writes_s: float = 1.0
    """Row writes, whose triggers may change the schema, cause at most one read of the catalog in this time."""


HTTP_BOUNDS = HttpBounds()
MCP_BOUNDS = McpBounds()
SENDER_BOUNDS = SenderBounds()
DATABASE_BOUNDS = DatabaseBounds()
