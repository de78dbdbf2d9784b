"""The waiting times and sizes of the audit as one value, so that a test can set its own."""

import msgspec


class Pace(msgspec.Struct, frozen=True):
    """Durations are in the unit that each name ends with."""

    rest_s: float = 1.0
    """How long after the last commit a checkpoint is made."""
    head_s: float = 60.0
    """The shortest time between two signed heads."""
    settle_s: float = 2.0
    """The shortest time from the first row without a head to its head, so that one head covers all rows of a single query.
    Otherwise it would cover the first of them, and the others would wait for the next head."""
    slow_s: float = 0.05
    """A commit in memory that takes this long has waited for the disk, or the machine is overloaded."""
    slow_for_s: float = 10.0
    """How long the writer's thread commits after such a slow commit."""
    log_pages: int = 8192
    """The size of the log at which a checkpoint is made: with a longer log fewer pages are copied twice."""
    empty_log_s: float = 30.0
    """How long an erasure waits for readers that still need the log, which holds the erased texts."""
    locked_by_others_ms: int = 2000
    """How long a write waits for the transaction of another process."""
