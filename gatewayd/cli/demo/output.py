"""What both demos print alike: headings, where an agent connects, and what to ask it for."""

import json
from collections.abc import Sequence

import click

from gatewayd import __version__
from gatewayd.demo.shop import Demo

Asked = tuple[str, str]  # a statement, and what comes of it

STATEMENTS: Sequence[Asked] = (
    ("SELECT status, count(*) FROM orders GROUP BY status", "allowed: reading is"),
    ("SELECT name, email, tax_id FROM customers LIMIT 5", "allowed, with email and tax_id masked"),
    ("SELECT * FROM secrets", "refused: the policy denies the table"),
    ("DELETE FROM orders", "refused by a guardrail: orders may be written, but not all rows at once"),
)


def first_lines(demo: Demo) -> list[str]:
    """The first lines that both demos print."""
    return [f"gatewayd {__version__} serves a sample shop. Ctrl-C stops it; the data stays in {demo.folder}", ""]


def over_http(heading: str, url: str) -> list[str]:
    """For clients that connect to `url`."""
    return [
        title(heading),
        "  Claude Code, in a shell:",
        f"    claude mcp add --transport http shop {url}",
        "  Cursor, in ~/.cursor/mcp.json:",
        f"    {json.dumps({'mcpServers': {'shop': {'url': url}}})}",
    ]


def to_ask(statements: Sequence[Asked]) -> list[str]:
    """The lines that suggest statements to ask."""
    width = max(len(statement) for statement, _ in statements)
    return ["", title("Ask the agent to run"), *(f"  {statement:<{width}}   {outcome}" for statement, outcome in statements)]


def title(text: str) -> str:
    """A heading among what is printed."""
    return click.style(text, bold=True)
