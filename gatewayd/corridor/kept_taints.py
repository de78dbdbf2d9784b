"""The record of taints of a standalone gateway: one small file in its state folder. An operator clears it.

If the file cannot be read, every grant counts as tainted until an operator clears that too. The same if it was removed: the audit
file's signed metadata says that there was one. Clearing is recorded, removing is not.
"""

import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec
import trio

from gatewayd import durable_file, log
from gatewayd.audit.events import Agent, Query
from gatewayd.audit.service import AuditUnavailable
from gatewayd.corridor.containing import Tainted, TaintUnknown, shown

TAINTS: Final = "taints.json"
_FORMAT: Final = 1
_MOST_BYTES: Final = 16 * 1024 * 1024
_UNREADABLE: Final = "what it has read before is not known: the file of taints cannot be read"


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is in the file, by grant: a token's id, or "" for the whole gateway."""

    grants: dict[str, Tainted]
    format: int = _FORMAT


class TaintsUnreadable(Exception):
    """The file exists and cannot be read. `str()` says why."""


class KeptTaints:
    """A `Taints` in a file. `by_token` says whether the ids of tokens are authenticated. If they are not, the whole gateway is
    one grant: an agent that chooses its own token could shed a taint by choosing another.

    `was_kept`: the audit file says that there is a file of taints; `note` makes it say so, and raises AuditUnavailable.
    """

    cleared_by = "an operator (gatewayd taint clear)"

    def __init__(self, file: Path, *, by_token: bool, was_kept: bool, note: Callable[[], Awaitable[None]]) -> None:
        self._file = file
        self._by_token = by_token
        self._is_noted = was_kept
        self._note = note
        self._one_at_a_time = trio.Lock()
        self._grants: dict[str, Tainted] = {}
        self.broken: str | None = None
        """Why the file cannot be read; every grant counts as tainted then. None if it could be read."""
        try:
            self._grants = _read(file, must_be_there=was_kept)
        except TaintsUnreadable as unreadable:
            self.broken = str(unreadable)
            log.error(log.TAINTS_UNREADABLE, error=self.broken)

    @property
    def count(self) -> int:
        return len(self._grants)

    def all(self) -> dict[str, Tainted]:
        """The tainted grants, by grant."""
        return dict(self._grants)

    def grant_of(self, agent: Agent) -> str:
        return agent.token_id or "" if self._by_token else ""

    async def of(self, grant: str, query: Query) -> Tainted | None:
        if self.broken is not None:
            raise TaintUnknown(_UNREADABLE)
        return self._grants.get(grant)

    async def mark(self, grant: str, tainted: Tainted) -> None:
        """Records the taint durably. A grant that is already tainted keeps its first record."""
        if self.broken is not None:
            raise TaintUnknown(_UNREADABLE)
        if grant in self._grants and self._is_noted:
            return
        async with self._one_at_a_time:
            is_new = grant not in self._grants
            try:
                if is_new:
                    await self._keep({**self._grants, grant: tainted})
                await self._note_it()  # after the file: a kill in between contains nobody who has read nothing
            except OSError as failure:
                raise TaintUnknown(
                    f"the state folder cannot be written: {(failure.strerror or 'no reason given').lower()}"
                ) from None
            except AuditUnavailable as unavailable:
                raise TaintUnknown(f"the audit file cannot be written: {unavailable.reason}") from None
        if not is_new:
            return
        log.warning(
            log.GRANT_TAINTED, grant=shown(grant), source=tainted.source, database=tainted.database, query_id=tainted.query_id
        )

    async def begin(self) -> None:
        """Makes the audit file say that the file is there, where it is and the audit file does not: it may be a new one."""
        if self._file.exists():
            with contextlib.suppress(AuditUnavailable):  # then the next mark does
                await self._note_it()

    async def _note_it(self) -> None:
        if not self._is_noted:
            await self._note()
            self._is_noted = True

    async def clear(self, grant: str | None, recorded: Callable[[], Awaitable[None]]) -> list[str]:
        """Clears one grant, or all of them and an unreadable file with None. Returns the cleared grants.

        `recorded` writes the audit row; it is awaited first, and if it raises nothing changes. Raises OSError if the file cannot
        be written.
        """
        async with self._one_at_a_time:
            cleared = [name for name in self._grants if grant in (None, name)]
            if not cleared and not (grant is None and self.broken is not None):
                return []
            await recorded()
            await self._keep({name: each for name, each in self._grants.items() if name not in cleared})
            if grant is None and self.broken is not None:
                self.broken = None
                log.info(log.TAINTS_READABLE)
        for name in cleared:
            log.warning(log.TAINT_CLEARED, grant=shown(name))
        return cleared

    async def _keep(self, grants: dict[str, Tainted]) -> None:
        """Writes the file, then replaces the grants in memory. Cancellation cannot separate the two."""
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(durable_file.keep, self._file, msgspec.json.encode(_Kept(grants)))
            self._grants = grants


def _read(file: Path, *, must_be_there: bool) -> dict[str, Tainted]:
    """The grants in the file; none if there never was one. Raises TaintsUnreadable."""
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES)
    except FileNotFoundError:
        if must_be_there:
            raise TaintsUnreadable(f"{TAINTS} is missing, and the audit file says that there was one") from None
        return {}
    except OSError as failure:
        raise TaintsUnreadable(f"{TAINTS} cannot be read ({(failure.strerror or 'input/output error').lower()})") from None
    try:
        kept = msgspec.json.decode(data, type=_Kept)
    except (ValueError, RecursionError):
        raise TaintsUnreadable(f"{TAINTS} is damaged") from None
    if kept.format != _FORMAT:
        raise TaintsUnreadable(f"{TAINTS} is of another version: found format {kept.format}, expected {_FORMAT}")
    return kept.grants
