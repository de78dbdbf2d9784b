"""Connection: one PostgreSQL session of a pool, used by one Trio task at a time (decision 11).

Every wait has a bound here: the server's statement_timeout ends a statement, and where the server does not answer, grace_s later
this side does. When a wait is cancelled the statement is cancelled on the server first, and the session is reused only if the
server confirmed it. Errors leave as asyncpg raises them; `failure.py` names them.
"""

import contextlib
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, NamedTuple, TypeVar

import trio
from asyncpg import connect_utils
from asyncpg.connection import Connection as Session
from asyncpg.exceptions import ConnectionDoesNotExistError, PostgresError, QueryCanceledError
from asyncpg.protocol import Record

from gatewayd.config.bounds import DATABASE_BOUNDS, DatabaseBounds
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.driver import asyncpg_parts as asyncpg_parts  # looks at asyncpg before any of it is used
from gatewayd.postgres.driver.crossing import Crossing
from gatewayd.postgres.driver.pins import IN_FORCE, UNDER_A_POOLER, at_startup, not_in_force, set_local, set_session
from gatewayd.postgres.execute.failure import CANCELLED, CONNECTION_FAILED, FAILURES, failed, not_connected
from gatewayd.postgres.execute.result import AnswerTooLarge, ExecutionFailed

T = TypeVar("T")


PIECE_ROWS: Final = 100
"""How many rows of an answer that cannot be limited on the server are asked for at a time."""


class Described(NamedTuple):
    """The result columns of a prepared statement: names, types, and the records of a nested description."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    records: list[Any]


class Connection:
    """Made by `connect`. `limits` are the ones whose timeouts the session is pinned to."""

    def __init__(self, crossing: Crossing, session: Any, limits: Limits, bounds: DatabaseBounds, *, pins_locally: bool) -> None:
        self.limits = limits
        self._grace_s = bounds.grace_s
        self.pins_locally = pins_locally
        """Behind a transaction pooler: settings hold for one transaction only, `begin` sets them."""
        self._crossing = crossing
        self._session = session
        self._protocol = session._protocol
        self._usable = True
        self.guards: dict[Hashable, str] = {}
        """Names of the guards that are prepared here, by what they ask (`execute/guard.py`)."""
        self.guards_sent = 0
        self.guard_sent: tuple[Hashable, str] | None = None
        """The one that may be prepared by now: its message has not ended."""
        self._opened_at = trio.current_time()
        self.leads_to_standby = False
        """Set by a write that could not begin, or met a server that is read-only as a whole: a primary that is one no more."""

    async def fetch(self, sql: str, *args: object) -> list[Any]:
        """Rows of one statement as asyncpg Records. Raises ExecutionFailed."""
        try:
            rows: list[Any] = await self.run(self._session.fetch(sql, *args))
        except FAILURES as error:
            raise failed(error) from error
        return rows

    async def execute(self, sql: str) -> str:
        """Run statements without parameters and without rows; gives the last command tag. Raises what asyncpg raises."""
        tag: str = await self.run(self._session.execute(sql))
        return tag

    async def copy(self, sql: str, sink: Callable[[bytes], None]) -> str:
        """Run `COPY … TO STDOUT` and hand what arrives to `sink`; gives the command tag. Raises what asyncpg raises.

        `sql` may hold further statements around the COPY, as PostgreSQL's simple query protocol allows. What `copy_from_query`
        would do around the same call (composing the text, opening files) is not needed.
        """

        async def take(data: bytes) -> None:
            self._taken()
            sink(data)

        tag: str = await self.run(self._protocol.copy_out(sql, take, None))
        return tag

    async def fetch_tagged(self, sql: str, *args: object) -> tuple[list[Any], str]:
        """Rows and command tag of exactly one statement (a second one in the text is an error of the server's)."""

        async def prepared() -> tuple[list[Any], str]:
            statement = await self._session.prepare(sql, name="")
            return await statement.fetch(*args), statement.get_statusmsg()

        return await self.run(prepared())

    async def fetch_in_pieces(self, sql: str, keep: Callable[[Described], bool]) -> None:
        """Hands the rows of exactly one statement to `keep`, with the names and types of its columns, until that says no. Within
        a transaction that was begun, which ends the portal."""

        async def pieces() -> None:
            statement = await self._session.prepare(sql, name="")
            columns = statement.get_attributes()
            names, types = tuple(column.name for column in columns), tuple(column.type.name for column in columns)
            state, portal = statement._state, "gatewayd"
            records, _, is_done = await self._protocol.bind_execute(state, (), portal, PIECE_ROWS, True, None)
            self._taken()
            while keep(Described(names, types, records)) and not is_done:
                records, _, is_done = await self._protocol.execute(state, portal, PIECE_ROWS, True, None)
                self._taken()

        await self.run(pieces())

    async def describe(self, sql: str) -> tuple[str, ...]:
        """Names of the output columns of a statement that is not run.

        asyncpg asks without a Sync, so the server keeps the transaction and the locks of the parse analysis until the next
        message. That may never come: the statement can be refused for its columns, or its call be cancelled. A query
        of nothing ends what is open, within the same crossing: cancelled there, the session is closed.
        """

        async def prepared() -> tuple[str, ...]:
            statement = await self._session.prepare(sql, name="")
            names = tuple(column.name for column in statement.get_attributes())
            await self._protocol.query("SELECT", None)
            return names

        return await self.run(prepared())

    async def begin(self, mode: str) -> None:
        """`mode` is READ ONLY or READ WRITE."""
        await self.execute(self.begin_text(mode))

    def begin_text(self, mode: str) -> str:
        """The SQL that begins a transaction in this mode; it sets the timeouts, too, if the session cannot keep them."""
        return f"BEGIN ISOLATION LEVEL READ COMMITTED {mode};" + (set_local(self.limits) if self.pins_locally else "")

    async def rollback(self) -> None:
        """End the open transaction, if there is one; the session is discarded when that fails."""
        if self._usable and self._protocol.is_in_transaction():
            try:
                await self.execute("ROLLBACK")
            except (*FAILURES, ExecutionFailed):
                self._usable = False

    async def pin(self, limits: Limits) -> None:
        """Hold the session to the timeouts of `limits`. Raises ExecutionFailed."""
        if not self.pins_locally:
            try:
                await self.execute(set_session(limits))
            except FAILURES as error:
                raise failed(error) from error
        self.limits = limits

    def hold_at_most(self, size: int | None) -> None:
        """An answer of which more than so many bytes would have to be held at once ends the session: AnswerTooLarge."""
        if self._crossing.transport is not None:
            self._crossing.transport.most_held = size

    def _taken(self) -> None:
        if self._crossing.transport is not None:
            self._crossing.transport.held = 0

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Cross over for one statement. Raises ExecutionFailed 57014 when the server stays silent past its own timeout."""
        limits = self.limits
        self._taken()
        silence_s = limits.statement_timeout_ms / 1000 + self._grace_s if limits.statement_timeout_ms else float("inf")
        with trio.move_on_after(silence_s):
            try:
                return await self._crossing.run(coroutine)
            except trio.Cancelled:
                with trio.CancelScope(shield=True):
                    await self._cancel_statement()
                raise
            except BaseException as error:
                if isinstance(error, ConnectionDoesNotExistError) or not isinstance(error, PostgresError):
                    # The session's state is not known any more, and a server does not notice that nobody waits for an answer.
                    with trio.move_on_after(self._grace_s, shield=True):
                        await self._request_cancel()
                    self.terminate()
                    if self._crossing.transport is not None and self._crossing.transport.is_overlong:
                        raise AnswerTooLarge from None
                raise
        raise ExecutionFailed(
            CANCELLED,
            f"the database did not answer within {silence_s:g} s (statement_timeout and {self._grace_s:g} s more); cancelled",
        )

    async def commit(self) -> str:
        """Gives the tag: ROLLBACK when PostgreSQL ended a failed transaction. Shielded: the outcome of COMMIT must be known."""
        with trio.CancelScope(shield=True):
            return await self.execute("COMMIT")
        raise AssertionError("a scope that nobody cancels swallows nothing")

    @property
    def is_in_transaction(self) -> bool:
        """Also true of a transaction that has failed."""
        return bool(self._protocol.is_in_transaction())

    @property
    def is_ready(self) -> bool:
        """Whether the next statement can begin at once: in no transaction, alive, and nothing unexpected has arrived."""
        return self.is_clean and self._crossing.transport is not None and self._crossing.transport.is_quiet

    @property
    def is_clean(self) -> bool:
        """As `is_ready`, without asking the socket."""
        return (
            self._usable
            and self._crossing.failure is None
            and not self._session.is_closed()
            and not self._protocol.is_in_transaction()
        )

    @property
    def age_s(self) -> float:
        return trio.current_time() - self._opened_at

    def retire(self) -> None:
        """The session is closed when it is released."""
        self._usable = False

    def terminate(self) -> None:
        """Close the session at once. A statement that another task runs on it fails as a lost connection."""
        self._usable = False
        self._session.terminate()

    async def _cancel_statement(self) -> None:
        """Make PostgreSQL stop working on the running statement; bounded by grace_s.

        A CancelRequest that arrives late would hit the session's next statement, so the session lives on only if the statement
        ended by the cancellation.
        """
        confirmed = False
        with trio.move_on_after(self._grace_s):
            await self._request_cancel()
            try:
                await self._crossing.resume()
            except QueryCanceledError:
                confirmed = True
            except FAILURES:
                pass
        if not confirmed:
            self._usable = False
            self._session.terminate()
            self._crossing.abandon()

    async def _request_cancel(self) -> None:
        """Send a CancelRequest on a connection of its own and wait until the server has taken it."""
        crossing = Crossing()
        session, protocol = self._session, self._protocol
        key = {"backend_pid": protocol.backend_pid, "backend_secret": protocol.backend_secret}
        try:
            with contextlib.suppress(OSError):  # unreachable; the wait for the statement's end is bounded
                await crossing.run(connect_utils._cancel(loop=crossing, addr=session._addr, params=session._params, **key))
        finally:
            crossing.abandon()


async def connect(
    dsn: str, limits: Limits, bounds: DatabaseBounds = DATABASE_BOUNDS, *, pins_locally: bool = False
) -> Connection:
    """Open a session with all settings pinned; one that a pooler does not pin is opened with `pins_locally`.

    Raises ExecutionFailed after at most connect_s. Cancelled midway, nothing stays open.
    """
    settings = at_startup(limits)
    if pins_locally:
        settings = {name: value for name, value in settings.items() if name in UNDER_A_POOLER}
    crossing = Crossing()
    with trio.move_on_after(bounds.connect_s):
        try:
            session = await crossing.run(_connecting(crossing, dsn, settings))
            is_pooled, lacking = await _looked_at(crossing, session, settings)
        except BaseException as error:
            crossing.abandon()
            if not pins_locally and _is_refused_pin(error):
                return await connect(dsn, limits, bounds, pins_locally=True)
            if isinstance(error, (*FAILURES, ValueError)):
                raise not_connected(error) from None  # the cause names host, user and database
            raise
        if not lacking and (pins_locally or not is_pooled):
            return Connection(crossing, session, limits, bounds, pins_locally=pins_locally)
        session.terminate()
        crossing.abandon()
        if not pins_locally:
            return await connect(dsn, limits, bounds, pins_locally=True)
        raise ExecutionFailed(CONNECTION_FAILED, f"the pooler before the database does not pass on {', '.join(lacking)}")
    raise ExecutionFailed(CONNECTION_FAILED, f"the database did not accept a connection within {bounds.connect_s:g} s")


async def _looked_at(crossing: Crossing, session: Any, settings: dict[str, str]) -> tuple[bool, list[str]]:
    """Whether somebody stands between, who may give each transaction another backend; and which of `settings` do not hold.

    Only the server's own answer counts: a pooler that ignores start-up parameters does not report it, and reads would then run
    with the role's transaction mode and search_path."""
    told = bytearray()

    async def take(data: bytes) -> None:
        told.extend(data)

    await crossing.run(session._protocol.copy_out(IN_FORCE, take, None))
    pid, lacking = not_in_force(settings, bytes(told))
    return pid != session._protocol.backend_pid, lacking


def _connecting(crossing: Crossing, dsn: str, settings: dict[str, str]) -> Coroutine[Any, Any, Any]:
    """`asyncpg.connect` without its timeout, which would need the timers of a full event loop."""
    connecting: Coroutine[Any, Any, Any] = connect_utils._connect(
        loop=crossing, connection_class=Session, record_class=Record, dsn=dsn, server_settings=settings,
        statement_cache_size=0, max_cached_statement_lifetime=0, max_cacheable_statement_size=0, command_timeout=None,
        host=None, port=None, user=None, password=None, passfile=None, database=None, ssl=None, direct_tls=None,
        target_session_attrs=None, krbsrvname=None, gsslib=None, service=None, servicefile=None,
    )  # fmt: skip
    return connecting


def _is_refused_pin(error: BaseException) -> bool:
    """pgbouncer: `unsupported startup parameter: search_path`, protocol_violation."""
    return getattr(error, "sqlstate", None) == "08P01" and "startup parameter" in str(error)
