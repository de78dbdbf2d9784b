"""Tool `describe_table`: the columns of one table or view (docs/http-api.md)."""

import msgspec

from gatewayd.corridor.answer import Answered
from gatewayd.corridor.gateway import Database, Gateway
from gatewayd.corridor.pipeline import run
from gatewayd.masking.rules.marks import kinds
from gatewayd.masking.rules.mask_rules import MaskRules
from gatewayd.mcp.dispatch import Tool, ToolCall, ToolResult
from gatewayd.mcp.tools.answers import invalid_arguments, result_of
from gatewayd.mcp.tools.arguments import InvalidArguments, decode, identifier, literal, named_database


class _Column(msgspec.Struct):
    name: str


_named = msgspec.json.Decoder(_Column).decode


class DescribeTableArguments(msgspec.Struct, forbid_unknown_fields=True):
    table: str
    schema: str = "public"
    database: str | None = None


def describe_table_tool(gateway: Gateway) -> Tool:
    properties: dict[str, object] = {
        "table": {"type": "string", "minLength": 1, "description": "Name of the table or view, as stored (no quotes)."},
        "schema": {"type": "string", "default": "public", "minLength": 1, "description": "Its schema."},
    }
    required = ["table"]
    if gateway.is_multi:
        properties["database"] = {"type": "string", "enum": list(gateway.databases), "description": "Which database to ask."}
        required.append("database")

    async def call(call: ToolCall) -> ToolResult:
        try:
            arguments = decode(call.arguments, DescribeTableArguments)
            sql = _sql(identifier(arguments.schema, "schema"), identifier(arguments.table, "table"))
            database = named_database(gateway, arguments.database)
        except InvalidArguments as error:
            return invalid_arguments(str(error))
        answer = await run(gateway, database, "describe_table", sql, None, call.agent, call.caller)
        if isinstance(answer, Answered) and database.enforced.policy.column_masks:
            answer = _told_masks(answer, database, arguments.schema, arguments.table)
        return result_of(answer, "columns")

    return Tool(
        name="describe_table",
        title="Describe a table",
        description="List a table's columns with type, nullability, default and mask, if any. The call is recorded.",
        input_schema={"type": "object", "properties": properties, "required": required, "additionalProperties": False},
        annotations={"readOnlyHint": True, "openWorldHint": False},
        call=call,
    )


def _told_masks(answer: Answered, database: Database, schema: str, table: str) -> Answered:
    """Each masked column says how: agents need not find out by refusals. One key more in the rows that PostgreSQL made."""
    relation = database.catalog.relation(schema, table)
    masks = kinds(database.catalog.worked_out(MaskRules, database.enforced.policy), relation) if relation is not None else {}
    if not masks:
        return answer
    rows = []
    for row in answer.result.rows:
        kind = masks.get(_named(row).name)
        rows.append(row if kind is None else b'%s,"masked":"%s"}' % (row[:-1], kind.encode()))
    return msgspec.structs.replace(answer, result=msgspec.structs.replace(answer.result, rows=tuple(rows)))


def _sql(schema: str, table: str) -> str:
    """information_schema alone, so that it works under every policy. It spells arrays and user-defined types as ARRAY and
    USER-DEFINED; udt_name has the type's own name."""
    return (
        "SELECT column_name AS name, "
        "CASE WHEN data_type = 'ARRAY' THEN substr(udt_name, 2) || '[]' "
        "WHEN data_type = 'USER-DEFINED' THEN "
        "CASE WHEN udt_schema IN ('public', 'pg_catalog') THEN udt_name ELSE udt_schema || '.' || udt_name END "
        "WHEN character_maximum_length IS NOT NULL THEN data_type || '(' || character_maximum_length || ')' "
        "WHEN data_type = 'numeric' AND numeric_precision IS NOT NULL THEN "
        "'numeric(' || numeric_precision || ',' || numeric_scale || ')' "
        "ELSE data_type END AS type, "
        "is_nullable = 'YES' AS nullable, column_default AS \"default\" FROM information_schema.columns "
        f"WHERE table_schema = {literal(schema)} AND table_name = {literal(table)} ORDER BY ordinal_position"
    )
