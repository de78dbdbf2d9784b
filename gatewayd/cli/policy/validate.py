"""`gatewayd policy validate`: is it a policy at all? Every problem with its place, for editors and CI."""

import sys

import click

from gatewayd.cli import options
from gatewayd.cli.output import Output, TableColumn, remark
from gatewayd.cli.policyfile import entries, policy_text
from gatewayd.config.exit_codes import CONFIGURATION
from gatewayd.policy.file.load import PolicyErrors

_COLUMNS = (
    TableColumn("line", "line", "right"),
    TableColumn("where", "path"),
    TableColumn("what is wrong", "message", wide=True),
)


@click.command()
@options.policy_file
@options.as_json
def command(file: str | None, as_json: bool) -> None:
    """Say everything that is wrong with a policy file, and where.

    Needs neither a database nor the environment: variables of addresses, the mask salt and the approval gate are what `gatewayd
    check` asks for. Exits with 0 when the policy is valid, 78 when gatewayd would refuse it.
    """
    output = Output(as_json=as_json)
    text = policy_text(file)
    try:
        policies = text.policies()
    except PolicyErrors as errors:
        problems = [
            {"file": text.name, "line": each.line, "path": each.path, "message": each.message} for each in errors.problems
        ]
        output.records(_COLUMNS, problems)
        remark(f"{text.name}: {len(problems)} problem{'s' if len(problems) > 1 else ''}; gatewayd would refuse it")
        sys.exit(CONFIGURATION)
    count = len(entries(policies))
    remark(f"{text.name}: valid, for {count} database{'s' if count > 1 else ''}; next: gatewayd policy lint {text.name}")
