"""Two servers whose databases differ only in what the policies hide, with everything the properties ask of them.

Both are made by the same steps, so oids, transaction ids and row versions are the same too. The first one's sessions stand
without the READ ONLY wall: what keeps reads from writing there is the policy alone.
"""

import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import trio

from gatewayd.catalog import Catalog
from gatewayd.masking.plan import Unmasked, Withheld
from gatewayd.policy.decide.outcomes import Allowed, Permit
from gatewayd.policy.file.model import Limits, Policy
from gatewayd.postgres.catalog.read_catalog import read_catalog
from gatewayd.postgres.driver.session import Connection
from gatewayd.postgres.embedded import EmbeddedPostgres, Version
from gatewayd.postgres.execute.result import ExecutionFailed, Result
from gatewayd.postgres.execute.run import execute
from gatewayd.postgres.pool import Pool
from gatewayd.shields.whole_plan import plan
from tests import places
from tests.properties.model import Model, read_model

HERE: Final = Path(__file__).parent
DATABASE: Final = "shop"
ORACLE: Final = "oracle"
"""A copy where views are made and dropped, so that the catalogs of the database under test do not grow on one side."""
SETTINGS: Final = {
    "fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "autovacuum": "off", "shared_buffers": "32MB",
    "max_wal_size": "256MB", "jit": "off", "max_parallel_workers_per_gather": "0", "max_locks_per_transaction": "256",
    "log_min_messages": "log", "log_min_error_statement": "panic",
}  # fmt: skip
RESTORED: Final = ("notes", "stock", "logs", "orders", "plants", "plants_tall")
Answer = Result | tuple[str, str, str | None, int | None]
"""A result, or sqlstate, message, hint and position of the failure."""

_STATE: Final = """
    SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS xid,
      (SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid()) AS locks,
      (SELECT count(*) FROM pg_class) AS relations, (SELECT count(*) FROM pg_proc) AS functions,
      (SELECT count(*) FROM pg_type) AS types,
      (SELECT count(*) FROM pg_authid) AS roles, (SELECT count(*) FROM pg_db_role_setting) AS role_settings,
      (SELECT count(*) FROM pg_prepared_xacts) AS prepared, (SELECT count(*) FROM pg_replication_slots) AS slots,
      pg_notification_queue_usage() AS notices,
      (SELECT md5(string_agg(s.*::text, '' ORDER BY s.*::text)) FROM pg_sequences s) AS sequences,
      (SELECT md5(string_agg(loid || ' ' || pageno || encode(data, 'hex'), '' ORDER BY loid, pageno)) FROM pg_largeobject)
        AS large_objects"""
_SESSION: Final = """
    SELECT (SELECT jsonb_object_agg(name, setting || ' ' || source) FROM pg_settings WHERE name !~ '^(plpgsql|jit$)')::text
        AS settings,
      (SELECT count(*) FROM pg_prepared_statements WHERE name !~ 'asyncpg') AS prepared,
      (SELECT count(*) FROM pg_cursors) AS cursors,
      (SELECT count(*) FROM pg_listening_channels()) AS channels, pg_my_temp_schema() AS temporary,
      (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') AS advisory_locks"""


class OpenPool(Pool):
    """A pool whose sessions do not begin READ ONLY."""

    async def acquire(self, limits: Limits, caller: Hashable = None) -> Connection:
        connection = await super().acquire(limits, caller)
        if getattr(connection, "is_open", None) is None:
            await connection.execute("SET default_transaction_read_only = off")
            connection.is_open = True  # type: ignore[attr-defined] # a mark of ours on a session of the pool
            connection.begin_text = lambda mode: "BEGIN READ WRITE;"  # type: ignore[method-assign] # on this session alone
        return connection


class Side:
    """One server: the pool under test, and a session of our own that looks on."""

    def __init__(self, server: EmbeddedPostgres, pool_type: type[Pool], limits: Limits) -> None:
        self.server = server
        self.pool = pool_type("shop", server.url(database=DATABASE), limits, 1)
        self.watch = Pool("watch", server.url(database=DATABASE), Limits(statement_timeout_ms=60_000), 1)
        self.oracle = Pool("oracle", server.url(database=ORACLE), Limits(statement_timeout_ms=5_000), 1)
        self.limits = limits
        self._tables = ""

    async def fetch(self, sql: str) -> list[Any]:
        async with self.watch.connection() as connection:
            return await connection.fetch(sql)

    async def run(self, sql: str) -> None:
        async with self.watch.connection() as connection:
            await connection.execute(sql)

    async def answer(self, allowed: Allowed, policy: Policy, catalog: Catalog) -> Answer:
        planned = plan(allowed, policy, catalog, salt=None, rewriting=True)
        if isinstance(planned, Withheld):
            return "withheld", planned.reason_audit, None, None
        masking = None if isinstance(planned, Unmasked) else planned
        try:
            return await execute(self.pool, Permit(allowed, "query", "audit"), self.limits, catalog, masking)
        except ExecutionFailed as failed:
            return failed.sqlstate, failed.message, failed.hint, failed.position

    async def renew(self) -> None:
        """Let the next statement have a session of its own: a setting that is changed already cannot change again."""
        while self.pool.statistics().idle:
            async with self.pool.connection() as connection:
                connection.terminate()

    async def state(self) -> dict[str, Any]:
        """All that a read must leave as it is, but for the rows of tables."""
        async with self.pool.connection() as connection:
            session = dict((await connection.fetch(_SESSION))[0])
        settings = msgspec.json.decode(session.pop("settings"))
        return {**session, **settings, **{f"database {key}": value for key, value in (await self.fetch(_STATE))[0].items()}}

    async def rows(self) -> dict[str, str]:
        """A hash of every table's rows."""
        if not self._tables:
            names = await self.fetch(
                "SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
                "WHERE relkind IN ('r', 'm') AND nspname IN ('public', 'app', 'hr') ORDER BY 1"
            )
            self._tables = " UNION ALL ".join(
                f"SELECT $${row['name']}$$ AS name, "
                f"count(*) || ' ' || coalesce(md5(string_agg(t.*::text, '|' ORDER BY t.*::text)), '') AS rows "
                f"FROM ONLY {row['name']} AS t" for row in names
            )  # fmt: skip
        return {row["name"]: row["rows"] for row in await self.fetch(self._tables)}

    async def xid(self) -> int:
        return int((await self.fetch("SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS xid"))[0]["xid"])

    def crashes(self) -> list[str]:
        """The statements of which the server died so far."""
        text = self.server.log_path.read_text(encoding="utf-8", errors="replace")
        return re.findall(r"Failed process was running: (.*?)\n20\d\d-", text, re.DOTALL)

    async def aclose(self) -> None:
        await self.pool.aclose()
        await self.watch.aclose()
        await self.oracle.aclose()


class World:
    def __init__(self, one: Side, other: Side, catalog: Catalog, model: Model, names: "Names") -> None:
        self.one = one  # without the wall
        self.other = other
        self.catalog = catalog
        self.model = model
        self.names = names

    async def level_xids(self) -> None:
        """Let both servers stand at the same transaction id, which statements can see."""
        one, other = await self.one.xid(), await self.other.xid()
        behind = self.one if one < other else self.other
        missing = abs(one - other)
        while missing > 0:
            await behind.run("BEGIN READ WRITE; SELECT pg_current_xact_id(); COMMIT;" * min(missing, 500))
            missing -= 500

    async def restore(self) -> None:
        """Undo what allowed writes did, by the same steps on both."""
        await self.level_xids()
        for side in (self.one, self.other):
            await side.run("BEGIN READ WRITE;" + _RESTORE + "COMMIT")
            await side.run("SET default_transaction_read_only = off")
            await side.run(f"VACUUM {', '.join(RESTORED)}")
            await side.run("RESET default_transaction_read_only")


class Names:
    """What oids of the first server stand for."""

    def __init__(
        self, relations: dict[int, tuple[str, str]], functions: dict[int, tuple[str, str]], types: dict[int, tuple[str, str]]
    ) -> None:
        self.relations = relations
        self.functions = functions
        self.types = types


_RESTORE: Final = "".join(
    f"DELETE FROM ONLY {name}; INSERT INTO {name} SELECT * FROM backup.{name};" for name in RESTORED
) + "SELECT setval('notes_id_seq', 100); SELECT setval('tickets', 100);"  # fmt: skip
_BACKUP: Final = (
    "CREATE SCHEMA backup;"
    + "".join(f"CREATE TABLE backup.{name} AS SELECT * FROM ONLY {name};" for name in RESTORED if name != "logs")
    + "CREATE TABLE backup.logs AS SELECT * FROM logs;"
    + "SELECT setval('notes_id_seq', 100); SELECT setval('tickets', 100);"
)


def made_server(folder: Path, version: Version, views: str, hidden: str, *, traps: bool) -> EmbeddedPostgres:
    server = EmbeddedPostgres(folder, version=version, settings=SETTINGS)
    server.initialise()
    server.start()
    server.psql(f"CREATE DATABASE {DATABASE}")
    server.psql((HERE / "schema.sql").read_text(encoding="utf-8"), DATABASE)
    if traps:
        server.psql((HERE / "traps.sql").read_text(encoding="utf-8"), DATABASE)
    for view in views.split("\n\n"):  # one that PostgreSQL does not take costs both servers the same
        if view and "$" not in view:  # which would end the quotes around it
            server.psql(f"DO $body$ BEGIN EXECUTE $text${view}$text$; EXCEPTION WHEN OTHERS THEN NULL; END $body$", DATABASE)
    server.psql(_BACKUP, DATABASE)
    server.psql((HERE / hidden).read_text(encoding="utf-8"), DATABASE)
    server.psql(f"CREATE DATABASE {ORACLE} TEMPLATE {DATABASE}")
    return server


class Servers:
    """The two servers; made and stopped by `servers`. What they hold is read once, by the first who connects."""

    def __init__(self, one: EmbeddedPostgres, other: EmbeddedPostgres) -> None:
        self.one = one
        self.other = other
        self.known: tuple[Catalog, Model, Names] | None = None


@contextmanager
def servers(*, version: Version = 18, views: str = "", traps: bool = False) -> Iterator[Servers]:
    """`views`: further CREATE VIEW statements, separated by empty lines; those that fail are left out. `traps`: with the
    overloads of traps.sql."""
    root = Path(tempfile.mkdtemp(prefix="gwp", dir=places.ROOT))
    root.chmod(0o711)
    made: list[EmbeddedPostgres] = []
    try:
        for number, hidden in enumerate(("hidden_one.sql", "hidden_two.sql")):
            made.append(made_server(root / str(number), version, views, hidden, traps=traps))
        yield Servers(*made)
    finally:
        for server in made:
            server.stop("immediate")
        shutil.rmtree(root, ignore_errors=True)


@asynccontextmanager
async def connected(pair: Servers, limits: Limits) -> AsyncIterator[World]:
    one, other = Side(pair.one, OpenPool, limits), Side(pair.other, Pool, limits)
    try:
        if pair.known is None:
            pair.known = await _read(one)
        world = World(one, other, *pair.known)
        await world.level_xids()
        yield world
    finally:
        with trio.CancelScope(shield=True):
            await one.aclose()
            await other.aclose()


async def _read(side: Side) -> tuple[Catalog, Model, Names]:
    model = await read_model(side.fetch)
    model.tables = [each for each in model.tables if each.schema != "backup"]
    named = "SELECT c.oid, n.nspname AS schema, {name} AS name FROM {table} c JOIN pg_namespace n ON n.oid = c.{column}"
    found = [
        {
            row["oid"]: (row["schema"], row["name"])
            for row in await side.fetch(named.format(table=table, name=name, column=column))
        }
        for table, name, column in (
            ("pg_class", "relname", "relnamespace"),
            ("pg_proc", "proname", "pronamespace"),
            ("pg_type", "typname", "typnamespace"),
        )
    ]
    return await read_catalog(side.watch, 1), model, Names(*found)
