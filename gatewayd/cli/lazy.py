"""A group of commands that imports only the command that runs, and suggests the right word for a wrong one.

`gatewayd serve --stdio` is started by an agent that waits for it, so the overview of a group is written beside it, not read from
the commands.
"""

import difflib
from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

import click


class LazyGroup(click.Group):
    """`summaries` gives each command's name and what it does; the command is `<package>.<name>.command`, a dash of the name being
    an underscore there. `default` is the command meant when none is named."""

    def __init__(
        self, *args: Any, package: str, summaries: Mapping[str, str], default: str | None = None, **attributes: Any
    ) -> None:
        super().__init__(*args, **attributes)
        self._package = package
        self._summaries = summaries
        self._default = default

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._summaries:
            return None
        return cast(click.Command, import_module(f"{self._package}.{cmd_name.replace('-', '_')}").command)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        # While a shell asks for candidates (`resilient_parsing`), no words yet means any command.
        if (
            self._default is not None
            and not ctx.resilient_parsing
            and (not args or (args[0].startswith("-") and args[0] not in own))
        ):
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self._summaries:
            close = difflib.get_close_matches(args[0], self._summaries, n=1)
            instead = f"{ctx.command_path} {close[0] if close else '--help'}"
            ctx.fail(f"there is no command `{args[0]}`; type: {instead}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._summaries.items()))
