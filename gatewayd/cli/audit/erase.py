"""`gatewayd audit erase`: takes personal text out of the record, and records that. The one audit command that writes."""

import os
import sys

import click

from gatewayd.audit.erasing import ErasureChoice, choice_of, reason_of_erasure
from gatewayd.cli.output import remark, visible
from gatewayd.config.exit_codes import CONFIGURATION, FAILURE
from gatewayd.config.settings import audit_path, state_dir

_FLAG = "GATEWAY_AUDIT_ERASABLE"


@click.command()
@click.option("--query-id", "query_ids", multiple=True, metavar="ID", help="The call with this query id. May be given again.")
@click.option("--agent", metavar="NAME", help="Calls of agents of this name.")
@click.option("--before", metavar="ID|DURATION", help="Rows older than this event id, or than 30d.")
@click.option("--reason", required=True, metavar="TEXT", help="Why. It is recorded, and stays.")
def command(query_ids: tuple[str, ...], agent: str | None, before: str | None, reason: str) -> None:
    """Take personal text out of the record, and record that.

    Of the rows that all given options choose, the statement, the intent, reasons and error texts are deleted for good; what kind
    of thing was asked when, and what was decided, stays and stays proved. Asks the running gatewayd (it needs INDEXER_TOKEN
    then), or does it itself while none runs. Refused unless GATEWAY_AUDIT_ERASABLE=1.
    """
    import time

    from gatewayd.cli.audit.search import cursor_of

    if os.environ.get(_FLAG, "0").strip().lower() not in ("1", "true", "on", "yes"):
        remark(f"erasing is switched off; expected {_FLAG}=1 in the environment, of the running gatewayd too")
        sys.exit(CONFIGURATION)
    cursor = None if before is None else cursor_of(before, time.time_ns() // 1_000_000)
    try:
        choice, why = choice_of(query_ids, agent, cursor), reason_of_erasure(reason)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    rows = _erase(choice, why)
    remark(f"erased the details of {rows} row{'' if rows == 1 else 's'}; everything that was proved before still is")


def _erase(choice: ErasureChoice, reason: str) -> int:
    import trio

    from gatewayd.audit.service import AuditFileLocked, AuditFileUnusable, AuditUnavailable, IdentityRefused, open_audit

    async def here() -> int:
        folder, credentials = state_dir(os.environ), os.environ.get("CREDENTIALS_DIRECTORY")
        async with open_audit(audit_path(os.environ), state_dir=folder, credentials_dir=credentials) as audit:
            return await audit.erase(choice, reason)

    if not os.path.exists(audit_path(os.environ)):
        remark(f"there is no audit file `{visible(audit_path(os.environ))}`; DB_PATH names it")
        sys.exit(FAILURE)
    try:
        return trio.run(here)
    except AuditFileLocked:
        return _asked(choice, reason)
    except (AuditFileUnusable, IdentityRefused) as unusable:
        remark(str(unusable))
    except BaseExceptionGroup as failed:
        unwritten, others = failed.split(AuditUnavailable)
        if others is not None or unwritten is None:
            raise
        remark("the audit file cannot be written; nothing more was erased than the record says")
    sys.exit(FAILURE)


def _asked(choice: ErasureChoice, reason: str) -> int:
    """Has the gatewayd that runs do it."""
    import httpx

    from gatewayd.cli.load_settings import settings_or_exit
    from gatewayd.cli.query import own_url

    token = settings_or_exit(os.environ).indexer_token
    if token is None:
        remark("a gatewayd that runs owns the audit file, and without INDEXER_TOKEN it cannot be asked; set it, or stop it first")
        sys.exit(CONFIGURATION)
    body = {"query_ids": choice.query_ids, "agent": choice.agent, "before": choice.before, "reason": reason}
    address = own_url(os.environ).removesuffix("/mcp") + "/audit/erase"
    try:
        answer = httpx.post(address, json=body, headers={"authorization": f"Bearer {token.reveal()}"}, timeout=600)
        if answer.status_code == 200:
            return int(answer.json()["erased"])
        said = str(answer.json().get("error", answer.status_code))
    except (httpx.HTTPError, ValueError, KeyError, AttributeError) as failure:
        said = f"{address}: {failure}"
    remark(f"the running gatewayd did not erase: {said}")
    sys.exit(FAILURE)
