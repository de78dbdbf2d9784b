"""`gatewayd check`: would it start? Configuration and policy, as `nginx -t` does it; with --connect the databases too."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayd.cli.load_settings import settings_or_exit
from gatewayd.config.exit_codes import CONFIGURATION, UNAVAILABLE

if TYPE_CHECKING:
    from gatewayd.config.settings import Settings


@click.command()
@click.option("--connect", is_flag=True, help="Also connect to every database and read its catalog.")
def command(connect: bool) -> None:
    """Check configuration and policy without serving.

    Prints every problem on a line of its own. Exits with 0 when gatewayd would start, 78 when the configuration is wrong, 69
    when a database does not answer.
    """
    settings = settings_or_exit(os.environ)
    for warning in settings.warnings:
        click.echo(f"warning: {warning}", err=True)
    problem = unwritable(Path(settings.db_path))
    if problem:
        click.echo(f"DB_PATH: {problem}", err=True)
        sys.exit(CONFIGURATION)
    databases = settings.policies.databases
    policy = f"policy {settings.policy_file}" if settings.policy_file else "no policy file: reads allowed, writes denied"
    click.echo(f"configuration is valid; {policy}; {len(databases) if databases else 1} database(s)")
    if connect and not _all_answer(settings):
        sys.exit(UNAVAILABLE)


def unwritable(path: Path) -> str | None:
    """Why the audit file could not be opened for writing, as far as that can be found out without creating anything."""
    if path.is_dir():
        return f"`{path}` is a folder; expected the path of a file"
    nearest = next(folder for folder in (path, *path.parents) if folder.exists())
    if nearest != path and not nearest.is_dir():
        return f"`{nearest}` is a file; expected a folder there"
    if not os.access(nearest, os.W_OK):
        return f"`{nearest}` cannot be written; expected a place that this account may write to"
    return None


def _all_answer(settings: "Settings") -> bool:
    """Ask every database for its catalog, one after the other; one line each."""
    import trio

    from gatewayd.audit.events import DEFAULT_DATABASE
    from gatewayd.policy.file.model import Limits
    from gatewayd.postgres.catalog.read_catalog import read_catalog
    from gatewayd.postgres.execute.result import ExecutionFailed
    from gatewayd.postgres.pool import Pool

    async def answers(name: str, url: str, limits: Limits) -> bool:
        pool = Pool(name, url, limits, size=1)
        try:
            catalog = await read_catalog(pool, 1)
        except ExecutionFailed as failed:
            click.echo(f"database {name}: {failed.message} ({failed.sqlstate})", err=True)
            return False
        finally:
            await pool.aclose()
        major = catalog.server_version // 10000
        click.echo(f"database {name}: answers; PostgreSQL {major}, {len(catalog.relations)} relations in {catalog.database}")
        return True

    async def ask() -> bool:
        # One after the other, though slower: the lines stand in the order of the policy file.
        return all([await answers(name, url, limits) for name, url, limits in wanted])

    if settings.policies.databases is not None:
        wanted = [(named.name, named.url, named.policy.limits) for named in settings.policies.databases]
    else:
        assert settings.database_url is not None, "load_settings asks for one"
        single = settings.policies.single
        wanted = [(DEFAULT_DATABASE, settings.database_url.reveal(), single.limits if single else Limits())]
    return trio.run(ask)
