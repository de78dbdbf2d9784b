"""Tool `list_databases`: names and postures, from memory; only with two or more databases (docs/http-api.md)."""

import msgspec

from gatewayd.corridor.gateway import Gateway
from gatewayd.mcp.dispatch import Tool, ToolCall, ToolResult
from gatewayd.mcp.tools.answers import invalid_arguments
from gatewayd.mcp.tools.arguments import InvalidArguments, decode


class NoArguments(msgspec.Struct, forbid_unknown_fields=True):
    """`list_databases` has no arguments."""


def list_databases_tool(gateway: Gateway) -> Tool:
    """The tool; it exists only if several databases are served."""

    async def call(call: ToolCall) -> ToolResult:
        try:
            decode(call.arguments, NoArguments)
        except InvalidArguments as error:
            return invalid_arguments(str(error))
        content = [_one(name, gateway) for name in gateway.databases]
        return ToolResult(msgspec.json.encode({"databases": content}).decode())

    return Tool(
        name="list_databases",
        title="List databases",
        description="List the databases that can be asked, each with its default access and guardrails.",
        input_schema={"type": "object", "additionalProperties": False},
        annotations={"readOnlyHint": True, "openWorldHint": False},
        call=call,
    )


def _one(name: str, gateway: Gateway) -> dict[str, object]:
    policy = gateway.databases[name].enforced.policy
    return {
        "name": name,
        "table_access_default": policy.table_access.default,
        "guardrails_block_unqualified_dml": policy.guardrails.block_unqualified_dml,
        "guardrails_block_ddl": policy.guardrails.block_ddl,
        "guardrails_block_dml": policy.guardrails.block_dml,
    }
