"""How the columns of an answer are shown: under distinct names, and with post_exec's masks over them (decisions 6, 10)."""

from collections.abc import Sequence
from typing import Final

from gatewayd.catalog import Catalog
from gatewayd.masking.results.post_exec import PostExec
from gatewayd.postgres.driver.session import Connection
from gatewayd.postgres.execute import output_names as names
from gatewayd.postgres.execute.failure import FAILURES, failed
from gatewayd.postgres.execute.result import UNMASKABLE, ExecutionFailed
from gatewayd.postgres.execute.wrap import AS_THEY_ARE, Shown, as_written
from gatewayd.sql.facts.statement import Statement

_SYSTEM: Final = ("pg_catalog", "information_schema")


async def shown(
    connection: Connection,
    statement: Statement,
    catalog: Catalog,
    masking: PostExec | None = None,
    *,
    in_transaction: bool = False,
) -> Shown:
    """Raises ExecutionFailed: UNMASKABLE where the columns are not those that the masks were found for."""
    if masking is None or not masking.masked:
        if names.is_surely_distinct(statement):
            return AS_THEY_ARE
        new = names.distinct(await _output_names(connection, statement, catalog, in_transaction=in_transaction))
        return AS_THEY_ARE if new is None else Shown(new)
    own = await _output_names(connection, statement, catalog, in_transaction=in_transaction)
    if not masking.is_proved_for(own):
        raise ExecutionFailed(UNMASKABLE, "the columns of this statement have changed, so they could not be masked; ask again")
    new = names.distinct(own)
    return Shown(new, masking.select_list(new or own), masking.values(new or own))


def reads_catalog_alone(statement: Statement, catalog: Catalog) -> bool:
    """Whether all relations of the statement are PostgreSQL's own. Under a limit on rows the planner takes nested loops over
    them, as if the first rows were all that is wanted; joins of ten catalogs then take ten times as long."""
    return bool(statement.relations) and all(
        use.schema in _SYSTEM or (use.schema is None and catalog.relation("pg_catalog", use.name) is not None)
        for use in statement.relations
    )


async def _output_names(connection: Connection, statement: Statement, catalog: Catalog, *, in_transaction: bool) -> Sequence[str]:
    """Asks the server only where nobody else can tell."""
    found = names.output_names(statement, catalog)
    if found is not None:
        return found
    sent = as_written(statement)
    begins = connection.pins_locally and not in_transaction
    try:
        if begins:
            await connection.begin("READ ONLY")
        described = await connection.describe(sent.text)
        if begins:
            await connection.execute("COMMIT")
    except FAILURES as error:
        await connection.rollback()
        raise failed(error, sent.position) from error
    return described
