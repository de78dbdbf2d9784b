"""Pool: at most ten sessions with one database, handed out in turns (decision 11): a caller's own calls in the order of asking,
and among callers as `fair_slots.py` says, so that one with many slow statements leaves sessions for the others.

Sessions are opened when needed and looked at before each use; a dead one is replaced there and then. Nothing runs in the
background. An idle session needs no reset: nothing an allowed statement does may outlive it, which a test holds.
"""

from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Final

import msgspec
import trio

from gatewayd.config.bounds import DATABASE_BOUNDS, DatabaseBounds
from gatewayd.fairness.fair_slots import FairSlots
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.driver.session import Connection, connect
from gatewayd.postgres.execute.failure import NO_CONNECTION_FREE
from gatewayd.postgres.execute.result import ExecutionFailed

LEADS_THERE_STILL_S: Final = 5.0
"""A session so young was opened where new ones would be: agents who try to write to a standby cost no new sessions each time."""


class PoolStatistics(msgspec.Struct, frozen=True):
    """Counts of one pool, all of the same moment."""

    in_use: int
    idle: int
    max: int
    waiters: int
    """Callers that wait for a session."""


class Pool:
    """One database's sessions. `name` is the policy's; `dsn` is a secret and appears in no error."""

    def __init__(self, name: str, dsn: str, limits: Limits, size: int = 10, bounds: DatabaseBounds = DATABASE_BOUNDS) -> None:
        self.name = name
        self.bounds: Final = bounds
        self.limits = limits
        self._dsn = dsn
        self._size = size
        self._turns = FairSlots(size)
        self._idle: list[Connection] = []
        self._in_use: set[Connection] = set()
        self._pins_locally = False
        self._closing = False
        self._drained = trio.Event()

    @asynccontextmanager
    async def connection(self, limits: Limits | None = None) -> AsyncIterator[Connection]:
        """A session for the time of the block, pinned to `limits` (the pool's own when None). Raises as `acquire`."""
        connection = await self.acquire(limits or self.limits)
        try:
            yield connection
        finally:
            self.release(connection)

    async def acquire(self, limits: Limits, caller: Hashable = None) -> Connection:
        """A ready session, in turn, after at most lock_timeout + slot_s; `release` takes it back with the same `caller`.

        Raises ExecutionFailed 53300 when all are taken for so long, or as `connect` does. Cancellable: nothing is taken then.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._wait_for_slot(limits, caller)
        try:
            if self._closing:
                raise ExecutionFailed("57P01", "the database's connections are being closed")
            connection = await self._ready_connection(limits)
            self._in_use.add(connection)
            if (connection.limits.statement_timeout_ms, connection.limits.lock_timeout_ms) != (
                limits.statement_timeout_ms,
                limits.lock_timeout_ms,
            ):
                try:
                    await connection.pin(limits)
                except BaseException:
                    self._in_use.discard(connection)
                    connection.terminate()
                    raise
        except BaseException:
            self._free_slot(caller)
            raise
        return connection

    def release(self, connection: Connection, caller: Hashable = None) -> None:
        """Take a session back. One that is not as clean as it was handed out is closed."""
        self._in_use.discard(connection)
        if connection.leads_to_standby:
            self._look_elsewhere(connection)
        if connection.is_clean and not self._closing:
            self._idle.append(connection)
        else:
            connection.terminate()
        self._free_slot(caller)

    def repin(self, limits: Limits) -> None:
        """From now on sessions are held to these timeouts, each at its next use."""
        self.limits = limits

    async def aclose(self) -> None:
        """Close idle sessions, then wait until those in use are released, and close each. When cancelled, close them at once."""
        self._closing = True
        while self._idle:
            self._idle.pop().terminate()
        try:
            if self._in_use or self._turns.taken:
                await self._drained.wait()
        finally:
            for connection in list(self._in_use):
                connection.terminate()

    def statistics(self) -> PoolStatistics:
        """The counts now."""
        return PoolStatistics(
            in_use=len(self._in_use),
            idle=len(self._idle),
            max=self._size,
            waiters=self._turns.waiting,
        )

    async def _wait_for_slot(self, limits: Limits, caller: Hashable) -> None:
        if self._turns.take(caller):
            return
        wait_s = limits.lock_timeout_ms / 1000 + self.bounds.slot_s
        with trio.move_on_after(wait_s):
            await self._turns.wait(caller)
            return
        taken = f"all {self._size} connections to the database were in use"
        if self._turns.taken < self._size:
            taken = "as many connections to the database as one caller may hold were in use"
        raise ExecutionFailed(NO_CONNECTION_FREE, f"{taken} for {wait_s:g} s")

    async def _ready_connection(self, limits: Limits) -> Connection:
        while self._idle:
            connection = self._idle.pop()  # the one that was used last, so that a small number of sessions does most of the work
            if connection.is_ready:
                return connection
            connection.terminate()
        connection = await connect(self._dsn, limits, self.bounds, pins_locally=self._pins_locally)
        self._pins_locally = connection.pins_locally
        return connection

    def _look_elsewhere(self, connection: Connection) -> None:
        """After a failover the sessions of before may go on with the former primary: new ones go where the address leads now."""
        connection.leads_to_standby = False
        for used in (connection, *self._in_use):
            if used.age_s > LEADS_THERE_STILL_S:
                used.retire()
        for idle in self._idle:
            if idle.age_s > LEADS_THERE_STILL_S:
                idle.terminate()
        self._idle = [idle for idle in self._idle if idle.is_clean]

    def _free_slot(self, caller: Hashable) -> None:
        self._turns.leave(caller)
        if self._closing and not self._turns.taken:
            self._drained.set()
