"""`gatewayd link rotate`: a new identity in place of the present one, known to the control plane before it counts."""

import os
import secrets
import sys
import time

import click

from gatewayd import __version__
from gatewayd.cli.link.kept_link import KeptLink, here, read_link
from gatewayd.config.exit_codes import CONFIGURATION, UNAVAILABLE
from gatewayd.config.settings import LinkSettings, audit_path
from gatewayd.link.kept import Kept


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(yes: bool) -> None:
    """Give this gateway a new identity, for the key of its requests and of its audit heads.

    gatewayd must be stopped. The next start begins a new instance of the audit, after what it still owes of the present one. If
    it is cut short, do it again: it goes on where it was. An identity that is a systemd credential cannot be replaced from here.
    """
    kept, link = read_link(here())
    if os.environ.get("CREDENTIALS_DIRECTORY"):
        click.echo("the identity is a credential of the service manager; run this with GATEWAY_STATE_DIR alone", err=True)
        sys.exit(CONFIGURATION)
    if not yes:
        click.confirm(f"Replace the identity {link.enrolled.identity}?", abort=True)

    import trio

    sys.exit(trio.run(_rotate, kept, link, os.path.realpath(audit_path(os.environ))))


async def _rotate(kept: Kept, link: KeptLink, path: str) -> int:
    """The exit code. The audit file's lock says whether gatewayd runs."""
    from gatewayd.audit.ids import new_ulid
    from gatewayd.audit.lock import AuditFileLocked, OwnershipLock
    from gatewayd.keys.ed25519 import SigningKey
    from gatewayd.keys.identity import IdentityRefused, load_identity
    from gatewayd.link.client import ControlPlane, LinkClock
    from gatewayd.link.rotate import RotationFailed, next_identity, rotate

    try:
        lock = OwnershipLock(path)
    except (AuditFileLocked, OSError) as running:
        click.echo(f"{running}; stop gatewayd first", err=True)
        return UNAVAILABLE
    clock, enrolled = LinkClock(), link.enrolled
    settings = LinkSettings(enrolled.control_url, ca_file=os.environ.get("GATEWAY_CONTROL_CA") or None)

    def plane(key: SigningKey) -> ControlPlane:
        made = ControlPlane(settings, key, clock, new_ulid(time.time_ns() // 1_000_000, secrets.token_bytes), __version__)
        made.issuer, made.gateway = enrolled.issuer, enrolled.gateway
        return made

    try:
        identity = load_identity(str(kept.folder))
        if identity is None:
            raise IdentityRefused("there is no identity; `gatewayd link leave` and enrol again")
        following = next_identity(kept)
        async with plane(identity) as control, plane(following) as as_next:
            found = await rotate(control, as_next, identity, enrolled, link.trust, kept)
    except RotationFailed as failed:
        click.echo(str(failed), err=True)
        return UNAVAILABLE
    except (IdentityRefused, OSError) as wrong:
        click.echo(str(wrong), err=True)
        return CONFIGURATION
    finally:
        lock.release()
    click.echo(f"identity {found.key_id} is in force; start gatewayd")
    return 0
