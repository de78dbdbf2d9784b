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


HTTP_BOUNDS = HttpBounds()
