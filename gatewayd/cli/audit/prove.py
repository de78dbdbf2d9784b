"""`gatewayd audit prove`: everything of one query as one text that proves itself."""

import sqlite3
import sys

import click

from gatewayd.audit.ids import is_ulid
from gatewayd.audit.meta import MetaDamaged
from gatewayd.audit.proof import NoProof, prove
from gatewayd.audit.reader import connect_for_reading
from gatewayd.audit.stored_tree import LeafMissing
from gatewayd.cli.audit import filters
from gatewayd.cli.audit.search import open_audit_file
from gatewayd.cli.output import remark, visible
from gatewayd.config.exit_codes import FAILURE


@click.command()
@click.argument("id_", metavar="ID")
@filters.file
def command(id_: str, file: str | None) -> None:
    """Everything of one query as one text that proves itself.

    ID is the `auditId` of an answer, the id of any of the call's events, or its query id. The text holds the rows with their
    statement; who has it and the gateway's key checks it with `gatewayd audit verify-proof`, without this file.
    """
    if not is_ulid(id_):
        raise click.UsageError(f"found `{visible(id_)}`; expected an id of 26 characters, such as the `auditId` of an answer")
    path = open_audit_file(file).path
    try:
        click.echo(prove(connect_for_reading(path), id_.upper(), {}), nl=False)
    except (NoProof, LeafMissing, MetaDamaged, sqlite3.Error) as failure:
        remark(f"no proof: {failure}")
        sys.exit(FAILURE)
