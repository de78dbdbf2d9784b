"""Which tools an agent sees: depends on how many databases are served and on their policies (docs/http-api.md)."""

from collections.abc import Callable, Sequence

from gatewayd.corridor.gateway import Gateway
from gatewayd.mcp.dispatch import Tool
from gatewayd.mcp.tools.check_approval import check_approval_tool
from gatewayd.mcp.tools.describe_table import describe_table_tool
from gatewayd.mcp.tools.list_databases import list_databases_tool
from gatewayd.mcp.tools.list_tables import list_tables_tool
from gatewayd.mcp.tools.query import query_tool


def tools_of(gateway: Gateway) -> Callable[[], Sequence[Tool]]:
    """Gives the tools of this moment; made anew only when a reload changed the databases or their policies."""
    made: tuple[Tool, ...] = ()
    under: tuple[object, ...] = ()

    def tools() -> Sequence[Tool]:
        nonlocal made, under
        now = tuple(database.enforced for database in gateway.databases.values())
        if len(now) != len(under) or any(a is not b for a, b in zip(now, under, strict=True)):
            made, under = _make(gateway), now
        return made

    return tools


def _make(gateway: Gateway) -> tuple[Tool, ...]:
    tools = [query_tool(gateway), list_tables_tool(gateway), describe_table_tool(gateway)]
    if gateway.is_multi:
        tools.append(list_databases_tool(gateway))
    if gateway.approvals is not None:
        tools.append(check_approval_tool(gateway.approvals))
    return tuple(tools)
