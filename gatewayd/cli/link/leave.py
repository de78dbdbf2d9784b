"""`gatewayd link leave`: forgets the link. The identity and the audit file stay."""

import os
import sys

import click

from gatewayd.config.exit_codes import UNAVAILABLE
from gatewayd.config.settings import audit_path, state_dir
from gatewayd.link.kept import BUNDLE, FRESHNESS, LINK, RATCHET, TRUST, Kept


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(yes: bool) -> None:
    """Forget the control plane: link, trust, bundle and ratchet are removed from the state folder.

    gatewayd must be stopped. What the audit file still owes is not sent; the identity and the file stay.
    """
    if not yes:
        click.confirm("Forget the control plane?", abort=True)

    import trio

    sys.exit(trio.run(_leave))


async def _leave() -> int:
    """The exit code. The audit file's lock says whether gatewayd runs."""
    from gatewayd.audit.meta import Linked
    from gatewayd.audit.service import AuditFileLocked, AuditFileUnusable, AuditUnavailable, IdentityRefused, open_audit

    path, folder = audit_path(os.environ), state_dir(os.environ)
    failure: BaseException | None = None
    try:
        async with open_audit(path, state_dir=folder, credentials_dir=os.environ.get("CREDENTIALS_DIRECTORY")) as audit:
            meta = await audit.meta()
            if meta.linked is not None:
                await audit.note_linked(Linked(False, meta.linked.retention_h))
            # link.json first: without it the gateway is not linked, whatever else is left
            Kept(folder).forget(LINK, BUNDLE, FRESHNESS, TRUST, RATCHET)
    except* (AuditFileLocked, AuditFileUnusable, AuditUnavailable, IdentityRefused, OSError) as failures:
        failure = failures.exceptions[0]
    if failure is not None:
        click.echo(f"{failure}", err=True)
        return UNAVAILABLE
    click.echo("left; start gatewayd with a policy file, or link it anew")
    return 0
