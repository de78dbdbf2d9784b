"""How long the audit waits, and how much it lets gather, as one value: so that a test can give its own."""

import msgspec


class Pace(msgspec.Struct, frozen=True):
    rest_s: float = 1.0
    """Without a commit, until the log is carried into the file."""
    head_s: float = 60.0
    """Between two signed heads, at least."""
    settle_s: float = 2.0
    """From the first row without a head to the head, at least: so that one head covers all rows of a query that comes alone.
    Else it would cover the first of them, and the others would wait for the next one."""
    slow_s: float = 0.05
    """A commit in memory that took this long met a disk after all, or a crowded machine."""
    slow_for_s: float = 10.0
    """So long the thread commits afterwards."""
    log_pages: int = 8192
    """A log of 32 MiB is carried into the file: the longer, the fewer pages are carried twice."""
    empty_log_s: float = 30.0
    """For readers that keep the log with the texts that were just erased."""
    locked_by_others_ms: int = 2000
    """For the end of a foreign transaction."""
