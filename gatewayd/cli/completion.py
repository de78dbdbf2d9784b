"""`gatewayd completion`: the script with which a shell completes gatewayd's commands and options."""

from typing import Final

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

_SHELLS: Final[dict[str, type[ShellComplete]]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
# The variable through which click's scripts ask the program for candidates: `_<PROGRAM>_COMPLETE`.
_ASKED_BY: Final = "_GATEWAYD_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(list(_SHELLS)))
def command(shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    bash:  gatewayd completion bash > ~/.local/share/bash-completion/completions/gatewayd
    zsh:   gatewayd completion zsh > "${fpath[1]}/_gatewayd"
    fish:  gatewayd completion fish > ~/.config/fish/completions/gatewayd.fish
    """
    # The text alone: `ShellComplete.source()` of bash starts a bash to look at its version, which a build machine may not have.
    script = _SHELLS[shell](click.Group(), {}, "gatewayd", _ASKED_BY)
    click.echo(script.source_template % script.source_vars())
