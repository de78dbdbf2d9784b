"""`gatewayd link --control URL`: a token in, whom this gateway belongs to out."""

import os
import secrets
import sys
import time

import click

from gatewayd import __version__
from gatewayd.config.exit_codes import CONFIGURATION, UNAVAILABLE
from gatewayd.config.settings import LinkSettings, SettingsErrors, load_settings, state_dir


@click.command()
@click.option("--control", metavar="URL", help="The control plane. Default: GATEWAY_CONTROL_URL.")
def command(control: str | None) -> None:
    """Link this gateway to a control plane.

    Asks for the enrolment token, or reads it from GATEWAY_ENROL_TOKEN. The token is for one use and one hour, and says which
    control plane is meant: another one is not believed.
    """
    environ = {**os.environ, **({"GATEWAY_CONTROL_URL": control} if control else {})}
    if not environ.get("GATEWAY_CONTROL_URL"):
        raise click.UsageError("name the control plane with --control URL, or set GATEWAY_CONTROL_URL")
    try:
        link = load_settings(environ).link
    except SettingsErrors as errors:
        for problem in errors.problems:
            click.echo(problem, err=True)
        sys.exit(CONFIGURATION)
    assert link is not None
    token = link.enrol_token.reveal() if link.enrol_token is not None else click.prompt("Enrolment token", hide_input=True)

    import trio

    sys.exit(trio.run(_enrol, link, token, state_dir(environ), environ.get("CREDENTIALS_DIRECTORY")))


async def _enrol(link: LinkSettings, text: str, folder: str, credentials_dir: str | None) -> int:
    """The exit code."""
    from gatewayd.audit.ids import new_ulid
    from gatewayd.keys.identity import IdentityRefused, ensure_identity
    from gatewayd.link.client import ControlPlane, LinkClock
    from gatewayd.link.enrol import EnrolmentFailed, enrol
    from gatewayd.link.formats.enrolment import read_token
    from gatewayd.link.kept import Kept, KeptUnreadable

    kept = Kept(folder)
    try:
        known = kept.enrolled()
        if known is not None:
            click.echo(
                f"already linked: gateway {known.gateway} of project {known.project}; `gatewayd link leave` first", err=True
            )
            return CONFIGURATION
        token = read_token(text)
        identity = ensure_identity(folder, credentials_dir)
        run = new_ulid(time.time_ns() // 1_000_000, secrets.token_bytes)
        async with ControlPlane(link, identity, LinkClock(), run, __version__) as control:
            found = await enrol(control, token, identity, kept, __version__, link.control_url)
    except EnrolmentFailed as failed:
        click.echo(str(failed), err=True)
        return UNAVAILABLE
    except (ValueError, IdentityRefused, KeptUnreadable, OSError) as wrong:
        click.echo(str(wrong), err=True)
        return CONFIGURATION
    click.echo(f"linked: gateway {found.gateway} of project {found.project}, issuer {found.issuer}")
    click.echo("start gatewayd with GATEWAY_CONTROL_URL set; it waits for the first bundle")
    return 0
