"""Tool `list_tables`: tables and views of one schema, in one database or in every one (docs/http-api.md)."""

from contextlib import ExitStack

import msgspec
import trio

from gatewayd.corridor.answer import Answer, Answered, Broken, NotServed, OnHold, Refused, Unaudited
from gatewayd.corridor.gateway import Database, Gateway
from gatewayd.corridor.pipeline import run
from gatewayd.mcp.dispatch import Tool, ToolCall, ToolResult
from gatewayd.mcp.tools.answers import invalid_arguments, result_of
from gatewayd.mcp.tools.arguments import InvalidArguments, decode, identifier, literal, named_database


class ListTablesArguments(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments of `list_tables`."""

    schema: str = "public"
    database: str | None = None


def list_tables_tool(gateway: Gateway) -> Tool:
    """The tool, with the databases served now."""
    properties: dict[str, object] = {
        "schema": {"type": "string", "default": "public", "minLength": 1, "description": "Schema whose tables and views to list."}
    }
    if gateway.is_multi:
        properties["database"] = {
            "type": "string",
            "enum": list(gateway.databases),
            "description": "Which database; left out: every one.",
        }

    async def call(call: ToolCall) -> ToolResult:
        try:
            arguments = decode(call.arguments, ListTablesArguments)
            sql = _sql(identifier(arguments.schema, "schema"))
            if gateway.is_multi and arguments.database is None:
                return await _everywhere(gateway, sql, call)
            database = named_database(gateway, arguments.database)
        except InvalidArguments as error:
            return invalid_arguments(str(error))
        return result_of(await run(gateway, database, "list_tables", sql, None, call.agent, call.caller), "tables")

    return Tool(
        name="list_tables",
        title="List tables and views",
        description="List the tables and views of a schema. The call is recorded.",
        input_schema={"type": "object", "properties": properties, "additionalProperties": False},
        annotations={"readOnlyHint": True, "openWorldHint": False},
        call=call,
    )


def _sql(schema: str) -> str:
    return (
        'SELECT table_schema AS "schema", table_name AS "name" FROM information_schema.tables '
        f"WHERE table_schema = {literal(schema)} ORDER BY table_name"
    )


async def _everywhere(gateway: Gateway, sql: str, call: ToolCall) -> ToolResult:
    """All databases at once; one that fails does not fail the call."""
    found: dict[str, str] = {}

    async def ask(database: Database) -> None:
        found[database.name] = _one(await run(gateway, database, "list_tables", sql, None, call.agent, call.caller))

    databases = tuple(gateway.databases.values())
    with ExitStack() as held:  # from here on, not from when each task begins: a reload may come between
        for database in databases:
            held.enter_context(database.in_use())
        async with trio.open_nursery() as nursery:
            for database in databases:
                nursery.start_soon(ask, database)
    parts = (f'"{database.name}":{found[database.name]}' for database in databases)  # names need no escape (decision 2)
    return ToolResult('{"databases":{' + ",".join(parts) + "}}")


def _one(answer: Answer) -> str:
    match answer:
        case Answered():
            return result_of(answer, "tables").text
        case Refused(denied):
            error = denied.reason
        case Broken(sqlstate=sqlstate, message=message):
            error = f"{message} (SQLSTATE {sqlstate})"
        case Unaudited(reason) | OnHold(reason) | NotServed(reason):
            error = reason
    return msgspec.json.encode({"allowed": False, "error": error}).decode()
