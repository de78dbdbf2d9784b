"""Tool `query`: one SQL statement through the corridor (docs/http-api.md)."""

import msgspec

from gatewayd.corridor.gateway import Gateway
from gatewayd.corridor.hold import Client
from gatewayd.corridor.pipeline import run
from gatewayd.mcp.dispatch import Tool, ToolCall, ToolResult
from gatewayd.mcp.tools.answers import invalid_arguments, result_of
from gatewayd.mcp.tools.arguments import INTENT_CHARACTERS, InvalidArguments, clean_intent, decode, named_database
from gatewayd.policy.decide.guardrails import classes_held


class QueryArguments(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments of `query`."""

    sql: str
    intent: str
    database: str | None = None


def query_tool(gateway: Gateway) -> Tool:
    """The tool, with the databases served now."""
    properties: dict[str, object] = {
        "sql": {
            "type": "string",
            "minLength": 1,
            "description": "One PostgreSQL statement, at most 1 MiB, no placeholders.",
        },
        "intent": {
            "type": "string",
            "minLength": 1,
            "maxLength": INTENT_CHARACTERS,
            "description": "Why this statement runs, in one sentence. It is recorded.",
        },
    }
    required = ["sql", "intent"]
    if gateway.is_multi:
        properties["database"] = {"type": "string", "enum": list(gateway.databases), "description": "Which database to ask."}
        required.append("database")
    writes_blocked = all(database.enforced.policy.guardrails.block_dml for database in gateway.databases.values())

    async def call(call: ToolCall) -> ToolResult:
        try:
            arguments = decode(call.arguments, QueryArguments)
            intent = clean_intent(arguments.intent)
            database = named_database(gateway, arguments.database)
        except InvalidArguments as error:
            return invalid_arguments(str(error))
        client = Client(call.address, call.progress, call.place)
        answer = await run(gateway, database, "query", arguments.sql, intent, call.agent, call.caller, client)
        return result_of(answer, "rows", counted=True)

    return Tool(
        name="query",
        title="Run one SQL statement",
        description=_description(gateway),
        input_schema={"type": "object", "properties": properties, "required": required, "additionalProperties": False},
        annotations={
            "readOnlyHint": False,
            "destructiveHint": not writes_blocked,
            "idempotentHint": False,
            "openWorldHint": False,
        },
        call=call,
    )


def _description(gateway: Gateway) -> str:
    policies = [database.enforced.policy for database in gateway.databases.values()]
    granted = any(
        policy.table_access.default == "read_write" or "read_write" in policy.table_access.tables.values() for policy in policies
    )
    closed = any(policy.table_access.default == "deny" or "deny" in policy.table_access.tables.values() for policy in policies)
    parts = ["Run one PostgreSQL statement under the operator's policy."]
    parts.append("Writes are allowed on some tables only." if granted else "Reads are allowed; writes are not.")
    if closed:
        parts.append("Some tables may not be read.")
    parts.append("A refusal says why and names the rule. Every call is recorded with its `intent`.")
    if any(classes_held(policy.approvals) for policy in policies):
        parts.append("Some writes wait for a person's approval: they answer `awaiting_approval`, and check_approval says more.")
    parts.append('Results are cut at the policy\'s limits and then carry "truncated": true.')
    return " ".join(parts)
