"""The store's tables out and in by COPY, in pieces of whole rows: neither side holds more than a piece and a row.

Whole tables of all organisations: for somebody at the machine, and never for a request. So the statements here name no project.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from typing import Final

import msgspec

from gatewayd.control.backup.archive import ArchiveProblem, ArchiveWriter, Manifest
from gatewayd.control.store import days, migrate
from gatewayd.control.store.connection import StoreConnection
from gatewayd.control.store.statement import Statement, details_table, events_table
from gatewayd.control.store.store import Transaction

PIECE_BYTES: Final = 4 << 20

LEFT_OUT: Final = frozenset(
    {
        "challenges",
        "engine_tokens",
        "enrol_tokens",
        "leases",
        "notification_deliveries",
        "notification_due",
        "one_time_links",
        "replicas",
        "sessions",
        "throttles",
    }
)
"""Tables whose rows stay behind: what works once, or ends when somebody signs out, would work again after a restore."""

TABLES: Final = Statement(
    "SELECT c.relname::text AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns"
    " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid"
    " WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped GROUP BY c.relname"
)
SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL statement_timeout = 0"
# An approval that was spent after the backup was made would be there to be spent again, and so would a grant.
END_APPROVALS: Final = """
UPDATE approvals SET expires_ms = LEAST(expires_ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
UPDATE shape_grants SET ends_ms = LEAST(ends_ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
DELETE FROM approvals_pending
"""
_DAY: Final = re.compile(r"audit_([0-9]{8})")


class _Table(msgspec.Struct, frozen=True):
    name: str
    columns: tuple[str, ...]


async def dump(connection: StoreConnection, archive: ArchiveWriter) -> dict[str, tuple[str, ...]]:
    """Writes every table as it is at one moment; the columns by table. Ends the transaction."""
    await connection.script(SNAPSHOT)
    found = {record["name"]: tuple(record["columns"]) for record in await connection.fetch(TABLES)}
    for table in sorted(found.keys() - LEFT_OUT):
        pieces = _Pieces(archive, table)
        await connection.copy_out(table, found[table], pieces.take)
        pieces.flush()
    await connection.script("COMMIT")
    return found


class _Pieces:
    """Of one table: rows are gathered until there are enough for a member. A line's end is always a row's end."""

    def __init__(self, archive: ArchiveWriter, table: str) -> None:
        self._archive = archive
        self._table = table
        self._held = bytearray()
        self._number = 0

    def take(self, rows: bytes) -> None:
        self._held += rows
        if len(self._held) >= PIECE_BYTES and (end := self._held.rfind(b"\n") + 1):
            self._write(end)

    def flush(self) -> None:
        if self._held:
            self._write(len(self._held))

    def _write(self, end: int) -> None:
        self._archive.add(f"store/{self._table}/{self._number:08}", self._held[:end])
        del self._held[:end]
        self._number += 1


def check_migrations(manifest: Manifest) -> list[str]:
    """The texts that make the archive's tables. Raises ArchiveProblem where they are not the first ones of this version."""
    known = migrate.known()
    ours = list(known)[: len(manifest.migrations)]
    for theirs in manifest.migrations:
        mine = next((each for each in known if each.number == theirs.number), None)
        if mine is None:
            raise ArchiveProblem(f"this version does not know migration {theirs.name} of the archive; run a newer version")
        if mine.checksum != theirs.checksum:
            raise ArchiveProblem(f"migration {theirs.name} of the archive has another text than this version's")
    if not ours or [each.number for each in ours] != [each.number for each in manifest.migrations]:
        raise ArchiveProblem("the archive's migrations are not the first ones of this version")
    return [known[each] for each in ours]


async def is_empty(tx: Transaction) -> bool:
    return not await tx.rows(_Table, TABLES)


async def has_leases(tx: Transaction) -> bool:
    return any(table.name == "leases" for table in await tx.rows(_Table, TABLES))


async def load(tx: Transaction, manifest: Manifest, pieces: Iterable[tuple[str, bytes]]) -> None:
    """Makes the tables and fills them. `pieces` by table. Raises ArchiveProblem where the shapes differ."""
    for text in (migrate.BOOTSTRAP, *check_migrations(manifest)):
        await tx.define(text)
    for day in _days(manifest):
        names = {"events": events_table(day), "details": details_table(day)}
        await tx.define(days.EVENTS.format(**names))
        await tx.define(days.DETAILS.format(**names))
    made = {table.name: table.columns for table in await tx.rows(_Table, TABLES)}
    if {name: set(columns) for name, columns in made.items()} != {name: set(each) for name, each in manifest.tables.items()}:
        raise ArchiveProblem("the archive's tables are not those that its migrations make")
    for table, rows in pieces:
        if table not in made or table in LEFT_OUT:
            raise ArchiveProblem(f"the archive has rows of `{table}`, which a backup has not")
        await tx.copy_in(table, manifest.tables[table], rows)
    await tx.define(END_APPROVALS)


def _days(manifest: Manifest) -> Iterator[date]:
    for name in manifest.tables:
        match = _DAY.fullmatch(name)
        if match is not None:
            try:
                yield datetime.strptime(match[1], "%Y%m%d").replace(tzinfo=UTC).date()
            except ValueError:
                raise ArchiveProblem(f"the archive has a table `{name}`, which is of no day") from None
