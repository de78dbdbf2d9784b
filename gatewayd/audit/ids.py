"""ULIDs: 48 bits of milliseconds and 80 bits of randomness as 26 characters that sort by time (github.com/ulid/spec).

Owns the text form, fresh ids (query_id) and rising ids (event ids, decision 4). Clock and randomness are passed in; nothing
here reads either.
"""

import re
from collections.abc import Callable
from typing import Final

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUE: Final = {character: value for value, character in enumerate(_ALPHABET)}
_PAIRS: Final = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_LENGTH: Final = 26
_RANDOM_BITS: Final = 80
_RANDOM_BYTES: Final = 10
_END: Final = 1 << 128

_ULID: Final = re.compile("[0-7][0-9A-HJKMNP-TV-Z]{25}", re.ASCII | re.IGNORECASE)

Entropy = Callable[[int], bytes]


def ulid_text(value: int) -> str:
    """The 26 characters of a number below 2**128."""
    pairs = _PAIRS  # two characters a look-up: half the cost of one at a time
    return (
        f"{pairs[value >> 120]}{pairs[value >> 110 & 1023]}{pairs[value >> 100 & 1023]}{pairs[value >> 90 & 1023]}"
        f"{pairs[value >> 80 & 1023]}{pairs[value >> 70 & 1023]}{pairs[value >> 60 & 1023]}{pairs[value >> 50 & 1023]}"
        f"{pairs[value >> 40 & 1023]}{pairs[value >> 30 & 1023]}{pairs[value >> 20 & 1023]}{pairs[value >> 10 & 1023]}"
        f"{pairs[value & 1023]}"
    )


def ulid_value(text: str) -> int | None:
    """The number behind a ULID in upper or lower case; None when `text` is not one."""
    if len(text) != _LENGTH or not text.isascii():
        return None
    value = 0
    for character in text.upper():
        digit = _VALUE.get(character)
        if digit is None:
            return None
        value = value << 5 | digit
    return value if value < _END else None


def is_ulid(text: str) -> bool:
    """Whether `text` is a ULID, in upper or lower case."""
    return _ULID.fullmatch(text) is not None


def new_ulid(now_ms: int, entropy: Entropy) -> str:
    """A fresh ULID; two of the same millisecond have no order."""
    return ulid_text(now_ms << _RANDOM_BITS | int.from_bytes(entropy(_RANDOM_BYTES), "big"))


_STEP_BYTES: Final = 7  # of the 10 that are random: room for eight million starts before a step touches the time


class RisingIds:
    """ULIDs that always rise, whatever the clock does.

    While the clock does not rise above the last id's time, the last id is counted up by one: the time part then runs ahead of a
    clock that stepped back, which a reader that pages by id never notices. The first such step above a given id is a random one:
    of two copies of a file that go on from the same id, each gives ids of its own.
    """

    def __init__(self, entropy: Entropy, above: str | None = None) -> None:
        self._entropy = entropy
        self._last = 0
        self._is_given = False
        if above is not None:
            self.start_above(above)

    def start_above(self, ulid: str) -> None:
        """Makes all further ids larger than `ulid`. Raises ValueError if that is not a ULID or leaves no room above it."""
        value = ulid_value(ulid)
        if value is None:
            raise ValueError("expected a ULID")
        if value >> _RANDOM_BITS == (1 << 48) - 1:
            raise ValueError("no ids are left above it")
        if value > self._last:
            self._last, self._is_given = value, True

    def next(self, now_ms: int) -> str:
        """The next id; `now_ms` is milliseconds since the epoch."""
        if now_ms > self._last >> _RANDOM_BITS:
            # the top random bit stays 0, so that counting up has room before it would touch the time
            self._last = now_ms << _RANDOM_BITS | int.from_bytes(self._entropy(_RANDOM_BYTES), "big") >> 1
        else:
            self._last += 1 + (int.from_bytes(self._entropy(_STEP_BYTES), "big") if self._is_given else 0)
        self._is_given = False
        return ulid_text(self._last)
