"""One session of the control plane's store, on the engine's crossing to asyncpg; used by one Trio task at a time.

The engine's own Connection pins a session to read-only statements of an agent and is of no use here. No asyncpg timeout is used:
the crossing has no timers. The server ends a statement by statement_timeout; where it is silent, this side does, SILENCE_S later.
A cancelled wait ends the session: the next user must not meet what is left of it.
"""

import contextlib
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, TypeVar

import trio
from asyncpg import connect_utils
from asyncpg.connection import Connection as Session
from asyncpg.protocol import Record

from gatewayd.audit.ids import ulid_text, ulid_value
from gatewayd.control.store.failures import StoreUnavailable, is_lost
from gatewayd.control.store.statement import Copy, Statement
from gatewayd.postgres.driver.crossing import Crossing

STATEMENT_MS: Final = 15_000
SILENCE_S: Final = 5.0
CONNECT_S: Final = 10.0
COPY_ROWS: Final = 2000
"""The crossing cannot ask the writer to pause, so what one COPY is given is bounded; callers bound the bytes (4 MiB a batch)."""
_CANCEL_S: Final = 2.0
_SETTINGS: Final = {
    "application_name": "gatewayd-control",
    "search_path": "public",
    "TimeZone": "UTC",
    "statement_timeout": str(STATEMENT_MS),
    "lock_timeout": "5000",
    "idle_in_transaction_session_timeout": "60000",
    "client_min_messages": "error",
    "jit": "off",  # its compilation costs more than any of our statements
}

T = TypeVar("T")


class StoreConnection:
    """Made by `connect`. Errors leave as asyncpg raises them; `failures.py` tells them apart."""

    def __init__(self, crossing: Crossing, session: Any) -> None:
        self._crossing = crossing
        self._session = session

    async def fetch(self, statement: Statement, *args: object) -> list[Any]:
        """Rows as asyncpg Records; ids are ULID text on both sides."""
        rows: list[Any] = await self._run(self._session.fetch(statement.text, *args))
        return rows

    async def execute(self, statement: Statement, *args: object) -> int:
        """How many rows the statement touched."""
        tag: str = await self._run(self._session.execute(statement.text, *args))
        last = tag.rpartition(" ")[2]
        return int(last) if last.isdigit() else 0

    async def script(self, sql: str) -> None:
        """Statements without parameters: BEGIN, COMMIT, and the files of migrations."""
        await self._run(self._session.execute(sql))

    async def copy(self, into: Copy, rows: Iterable[tuple[object, ...]]) -> None:
        """COPY rows in, at most COPY_ROWS of them."""
        held = list(rows)
        if len(held) > COPY_ROWS:
            raise ValueError(f"at most {COPY_ROWS} rows a COPY")
        await self._run(self._session.copy_records_to_table(into.table, records=held, columns=into.columns))

    async def copy_in(self, table: str, columns: Sequence[str], rows: bytes) -> None:
        """Whole rows as `copy_out` gave them: at most a few MiB, as with `copy`."""
        await self._run(self._session.copy_to_table(table, source=bytearray(rows), columns=columns))

    async def copy_out(self, table: str, columns: Sequence[str], take: Callable[[bytes], None]) -> None:
        """The whole table as text. `take` gets whole rows as they come, and does not wait; what it raises is raised here.

        A table takes as long as it takes: only silence ends it. The caller lifts the server's statement_timeout.
        """
        failed: list[Exception] = []
        waiting = trio.CancelScope(deadline=trio.current_time() + STATEMENT_MS / 1000 + SILENCE_S)

        async def sink(rows: bytes) -> None:
            waiting.deadline = trio.current_time() + STATEMENT_MS / 1000 + SILENCE_S
            try:
                if not failed:
                    take(rows)
            except Exception as failure:  # asyncpg would end the COPY in a task, which the crossing has not
                failed.append(failure)
                waiting.cancel()

        try:
            await self._run(self._session.copy_from_table(table, output=sink, columns=columns), waiting)
        except StoreUnavailable:
            if not failed:
                raise
        if failed:
            raise failed[0]

    @property
    def is_ready(self) -> bool:
        """Whether the next statement can begin at once."""
        transport = self._crossing.transport
        return (
            self._crossing.failure is None
            and not self._session.is_closed()
            and not self._session._protocol.is_in_transaction()
            and transport is not None
            and transport.is_quiet
        )

    def terminate(self) -> None:
        """Close the session at once."""
        self._session.terminate()

    async def _run(self, coroutine: Coroutine[Any, Any, T], waiting: trio.CancelScope | None = None) -> T:
        with waiting or trio.move_on_after(STATEMENT_MS / 1000 + SILENCE_S):
            try:
                return await self._crossing.run(coroutine)
            except trio.Cancelled:
                with trio.move_on_after(_CANCEL_S, shield=True):
                    await self._request_cancel()
                self._session.terminate()
                self._crossing.abandon()
                raise
            except BaseException as error:
                if is_lost(error):
                    self._session.terminate()
                raise
        raise StoreUnavailable(f"the store did not answer within {STATEMENT_MS / 1000 + SILENCE_S:g} s")

    async def _request_cancel(self) -> None:
        """So that the server does not go on with what nobody waits for."""
        crossing = Crossing()
        session, protocol = self._session, self._session._protocol
        key = {"backend_pid": protocol.backend_pid, "backend_secret": protocol.backend_secret}
        try:
            with contextlib.suppress(OSError):
                await crossing.run(connect_utils._cancel(loop=crossing, addr=session._addr, params=session._params, **key))
        finally:
            crossing.abandon()


async def connect(dsn: str) -> StoreConnection:
    """Open a session. Raises StoreUnavailable after at most CONNECT_S; cancelled midway, nothing stays open."""
    crossing = Crossing()
    with trio.move_on_after(CONNECT_S):
        try:
            session = await crossing.run(_connecting(crossing, dsn))
            await crossing.run(
                session.set_type_codec("uuid", schema="pg_catalog", encoder=_id_bytes, decoder=_id_text, format="binary")
            )
        except BaseException as error:
            crossing.abandon()
            if is_lost(error) or isinstance(error, ValueError):
                raise StoreUnavailable(f"the store does not accept connections ({type(error).__name__})") from None
            if getattr(error, "sqlstate", None) is not None:
                raise StoreUnavailable(f"the store does not accept us (SQLSTATE {error.sqlstate})") from None  # type: ignore[attr-defined]
            raise
        return StoreConnection(crossing, session)
    crossing.abandon()
    raise StoreUnavailable(f"the store did not accept a connection within {CONNECT_S:g} s")


def _connecting(crossing: Crossing, dsn: str) -> Coroutine[Any, Any, Any]:
    """`asyncpg.connect` without its timeout. Statements are cached by asyncpg, for ever: a lifetime would need a timer."""
    connecting: Coroutine[Any, Any, Any] = connect_utils._connect(
        loop=crossing, connection_class=Session, record_class=Record, dsn=dsn, server_settings=_SETTINGS,
        statement_cache_size=512, max_cached_statement_lifetime=0, max_cacheable_statement_size=16384, command_timeout=None,
        host=None, port=None, user=None, password=None, passfile=None, database=None, ssl=None, direct_tls=None,
        target_session_attrs=None, krbsrvname=None, gsslib=None, service=None, servicefile=None,
    )  # fmt: skip
    return connecting


def _id_bytes(ulid: str) -> bytes:
    value = ulid_value(ulid)
    if value is None:
        raise ValueError("expected a ULID")
    return value.to_bytes(16, "big")


def _id_text(data: bytes) -> str:
    return ulid_text(int.from_bytes(data, "big"))
