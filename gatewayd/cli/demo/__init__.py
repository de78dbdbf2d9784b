"""`gatewayd demo`: a sample shop's PostgreSQL, and in front of it the control plane with an engine, or an engine alone."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import click

from gatewayd.config.exit_codes import UNAVAILABLE
from gatewayd.demo.shop import ADDRESS, Demo, default_folder, probe
from gatewayd.postgres.embedded import EmbeddedUnavailable

Serve = Callable[[Demo, int, bool], int]
"""Is given the demo while its PostgreSQL runs, the port, and whether SIGHUP stops; gives the exit code."""

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.option(
    "--state",
    type=click.Path(file_okay=False, resolve_path=True, path_type=Path),
    help=f"Folder that keeps the demo's data. Default: {default_folder()}",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Port to serve on. Default: that of the last time, else a free one.")
@click.option("--engine-only", is_flag=True, help="Without the control plane: one gatewayd, and its policy in a file.")
def command(state: Path | None, port: int | None, engine_only: bool) -> None:
    """Serve a sample shop from an embedded PostgreSQL.

    Prints where the console is, how to connect an agent and what to try. Ctrl-C, or closing the terminal, stops all of it; the
    data stays for the next time.
    """
    serve = _engine_only if engine_only else _self_host
    if port is not None:
        _free_or_exit(port)
    ending = _ending()
    for number in ending:
        signal.signal(number, _leave)
    demo = Demo(state or default_folder())
    try:
        with demo.running():
            try:
                code = serve(demo, demo.port(port), signal.SIGHUP in ending)
            finally:  # PostgreSQL stops within a second; that must not be interrupted
                _heed_no_more()
    except EmbeddedUnavailable as unavailable:
        click.echo(f"gatewayd demo: {unavailable}", err=True)
        for note in getattr(unavailable, "__notes__", ()):
            click.echo(note, err=True)
        sys.exit(UNAVAILABLE)
    sys.exit(code)


def _free_or_exit(port: int) -> None:
    """Told at once, and with the option's name: the daemons look later, and know of their variables only."""
    from gatewayd.http.listeners import why_not

    try:
        probe(port)
    except OSError as failure:
        why = why_not(failure, ADDRESS, port, host_setting="--port", port_setting="--port")
        click.echo(f"gatewayd demo: {why}; without --port it finds a free one", err=True)
        sys.exit(UNAVAILABLE)


def _engine_only(demo: Demo, port: int, hangup_stops: bool) -> int:
    from gatewayd.cli.demo.engine_only import serve_engine

    return serve_engine(demo, port, hangup_stops)


def _self_host(demo: Demo, port: int, hangup_stops: bool) -> int:
    from gatewayd.cli.demo.self_host import serve_control_plane

    return serve_control_plane(demo, port, hangup_stops)


def _ending() -> list[signal.Signals]:
    """The signals that end the demo. SIGHUP comes when its terminal is closed; nohup ignores it, and so does its demo."""
    return [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]


def _heed_no_more() -> None:
    for number in _ending():
        signal.signal(number, signal.SIG_IGN)


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    """A signal while PostgreSQL starts: leave through the blocks that stop it. While serving, the daemon takes the signal."""
    _heed_no_more()  # a closed terminal is told by its shell and by the kernel
    sys.exit(0)
