"""Live catalogs for a command: connect to each database in turn, read, and go (decisions 12 and 14). Nothing is written there."""

import os
import sys
from collections.abc import Mapping
from typing import Final

import click
import msgspec
import trio

from gatewayd.catalog import Catalog
from gatewayd.cli.output import visible
from gatewayd.cli.policyfile import DatabaseEntry
from gatewayd.cli.progress import waiting
from gatewayd.config.credentials import CredentialProblem, read_credential
from gatewayd.config.exit_codes import UNAVAILABLE
from gatewayd.config.settings import read_bytes
from gatewayd.policy.file import dsn
from gatewayd.policy.file.model import Limits
from gatewayd.policy.tools.sensitive import Comments
from gatewayd.postgres.catalog.read_catalog import read_catalog
from gatewayd.postgres.execute.result import ExecutionFailed
from gatewayd.postgres.pool import Pool

_COMMENTS: Final = """
SELECT n.nspname::text AS schema, c.relname::text AS name, a.attname::text AS column, d.description AS comment
FROM pg_catalog.pg_description AS d
JOIN pg_catalog.pg_class AS c ON c.oid = d.objoid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = d.objsubid
WHERE d.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objsubid > 0
"""


class Inspected(msgspec.Struct, frozen=True):
    """A database's catalog, and the comments on its columns."""

    catalog: Catalog
    comments: Comments


def database_url(variable: str = "DATABASE_URL") -> str:
    """The connection string that the variable holds, read as `serve` reads it. Ends the command when there is none."""
    try:
        url = read_credential(variable, os.environ, read_bytes)
    except CredentialProblem as problem:
        raise click.UsageError(f"{variable}: {problem}") from None
    if not url:
        words = click.get_current_context().command_path
        raise click.UsageError(f"{variable} is unset; type: {variable}={dsn.EXPECTED} {words} …")
    problem_text = dsn.check(url)
    if problem_text:
        raise click.UsageError(f"{variable}: {problem_text}")
    return url


def inspect(entries: tuple[DatabaseEntry, ...]) -> Mapping[str, Inspected]:
    """The catalog of each entry's database. Ends the command with 69 after naming those that do not answer."""
    urls = {entry.name: entry.url if entry.url is not None else database_url() for entry in entries}
    found: dict[str, Inspected] = {}
    failures: list[str] = []

    async def read() -> None:
        for name, url in urls.items():
            try:
                async with waiting(f"reading the catalog of {name}"):
                    found[name] = await _inspected(name, url)
            except ExecutionFailed as failed:
                failures.append(f"database {name}: {failed.message} ({failed.sqlstate})")

    trio.run(read)
    if failures:
        for failure in failures:
            click.echo(visible(failure), err=True)
        sys.exit(UNAVAILABLE)
    return found


async def _inspected(name: str, url: str) -> Inspected:
    pool = Pool(name, url, Limits(), size=1)
    try:
        catalog = await read_catalog(pool, 1)
        async with pool.connection() as connection:
            rows = await connection.fetch(_COMMENTS)
    finally:
        await pool.aclose()
    return Inspected(catalog, {(row["schema"], row["name"], row["column"]): row["comment"] for row in rows})
