"""`gatewayd query`: one statement through the running gatewayd, as an agent would send it (decision 14)."""

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NoReturn

import click
import msgspec

from gatewayd.cli import options
from gatewayd.cli.output import Output, TableColumn, remark, tame, visible
from gatewayd.config.exit_codes import FAILURE
from gatewayd.config.variables import DEFAULTS

if TYPE_CHECKING:
    from gatewayd.cli.agent import ToolAnswer

AGENT: Final = "gatewayd query"
INTENT: Final = "an operator's query from the command line"

PrintedRow = dict[str, msgspec.Raw]


class _Failure(msgspec.Struct):
    """A tool error in any of its shapes (decision 5)."""

    allowed: bool
    reason: str | None = None
    policy_rule: str | None = None
    status: str | None = None
    error: str | dict[str, object] | None = None
    auditId: str | None = None  # noqa: N815 - the answer's key


class _Rows(msgspec.Struct):
    rows: list[msgspec.Raw]
    rowCount: int  # noqa: N815 - the answer's key
    auditId: str  # noqa: N815 - the answer's key
    truncated: bool = False


@click.command()
@click.argument("sql")
@click.option("--database", metavar="NAME", help="Which database, where gatewayd serves several.")
@click.option("--intent", default=INTENT, show_default=True, help="Why the statement runs. It is recorded.")
@click.option("--url", help="Where gatewayd serves MCP. Default: http://127.0.0.1:8080/mcp, with PORT and GATEWAY_HOST if set.")
@options.as_json
def command(sql: str, database: str | None, intent: str, url: str | None, as_json: bool) -> None:
    """Run one statement through the running gatewayd, as an agent would.

    SQL is one statement; `-` reads it from standard input. It is decided and recorded like any agent's. A table on a
    terminal, one JSON object a row in a pipe. Exits with 1 when the statement is denied or fails; the reason is on standard
    error.
    """
    import trio

    from gatewayd.cli.agent import NoToolAnswer, call_tool
    from gatewayd.cli.progress import waiting

    arguments = {"sql": sys.stdin.read() if sql == "-" else sql, "intent": intent}
    if database is not None:
        arguments["database"] = database
    address = url or own_url(os.environ)

    async def ask() -> "ToolAnswer":
        async with waiting("waiting for the answer"):
            return await call_tool(address, AGENT, "query", arguments)

    try:
        answer = trio.run(ask)
    except NoToolAnswer as unanswered:
        remark(str(unanswered))
        sys.exit(FAILURE)
    except KeyboardInterrupt:
        remark("stopped")
        sys.exit(FAILURE)
    if answer.is_error:
        _fail(answer.text)
    _print(Output(as_json=as_json), msgspec.json.decode(answer.text, type=_Rows))


def own_url(environ: Mapping[str, str]) -> str:
    """The address at which a gatewayd with this environment can be reached from this machine."""
    host = environ.get("GATEWAY_HOST") or DEFAULTS["GATEWAY_HOST"] or ""
    if host.startswith("unix:"):
        raise click.UsageError("GATEWAY_HOST is a Unix socket, which this command does not speak to; name an address with --url")
    host = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    return f"http://{host}:{environ.get('PORT') or DEFAULTS['PORT']}/mcp"


def _print(output: Output, found: _Rows) -> None:
    if output.is_table:
        rows = [msgspec.json.decode(row, type=PrintedRow) for row in found.rows]
        names = dict.fromkeys(name for row in rows for name in row)
        numeric = {name for name in names if all(bytes(row[name])[:1] in b"-0123456789n" for row in rows if name in row)}
        columns = [TableColumn(visible(name), name, "right" if name in numeric else "left") for name in names]
        output.records(columns, [{name: _shown(value) for name, value in row.items()} for row in rows])
    else:
        for row in found.rows:
            click.echo(tame(bytes(row).decode()))
    many = "row" if found.rowCount == 1 else "rows"
    cut = ", cut at the policy's limits" if found.truncated else ""
    remark(f"{found.rowCount} {many}{cut}; audit id {found.auditId}")


def _shown(value: msgspec.Raw) -> str:
    """A value of a row as text, with every digit that PostgreSQL gave."""
    text = bytes(value).decode()
    return msgspec.json.decode(text, type=str) if text.startswith('"') else "" if text == "null" else text


def _fail(text: str) -> NoReturn:
    failure = msgspec.json.decode(text, type=_Failure)
    if isinstance(failure.error, dict):
        hint = f"; {failure.error['hint']}" if failure.error.get("hint") else ""
        said = f"failed ({failure.error.get('sqlstate')}): {failure.error.get('message')}{hint}"
    else:
        said = f"{failure.policy_rule or failure.status or failure.error or 'refused'}: {failure.reason or ''}"
    remark(said)
    if failure.auditId:
        remark(f"audit id {failure.auditId}; gatewayd audit show {failure.auditId}")
    sys.exit(FAILURE)
