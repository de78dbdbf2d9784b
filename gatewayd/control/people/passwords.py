"""Password hashes: argon2id (t=2, m=19 MiB, p=1) in a worker thread, at most two at once: their memory is bounded."""

from typing import Final

import trio
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

SHORTEST: Final = 10
LONGEST: Final = 1024

_AT_ONCE: Final = 2
_HASHER: Final = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
_NOBODY: Final = "$argon2id$v=19$m=19456,t=2,p=1$Z2F0ZXdheWQtbm9ib2R5IQ$c2FtZSB0aW1lIGFzIGZvciBzb21lYm9keSBrbm93biE"
"""Compared with where there is no such account: the answer takes as long as for one that there is."""


class Hashes:
    """One for a replica: its two places are what bounds memory and CPU."""

    def __init__(self) -> None:
        self._places = trio.CapacityLimiter(_AT_ONCE)

    async def make(self, password: str) -> str:
        return await trio.to_thread.run_sync(_HASHER.hash, password, limiter=self._places)

    async def is_right(self, password: str, held: str | None) -> bool:
        """Whether `password` is the one of the hash; `None`, which no password has, takes as long."""
        return await trio.to_thread.run_sync(_verify, held or _NOBODY, password, limiter=self._places) and held is not None


def problem(password: str, email: str) -> str | None:
    """What is wrong with a new password, in words for its owner."""
    if len(password) < SHORTEST:
        return f"the password has {len(password)} characters; choose at least {SHORTEST}"
    if len(password) > LONGEST:
        return f"the password has more than {LONGEST} characters"
    if password.casefold() in (email.casefold(), email.casefold().partition("@")[0]):
        return "the password is the address; choose another one"
    if len(set(password)) < 4:
        return "the password is one pattern repeated; choose another one"
    return None


def _verify(held: str, password: str) -> bool:
    try:
        return _HASHER.verify(held, password)
    except (VerificationError, InvalidHashError):
        return False
