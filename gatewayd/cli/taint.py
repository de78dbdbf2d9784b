"""`gatewayd taint`: which agents have read a source of foreign text, and clearing them (docs/policy.md, Containment)."""

import os
import sys
from typing import Any, Final

import click

from gatewayd.cli import options
from gatewayd.cli.output import Output, TableColumn, remark
from gatewayd.config.exit_codes import CONFIGURATION, FAILURE, UNAVAILABLE

_TAINTED: Final = (
    TableColumn("grant", "grant"),
    TableColumn("source", "source"),
    TableColumn("database", "database"),
    TableColumn("since", "since"),
    TableColumn("query", "query_id"),
)
_TIMEOUT_S: Final = 30.0


@click.group(name="taint")
def command() -> None:
    """Show which agents are contained, and let them go.

    Asks the running gatewayd, so it needs INDEXER_TOKEN. A grant is an agent's token, or the whole gateway where agents have
    none. A linked gateway is cleared on its control plane.
    """


@command.command(name="list")
@options.as_json
def listed(as_json: bool) -> None:
    """List the tainted grants: what each has read, and when."""
    found = _asked("GET", None)
    Output(as_json=as_json).records(_TAINTED, found["tainted"])
    if found["unreadable"]:
        remark(f"every grant counts as tainted: {found['unreadable']}; `gatewayd taint clear all` begins anew")
    elif not found["tainted"]:
        remark("no grant is tainted")


@command.command()
@click.argument("grant")
def clear(grant: str) -> None:
    """Clear GRANT: a token's id, `gateway`, or `all`. It is recorded in the audit.

    Look first at what the agent has done since: its session may still hold what it has read. Exits with 1 where nothing was
    tainted.
    """
    cleared = _asked("POST", {"clear": grant})["cleared"]
    for each in cleared:
        click.echo(f"cleared {each}")
    if not cleared and grant != "all":
        remark(f"{grant} is not tainted; `gatewayd taint list` shows what is")
        sys.exit(FAILURE)


def _asked(method: str, body: dict[str, str] | None) -> dict[str, Any]:
    """The running gatewayd's answer; ends the command where there is none."""
    import httpx

    from gatewayd.cli.load_settings import settings_or_exit
    from gatewayd.cli.query import own_url

    token = settings_or_exit(os.environ).indexer_token
    if token is None:
        remark("INDEXER_TOKEN is unset; expected the token of the running gatewayd")
        sys.exit(CONFIGURATION)
    address = own_url(os.environ).removesuffix("/mcp") + "/admin/taint"
    headers = {"authorization": f"Bearer {token.reveal()}"}
    try:
        answer = httpx.request(method, address, json=body, headers=headers, timeout=_TIMEOUT_S, trust_env=False)
        found = answer.json()
        if answer.status_code == 200 and isinstance(found, dict):
            return found
        said = str(found.get("error", answer.status_code)) if isinstance(found, dict) else str(answer.status_code)
    except (httpx.HTTPError, ValueError) as failure:
        remark(f"{address} does not answer: {failure}")
        sys.exit(UNAVAILABLE)
    remark(said)
    sys.exit(FAILURE)
