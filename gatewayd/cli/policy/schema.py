"""`gatewayd policy schema`: the JSON Schema that editors check and complete a policy file by."""

import click

from gatewayd.policy.file.json_schema import policy_schema_text


@click.command()
def command() -> None:
    """Print the JSON Schema of the policy file, for editors.

    Keep it beside the policy and name it in the policy's first line; the YAML extensions of VS Code, JetBrains, Vim and others
    read that:

    \b
      gatewayd policy schema > policy.schema.json
      # yaml-language-server: $schema=policy.schema.json
    """
    click.echo(policy_schema_text(), nl=False)
