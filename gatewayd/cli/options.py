"""Options that several commands share, with one wording each."""

import re
from collections.abc import Callable
from typing import Any, Final

import click

as_json: Final = click.option("--json", "as_json", is_flag=True, help="JSON lines on a terminal too; in a pipe they come anyway.")
connect: Final = click.option(
    "--connect", is_flag=True, help="Read the catalog of each database, so that views, partitions and functions count."
)
policy_file: Final[Callable[..., Any]] = click.argument("file", required=False, metavar="[FILE]")
database: Final = click.option("--database", metavar="NAME", help="Only this database of the policy.")

_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION: Final = re.compile(r"(?:[0-9]{1,6}[smhdw])+", re.ASCII)


def duration_s(text: str) -> int | None:
    """Seconds of `90s`, `30m`, `12h`, `7d`, `2w` or `1d12h`; None for any other text."""
    if not _DURATION.fullmatch(text):
        return None
    return sum(int(part[:-1]) * _UNITS_S[part[-1]] for part in re.findall(r"[0-9]+[smhdw]", text))
