"""The program's modules as their files say: which there are, in which rooms and rows, and whom each imports."""

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "gatewayd"
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
# From the outside in. A room may import what stands in a later row; within a row, only its own room.
ROWS: list[list[str]] = [
    ["__main__"],
    ["cli"],
    ["control"],
    ["daemon", "demo"],
    ["operators"],
    ["mcp"],
    ["link"],
    ["notify"],
    ["corridor"],
    ["approvals", "postgres"],
    ["audit"],
    ["http"],
    ["fairness"],
    ["config", "process_memory"],
    ["mcp.messages", "link.formats"],
    ["keys"],
    ["durable_file"],
    ["judge"],
    ["shields"],
    ["masking"],
    ["policy"],
    ["sql"],
    ["catalog", "audit.events"],
]
EVERYBODY = {"gatewayd"}  # the version
SHELL_ONLY = "log"
CORE = ("judge", "sql", "policy", "shields", "masking", "catalog", "audit.events", "mcp.messages", "link.formats")


def room(module: str) -> str:
    """`gatewayd.sql.text.parse` -> `sql`; the core's own files inside the shell's folders are rooms of their own."""
    inner = module.removeprefix("gatewayd").lstrip(".")
    own_rooms = ("audit.events", "mcp.messages", "link.formats")
    return next((own for own in own_rooms if inner == own or inner.startswith(own + ".")), inner.split(".")[0])


def is_core(module: str) -> bool:
    return room(module) in CORE


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def imports(module: str, *, types_too: bool = True) -> list[tuple[str, int]]:
    """Every import in the file, also inside functions and, with `types_too`, TYPE_CHECKING: (full module name, line)."""
    found: list[tuple[str, int]] = []
    types = [node for node in ast.walk(parsed(module)) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    for_types = {inner for block in types for inner in ast.walk(block)}
    for node in ast.walk(parsed(module)):
        if node in for_types and not types_too:
            continue
        match node:
            case ast.Import(names):
                found += [(alias.name, node.lineno) for alias in names]
            case ast.ImportFrom(source, names, 0) if source:
                whole = [f"{source}.{alias.name}" for alias in names]
                found += [(name if name in MODULES else source, node.lineno) for name in whole]
            case ast.ImportFrom():
                pytest.fail(f"{module}:{node.lineno}: a relative import; write the whole name")
    return found
