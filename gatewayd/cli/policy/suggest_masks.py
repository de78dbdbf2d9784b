"""`gatewayd policy suggest-masks`: which columns look personal, and what mask would fit each."""

import click

from gatewayd.cli import options
from gatewayd.cli.output import Output, TableColumn, remark
from gatewayd.cli.policyfile import VARIABLE, DatabaseEntry, entries, policies_or_exit, policy_text
from gatewayd.policy.file.model import Policy
from gatewayd.policy.tools.draft import masks_text
from gatewayd.policy.tools.sensitive import Suspect, mask_json, suspects, unmasked

_COLUMNS = (
    TableColumn("table", "table"),
    TableColumn("column", "column"),
    TableColumn("type", "type"),
    TableColumn("mask", "mask"),
    TableColumn("because it is", "reason", wide=True),
)


@click.command()
@click.argument("file", required=False, metavar="[FILE]", envvar=VARIABLE)
@options.database
@click.option(
    "--url-from", metavar="VARIABLE", default="DATABASE_URL", show_default=True, help="The variable with the connection string."
)
@click.option("--yaml", "as_yaml", is_flag=True, help="Print a section `column_masks` to paste into the policy.")
@options.as_json
def command(file: str | None, database: str | None, url_from: str, as_yaml: bool, as_json: bool) -> None:
    """Propose column masks from the names and comments of a catalog.

    Reads names, types and comments, no data: a guess for a person to judge. With a policy FILE, what that denies or masks
    already is left out, and its databases are asked.
    """
    from gatewayd.cli.catalogs import database_url, inspect

    output = Output(as_json=as_json)
    if file:
        chosen = entries(policies_or_exit(policy_text(file), with_addresses=True), database)
        chosen = tuple(DatabaseEntry(entry.name, entry.policy, entry.url or database_url(url_from)) for entry in chosen)
    else:
        chosen = (DatabaseEntry(database or "the database", Policy(), database_url(url_from)),)
    count = 0
    for entry in chosen:
        inspected = inspect((entry,))[entry.name]
        found = unmasked(suspects(inspected.catalog, inspected.comments), entry.policy)
        count += len(found)
        title = f"database {entry.name}" if len(chosen) > 1 else ""
        if as_yaml:
            click.echo((f"# {title}\n" if title else "") + masks_text(found), nl=False)
        else:
            output.records(_COLUMNS, [_record(entry, each) for each in found], title=title)
    remark(f"{count} column{'' if count == 1 else 's'} without a mask look{'s' if count == 1 else ''} personal or secret")


def _record(entry: DatabaseEntry, each: Suspect) -> dict[str, object]:
    return {
        "database": entry.name,
        "table": f"{each.schema}.{each.table}",
        "column": each.column,
        "type": each.type,
        "mask": mask_json(each.mask),
        "reason": each.reason,
    }
