"""`gatewayd link status`: whom this gateway belongs to, and what it enforces, from its state folder."""

import click
import msgspec

from gatewayd.cli.link.kept_link import here, read_link


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(as_json: bool) -> None:
    """Show whom this gateway belongs to, and the bundle it would start with.

    Read from the state folder, beside a running gatewayd. How things stand now: GET /readyz.
    """
    _, link = read_link(here())
    bundle = link.bundle
    fields: dict[str, object] = {
        "gateway": link.enrolled.gateway,
        "project": link.enrolled.project,
        "issuer": link.enrolled.issuer,
        "control": link.enrolled.control_url,
        "identity": link.enrolled.identity,
        "trust": link.trust.version,
        "highest_version_seen": link.seen.version,
        "bundle": bundle.version if bundle is not None else None,
        "state": bundle.state if bundle is not None else link.problem,
        "confirmed_s_ago": link.fresh_s,
    }
    if as_json:
        click.echo(msgspec.json.encode(fields).decode())
        return
    width = max(map(len, fields))
    for name, value in fields.items():
        click.echo(f"{name.ljust(width)}  {'-' if value is None else value}")
