"""The control plane's settings for a command, or the end of the command with every problem on a line of its own."""

import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from gatewayd.config.exit_codes import CONFIGURATION, FAILURE, UNAVAILABLE

if TYPE_CHECKING:
    from gatewayd.control.console import Console
    from gatewayd.control.settings import ControlSettings


T = TypeVar("T")


def control_settings_or_exit(*, secrets: bool = True) -> "ControlSettings":
    """Exits with 78 when the configuration is wrong. With `secrets` the missing ones of self-host are made."""
    try:
        from gatewayd.config.settings import SettingsErrors
        from gatewayd.control.settings import load_control_settings, with_secrets
    except ModuleNotFoundError as missing:
        click.echo(f"gatewayd control needs more packages ({missing.name}): pip install 'gatewayd[control]'", err=True)
        sys.exit(CONFIGURATION)
    try:
        settings = load_control_settings(os.environ)
        return with_secrets(settings) if secrets else settings
    except SettingsErrors as errors:
        for problem in errors.problems:
            click.echo(problem, err=True)
        sys.exit(CONFIGURATION)


def run_with_console(work: Callable[["Console"], Awaitable[int]]) -> int:
    """Run `work` over the store, beside a running control plane or without one; its exit code, or 69 when there is no store."""
    settings = control_settings_or_exit()
    import trio

    from gatewayd.control.console import Console
    from gatewayd.control.database import store_address
    from gatewayd.control.store.failures import StoreUnavailable
    from gatewayd.control.store.migrate import MigrationProblem
    from gatewayd.control.store.store import Store
    from gatewayd.postgres.embedded import EmbeddedUnavailable

    async def run() -> int:
        async with store_address(settings) as address:
            store = Store(address, size=2)
            try:
                return await work(Console(settings, store))
            finally:
                store.close()

    try:
        return trio.run(run)
    except (EmbeddedUnavailable, StoreUnavailable, MigrationProblem) as failure:
        click.echo(f"gatewayd control: {failure}", err=True)
        return UNAVAILABLE


def told_or_exit(work: Callable[[], Awaitable[T]]) -> T:
    """What a backup or a restore gives; exits with 1 when it is refused, with 69 when there is no store."""
    import trio

    from gatewayd.control.backup.archive import ArchiveProblem
    from gatewayd.control.backup.backup import BackupProblem
    from gatewayd.control.backup.restore import RestoreProblem
    from gatewayd.control.store.failures import StoreUnavailable
    from gatewayd.control.store.migrate import MigrationProblem
    from gatewayd.postgres.embedded import EmbeddedUnavailable

    try:
        return trio.run(work)
    except (ArchiveProblem, BackupProblem, RestoreProblem, OSError) as refused:
        click.echo(f"gatewayd control: {refused}", err=True)
        sys.exit(FAILURE)
    except (EmbeddedUnavailable, StoreUnavailable, MigrationProblem) as failure:
        click.echo(f"gatewayd control: {failure}", err=True)
        sys.exit(UNAVAILABLE)
