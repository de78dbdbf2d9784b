"""Settings for a command, or the end of the command with every problem on a line of its own (decisions 1 and 13)."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from gatewayd.config.exit_codes import CONFIGURATION

if TYPE_CHECKING:
    from gatewayd.config.settings import Settings


def settings_or_exit(environ: Mapping[str, str]) -> "Settings":
    """The settings that `environ` describes. Exits with 78 when they are wrong, after printing what is."""
    from gatewayd.config.settings import SettingsErrors, load_settings

    try:
        return load_settings(environ)
    except SettingsErrors as errors:
        for problem in errors.problems:
            click.echo(problem, err=True)
        sys.exit(CONFIGURATION)
