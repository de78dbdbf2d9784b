"""`gatewayd publish`: a policy file checked and published by the control plane (docs/control-plane.md, Publish from CI)."""

import os
import sys
from pathlib import Path
from typing import Final

import click
import msgspec

from gatewayd.cli import options
from gatewayd.cli.output import Output, TableColumn, remark
from gatewayd.config.credentials import CredentialProblem, read_credential
from gatewayd.config.exit_codes import CONFIGURATION, FAILURE, UNAVAILABLE

KEY: Final = "GATEWAY_API_KEY"
_TIMEOUT_S: Final = 60.0
_PROBLEM: Final = (
    TableColumn("Line", "line", "right"),
    TableColumn("Where", "path"),
    TableColumn("Problem", "message", wide=True),
)
_PUBLISHED: Final = (TableColumn("Version", "version"), TableColumn("Bundle", "bundle"))


class _Problem(msgspec.Struct):
    line: int
    path: str
    message: str


class _Checked(msgspec.Struct):
    problems: list[_Problem]


class _Published(msgspec.Struct):
    version: int
    bundle: int


class _Error(msgspec.Struct):
    error: str


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--control", required=True, metavar="URL", envvar="GATEWAY_CONTROL_URL", help="Address of the control plane.")
@click.option("--project", required=True, metavar="ID", help="The project's id.")
@click.option("--note", metavar="TEXT", help="Why it is published. Needed unless --check is given.")
@click.option("--based-on", type=int, metavar="VERSION", help="Publish only if this version is still the newest.")
@click.option("--check", "check_only", is_flag=True, help="Say what is wrong, and publish nothing.")
@options.as_json
def command(
    file: Path, control: str, project: str, note: str | None, based_on: int | None, check_only: bool, as_json: bool
) -> None:  # fmt: skip
    """Publish a policy file through the control plane.

    The policy has the shape with `databases:` and no `url`. The API key, with the scope project.policy, is read from the file
    that GATEWAY_API_KEY_FILE names, or from GATEWAY_API_KEY. Exits with 0 when it is published (or, with --check, can be), 1 when
    it is refused, 69 when the control plane does not answer, 78 without a key.
    """
    if note is None and not check_only:
        raise click.UsageError("--note is missing: say why the policy is published, or give --check")
    key = _key()
    text = file.read_text(encoding="utf-8")
    path = f"/api/v1/projects/{project}/" + ("check-policy" if check_only else "policies")
    body: dict[str, object] = {"policy": text} if check_only else {"policy": text, "note": note, "based_on": based_on}
    status, answer = _post(control.rstrip("/") + path, key, body)
    _say(Output(as_json=as_json), status, answer)


def _say(output: Output, status: int, answer: bytes) -> None:
    try:
        if status in (200, 422):
            problems = msgspec.json.decode(answer, type=_Checked).problems
            output.records(_PROBLEM, [msgspec.to_builtins(problem) for problem in problems])
            remark(f"{len(problems)} problem(s); nothing is published" if problems else "the policy can be published")
            sys.exit(FAILURE if problems else 0)
        if status == 201:
            published = msgspec.json.decode(answer, type=_Published)
            output.records(_PUBLISHED, [msgspec.to_builtins(published)])
            return
        remark(f"refused with {status}: {msgspec.json.decode(answer, type=_Error).error}")
    except msgspec.DecodeError:
        remark(f"the answer with status {status} is not the control plane's; look at --control")
        sys.exit(UNAVAILABLE)
    sys.exit(UNAVAILABLE if status >= 500 else FAILURE)


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
