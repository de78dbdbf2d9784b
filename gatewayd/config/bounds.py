"""Deadlines and sizes that the services keep to, as frozen values that are handed to them. What operators set: `settings.py`.

A service takes its own part and reads no other; a test gives it a value of its own instead of waiting for the usual one.
"""

import msgspec


class HttpBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Of one HTTP server. Seconds and bytes, as the names say."""

    connections: int = 4096
    keep_alive_s: float = 75.0
    """For the first byte of the next request."""
    head_s: float = 30.0
    """For the rest of a request head once its first byte is there."""
    linger_s: float = 2.0
    """Of silence from a client that was answered before all of its request was read."""
    linger_most_s: float = 30.0
    """While such a client goes on sending: a body of some MiB takes a usual line longer than a moment."""
    send_s: float = 30.0
    """For one write of which the client takes nothing."""
    unsent_bytes: int = 256 * 1024 * 1024
    """Of answers that no client reads, over all connections."""
    begun_in_a_pass: int = 16
    """Requests taken in turns that begin in one pass of the event loop."""
    waiting_unread: int = 1024
    """Requests taken in turns that wait unread: about a second of work. More are turned away."""


class McpBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Of MCP over HTTP."""

    body_s: float = 30.0
    """For the whole body of a request."""
    bodies_bytes: int = 64 * 1024 * 1024
    """Of large request bodies, over all requests."""
    keep_alive_s: float = 25.0
    """Between two comments on an event stream that has nothing else to carry."""
    sessions: int = 10_000
    session_idle_s: float = 30 * 60.0


class SenderBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Of what is sent to addresses of the operator: deny webhook and telemetry."""

    post_s: float = 5.0
    """For one post, with its answer's status."""
    last_s: float = 1.0
    """After the stop, for what is queued."""
    queued: int = 256
    posts_in_flight: int = 4
    dropped_log_s: float = 60.0
    """At least, between two log lines that count what was dropped."""


class DatabaseBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Of the sessions with one database, beside the limits of its policy."""

    connect_s: float = 10.0
    grace_s: float = 5.0
    """How long the server may be silent past statement_timeout, and again how long it may take to confirm a cancellation: so no
    wait is longer than statement_timeout + 2 * grace_s."""
    slot_s: float = 5.0
    """For a session that is free, beyond lock_timeout."""
    row_writes_s: float = 1.0
    """Row writes (a trigger may have changed anything) ask for at most one read of the catalog in this time."""


HTTP_BOUNDS = HttpBounds()
MCP_BOUNDS = McpBounds()
SENDER_BOUNDS = SenderBounds()
DATABASE_BOUNDS = DatabaseBounds()
