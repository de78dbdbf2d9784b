"""The Date header of answers (RFC 9110 section 6.6.1: a server with a clock sends it), made once a second."""

import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Final, final


@final
class DateHeader:
    """Shared by all connections of a server. `now_s` gives seconds since the epoch."""

    def __init__(self, now_s: Callable[[], float] = time.time) -> None:
        self._now_s: Final = now_s
        self._second = -1
        self._value = b""

    def value(self) -> bytes:
        """Now, as `Sun, 06 Nov 1994 08:49:37 GMT`."""
        second = int(self._now_s())
        if second != self._second:
            self._second = second
            self._value = formatdate(second, usegmt=True).encode("ascii")
        return self._value
