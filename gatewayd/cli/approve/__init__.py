"""`gatewayd approve`: an approval gate for one operator, at a terminal (docs/approvals.md, The gate at a terminal)."""

import os
import secrets
import sys
from pathlib import Path
from typing import Final

import click

from gatewayd.cli.output import remark
from gatewayd.config.credentials import CredentialProblem, read_credential
from gatewayd.config.exit_codes import CONFIGURATION, UNAVAILABLE

TOKEN_VARIABLE: Final = "GATEWAY_APPROVAL_TOKEN"


def default_file() -> Path:
    """Where requests are kept unless another file is named."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "gatewayd-approve" / "requests.db"


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8091, show_default=True, help="Port on 127.0.0.1; 0 takes a free one."
)
@click.option(
    "--file",
    type=click.Path(dir_okay=False, resolve_path=True, path_type=Path),
    help=f"Where requests are kept. Default: {default_file()}",
)
@click.option(
    "--expires", type=click.IntRange(1, 1440), default=30, show_default=True, help="Minutes that a request can be decided."
)
@click.option("--by", default=None, help="Your name, as agents and the audit see it. Default: $USER.")
def command(port: int, file: Path | None, expires: int, by: str | None) -> None:
    """Decide about held writes at this terminal.

    A gatewayd whose GATEWAY_APPROVAL_URL and GATEWAY_APPROVAL_TOKEN lead here asks for each write that its policy holds. Each is
    shown with what it would touch, and waits for one line: `a` approves, `d` denies, `s` looks at the next one first; a note may
    follow, and `a <=12` lets the write touch 12 rows at most. In a pipe the request's id comes before the note.

    The token is taken from GATEWAY_APPROVAL_TOKEN, else made once and kept beside the requests. Requests and decisions are kept
    over restarts. Serves 127.0.0.1 only.
    """
    import sqlite3

    import trio

    from gatewayd.cli.approve.terminal import Desk

    where = file or default_file()
    try:
        where.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        desk = Desk(str(where), _token(where), expires_ms=expires * 60_000, by=by or os.environ.get("USER") or None)
    except (OSError, sqlite3.Error) as failure:
        remark(f"gatewayd approve: cannot use {where} ({failure})")
        sys.exit(CONFIGURATION)
    except CredentialProblem as problem:
        remark(f"gatewayd approve: {TOKEN_VARIABLE}: {problem}")
        sys.exit(CONFIGURATION)
    try:
        trio.run(desk.run, port)
    except* OSError as failure:
        remark(f"gatewayd approve: cannot listen on 127.0.0.1 port {port} ({failure.exceptions[0]}); choose another with --port")
        sys.exit(UNAVAILABLE)
    except* KeyboardInterrupt:
        pass
    finally:
        desk.close()


def _token(where: Path) -> str:
    given = read_credential(TOKEN_VARIABLE, os.environ, lambda path: Path(path).read_bytes())
    if given:
        return given
    kept = where.with_suffix(".token")
    if not kept.exists():
        with os.fdopen(os.open(kept, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="ascii") as new:
            new.write(secrets.token_urlsafe(32))
    return kept.read_text(encoding="ascii").strip()
