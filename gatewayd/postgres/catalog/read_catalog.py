"""Reads what a database contains into a Catalog (decision 12): one read-only snapshot, a fixed number of queries.

The rows are fetched here and put together by `catalog_rows.py`.
"""

from typing import Any

from gatewayd.catalog import FIRST_USER_OID, Catalog
from gatewayd.postgres.catalog import catalog_queries as queries
from gatewayd.postgres.catalog.catalog_queries import Rows
from gatewayd.postgres.catalog.catalog_rows import build
from gatewayd.postgres.driver.session import Connection
from gatewayd.postgres.execute.failure import FAILURES, failed
from gatewayd.postgres.pool import Pool


async def read_catalog(pool: Pool, revision: int) -> Catalog:
    """The catalog of the pool's database as it is now. Raises ExecutionFailed when the database does not answer.

    May be cancelled at any await; nothing is left behind on the server.
    """
    async with pool.connection() as connection:
        try:
            await connection.execute(queries.BEGIN)
        except FAILURES as error:
            raise failed(error) from error
        try:
            rows = await _fetch(connection)
        finally:
            await connection.rollback()
    return await build(rows, revision)


async def _fetch(by: Connection) -> Rows:
    (server,) = await by.fetch(queries.SERVER)
    connection = _Legible(by) if server["encoding"] == "SQL_ASCII" else by
    if connection is not by:
        await by.execute("SET LOCAL client_encoding = 'LATIN1'")
    relations = await connection.fetch(queries.RELATIONS)
    types = await connection.fetch(queries.TYPES)
    rules = await connection.fetch(queries.RULES)
    aggregates = await connection.fetch(queries.AGGREGATES)
    operators = await connection.fetch(queries.OPERATORS)
    checks = await connection.fetch(queries.CHECKS)
    casts = await connection.fetch(queries.CASTS)
    called = {row["function"] for row in (*operators, *casts)} | {row["oid"] for row in (*rules, *checks, *aggregates)}
    return Rows(
        server=server,
        relations=relations,
        inheritance=await connection.fetch(queries.INHERITANCE),
        constraints=await connection.fetch(queries.CONSTRAINTS),
        generated=await connection.fetch(queries.GENERATED),
        rules=rules,
        functions=await connection.fetch(queries.FUNCTIONS),
        aggregates=aggregates,
        operators=operators,
        types=types,
        row_types=await connection.fetch(queries.ROW_TYPES, _types_to_ask_for(relations, types)),
        checks=checks,
        casts=casts,
        builtins=await connection.fetch(queries.BUILTINS, sorted(oid for oid in called if oid < FIRST_USER_OID)),
        overloads=await connection.fetch(queries.OVERLOADS),
        operator_overloads=await connection.fetch(queries.OPERATOR_OVERLOADS),
        all_casts=await connection.fetch(queries.ALL_CASTS),
    )


class _Legible:
    """The rows of a database whose encoding is SQL_ASCII. It takes any bytes for a name, and where PostgreSQL makes a name out of
    others (of an index, an array type) it cuts in the middle of a character. A client that reads UTF-8 gets an error instead of
    all rows then. Every byte is a letter of LATIN1; what is no UTF-8 in it becomes `\\xe2`, which no statement can name."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def fetch(self, sql: str, *args: object) -> list[Any]:
        return [{key: _legible(value) for key, value in row.items()} for row in await self._connection.fetch(sql, *args)]


def _legible(value: Any) -> Any:
    if isinstance(value, list):
        return [_legible(each) for each in value]
    return value.encode("latin-1").decode(errors="backslashreplace") if isinstance(value, str) else value


def _types_to_ask_for(relations: list[Any], types: list[Any]) -> list[int]:
    """Row types of tables and their arrays are left out of TYPES, being so many; a few stand in columns all the same."""
    used: set[int] = set()
    for relation in relations:
        used.update(relation["types"] or ())
    return sorted(used.difference(row["oid"] for row in types))
