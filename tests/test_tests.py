"""What holds for the tests themselves: they know the program by what it shows, and each other by files that are no tests."""

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent

Nodes = Sequence[ast.AST]
"""Everything in a file's syntax tree."""

REVIEWED_PRIVATE = {
    "os._exit": "the standard library's",
    "connect_utils._parse_connect_dsn_and_args": "asyncpg's own reading of an address; asyncpg is pinned exactly",
    "mcp_types._v2025_11_25": "the protocol's models, a module for each version",
    "mcp_types._v2026_07_28": "the protocol's models, a module for each version",
    "restoring._move": "a restore is killed between two of its steps, where nothing can be handed in",
}
MAY_BE_PATCHED = {"os", "socket", "sys", "restoring"}
"""The world around the program; and the steps of a restore, as above."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def own_names(nodes: Nodes) -> set[str]:
    """What a file itself keeps private: attributes that its classes set or define, and its functions."""
    own: set[str] = set()
    for node in nodes:
        match node:
            case ast.Attribute(ast.Name("self" | "cls"), attribute):
                own.add(attribute)
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                own.add(name)
    return own


def private_reaches(nodes: Nodes) -> Iterator[str]:
    own = own_names(nodes)
    for node in nodes:
        match node:
            case ast.Attribute(_, attribute) if is_private(attribute) and attribute not in own:
                yield ast.unparse(node)
            case ast.ImportFrom(str(module), names):
                yield from (f"{module}.{alias.name}" for alias in names if is_private(alias.name))


def of_the_program(nodes: Nodes) -> set[str]:
    """Names that a file imports from the program."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.ImportFrom(str(module), names) if module.partition(".")[0] == "gatewayd":
                found |= {alias.asname or alias.name for alias in names}
    return found


def patches(nodes: Nodes) -> Iterator[str]:
    """What is replaced by `monkeypatch` or by an assignment to a module or class of the program."""
    program = of_the_program(nodes)
    for node in nodes:
        match node:
            case ast.Call(ast.Name("setattr") | ast.Attribute(attr="setattr"), [target, *_]):
                if ast.unparse(target) not in MAY_BE_PATCHED:
                    yield ast.unparse(target)
            case ast.Assign(targets=[ast.Attribute(ast.Name(name)) as target]) if name in program:
                yield ast.unparse(target)


def imported_tests(nodes: Nodes) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.ImportFrom(str(module)) if module.startswith("tests.") and "test_" in module.rpartition(".")[2]:
                yield module


@cache
def faults() -> dict[str, tuple[set[str], set[str], set[str]]]:
    """Of each file: what it reaches for, what it patches, which tests it imports."""
    found: dict[str, tuple[set[str], set[str], set[str]]] = {}
    for path in sorted(HERE.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        reached = set(private_reaches(nodes)) - REVIEWED_PRIVATE.keys()
        found[str(path.relative_to(HERE))] = reached, set(patches(nodes)), set(imported_tests(nodes))
    return found


def test_nothing_private_of_others_is_used() -> None:
    assert {name: reached for name, (reached, _, _) in faults().items() if reached} == {}


def test_what_a_test_needs_otherwise_is_handed_in_not_patched() -> None:
    assert {name: patched for name, (_, patched, _) in faults().items() if patched} == {}


def test_what_several_tests_use_stands_in_no_test() -> None:
    assert {name: tests for name, (_, _, tests) in faults().items() if tests} == {}


def test_these_rules_see_what_they_forbid() -> None:
    text = "from gatewayd.audit import file\nfile.LIMIT = 1\nmonkeypatch.setattr(file, 'LIMIT', 1)\naudit._queue.call()\n"
    nodes = list(ast.walk(ast.parse(text)))
    assert set(patches(nodes)) == {"file.LIMIT", "file"}
    assert list(private_reaches(nodes)) == ["audit._queue"]
