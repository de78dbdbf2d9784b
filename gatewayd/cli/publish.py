"""`gatewayd publish`: a policy file checked and published by the control plane (docs/control-plane.md, Publish from CI)."""

import os
import sys
from pathlib import Path
from typing import Final

import click
import msgspec

from gatewayd.cli import options
from gatewayd.cli.audit.lines import one_line
from gatewayd.cli.output import Output, TableColumn, remark
from gatewayd.config.credentials import CredentialProblem, read_credential
from gatewayd.config.exit_codes import CONFIGURATION, FAILURE, UNAVAILABLE, WAITS

KEY: Final = "GATEWAY_API_KEY"
_TIMEOUT_S: Final = 60.0
_PROBLEM: Final = (
    TableColumn("Line", "line", "right"),
    TableColumn("Where", "path"),
    TableColumn("Problem", "message", wide=True),
)
_FLIP: Final = (
    TableColumn("change", "change"),
    TableColumn("calls", "calls", "right"),
    TableColumn("rule", "rule"),
    TableColumn("statement", "sql", wide=True),
    TableColumn("reason", "reason", wide=True),
    TableColumn("query", "query_id"),
)
_WAITING: Final = (TableColumn("Proposal", "proposal"), TableColumn("Where", "url", wide=True))
_PUBLISHED: Final = (TableColumn("Version", "version"), TableColumn("Bundle", "bundle"))


class _Problem(msgspec.Struct):
    line: int
    path: str
    message: str


class _Count(msgspec.Struct):
    change: str
    name: str
    calls: int


class _Statement(msgspec.Struct):
    change: str
    calls: int
    rule: str
    sql: str | None
    reason: str
    query_id: str


class _NotJudged(msgspec.Struct):
    database: str
    why: str
    calls: int


class _Flips(msgspec.Struct):
    calls: int
    looked_at: int
    now_denied: int
    now_allowed: int
    now_held: int
    by_rule: list[_Count]
    by_table: list[_Count]
    by_agent: list[_Count]
    statements: list[_Statement]
    not_judged: list[_NotJudged]


class _Checked(msgspec.Struct):
    problems: list[_Problem]
    flips: _Flips | None = None


class _Published(msgspec.Struct):
    version: int
    bundle: int


class _Waiting(msgspec.Struct):
    proposal: str
    url: str


class _Error(msgspec.Struct):
    error: str


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--control", required=True, metavar="URL", envvar="GATEWAY_CONTROL_URL", help="Address of the control plane.")
@click.option("--project", required=True, metavar="ID", help="The project's id.")
@click.option("--note", metavar="TEXT", help="Why it is published. Needed unless --check is given.")
@click.option("--based-on", type=int, metavar="VERSION", help="Publish only if this version is still the newest.")
@click.option("--check", "check_only", is_flag=True, help="Say what is wrong and what would flip; publish nothing.")
@options.as_json
def command(
    file: Path, control: str, project: str, note: str | None, based_on: int | None, check_only: bool, as_json: bool
) -> None:  # fmt: skip
    """Publish a policy file through the control plane.

    The policy has the shape with `databases:` and no `url`. The API key, with the scope project.policy, is read from the file
    that GATEWAY_API_KEY_FILE names, or from GATEWAY_API_KEY. Exits with 0 when it is published (or, with --check, can be), 1 when
    it is refused, 3 when it waits for a second person, 69 when the control plane does not answer, 78 without a key.
    """
    if note is None and not check_only:
        raise click.UsageError("--note is missing: say why the policy is published, or give --check")
    key = _key()
    text = file.read_text(encoding="utf-8")
    path = f"/api/v1/projects/{project}/" + ("check-policy" if check_only else "policies")
    rest: dict[str, object] = {"flips": True} if check_only else {"note": note, "based_on": based_on}
    body = {"policy": text, **rest}
    status, answer = _post(control.rstrip("/") + path, key, body)
    _say(Output(as_json=as_json), status, answer)


def _say(output: Output, status: int, answer: bytes) -> None:
    try:
        if status in (200, 422):
            checked = msgspec.json.decode(answer, type=_Checked)
            problems = checked.problems
            output.records(_PROBLEM, [msgspec.to_builtins(problem) for problem in problems])
            remark(f"{len(problems)} problem(s); nothing is published" if problems else "the policy can be published")
            if checked.flips is not None:
                _say_flips(output, checked.flips)
            sys.exit(FAILURE if problems else 0)
        if status == 201:
            published = msgspec.json.decode(answer, type=_Published)
            output.records(_PUBLISHED, [msgspec.to_builtins(published)])
            return
        if status == 202:
            waiting = msgspec.json.decode(answer, type=_Waiting)
            output.records(_WAITING, [msgspec.to_builtins(waiting)])
            remark("it waits for a second person, and nothing is published yet")
            sys.exit(WAITS)
        remark(f"refused with {status}: {msgspec.json.decode(answer, type=_Error).error}")
    except msgspec.DecodeError:
        remark(f"the answer with status {status} is not the control plane's; look at --control")
        sys.exit(UNAVAILABLE)
    sys.exit(UNAVAILABLE if status >= 500 else FAILURE)


def _say_flips(output: Output, flips: _Flips) -> None:
    for kind, counts in (("rule", flips.by_rule), ("table", flips.by_table), ("agent", flips.by_agent)):
        columns = (TableColumn("change", "change"), TableColumn("calls", "calls", "right"), TableColumn(kind, "name"))
        output.records(columns, [{"kind": kind, **msgspec.to_builtins(each)} for each in counts])
    output.records(
        _FLIP, [{"kind": "statement", **msgspec.to_builtins(each), "sql": one_line(each.sql or "")} for each in flips.statements]
    )
    remark(
        f"looked at {flips.looked_at} of {flips.calls} calls of the last week: {flips.now_denied} would be denied now, "
        f"{flips.now_allowed} allowed, {flips.now_held} held for approval"
    )
    for each in flips.not_judged:
        remark(f"{each.calls} calls{f' of {each.database}' if each.database else ''} could not be judged: {each.why}")


def _post(url: str, key: str, body: dict[str, object]) -> tuple[int, bytes]:
    import httpx

    try:
        with httpx.Client(timeout=_TIMEOUT_S, trust_env=False) as client:
            response = client.post(
                url, content=msgspec.json.encode(body),
                headers={"authorization": f"Bearer {key}", "content-type": "application/json"},
            )  # fmt: skip
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise click.UsageError(f"--control is no http:// or https:// address ({error})") from None
    except httpx.HTTPError as error:
        remark(f"the control plane does not answer ({type(error).__name__})")
        sys.exit(UNAVAILABLE)
    return response.status_code, response.content


def _key() -> str:
    try:
        key = read_credential(KEY, os.environ, lambda path: Path(path).read_bytes())
    except CredentialProblem as problem:
        remark(f"{KEY}: {problem}")
        sys.exit(CONFIGURATION)
    if not key:
        remark(f"{KEY} is unset; make a key with the scope project.policy in the console, and name its file with {KEY}_FILE")
        sys.exit(CONFIGURATION)
    return key
