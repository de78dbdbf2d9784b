"""What holds for the tests themselves: they know the program by what it shows, and each other by files that are no tests."""

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent

REVIEWED_PRIVATE = {
    "os._exit": "the standard library's",
    "connect_utils._parse_connect_dsn_and_args": "asyncpg's own reading of an address; asyncpg is pinned exactly",
    "mcp_types._v2025_11_25": "the protocol's models, a module for each version",
    "mcp_types._v2026_07_28": "the protocol's models, a module for each version",
}
MAY_BE_PATCHED = {"os", "socket", "sys"}
"""The world around the program."""


@cache
def trees() -> dict[str, ast.Module]:
    """Every file of the tests, by its path."""
    return {str(path.relative_to(HERE)): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(HERE.rglob("*.py"))}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def own_names(tree: ast.Module) -> set[str]:
    """What a file itself keeps private: attributes that its classes set or define, and its functions."""
    own: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name("self" | "cls"), attribute):
                own.add(attribute)
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                own.add(name)
    return own


def private_reaches(tree: ast.Module) -> Iterator[str]:
    own = own_names(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(_, attribute) if is_private(attribute) and attribute not in own:
                yield ast.unparse(node)
            case ast.ImportFrom(str(module), names):
                yield from (f"{module}.{alias.name}" for alias in names if is_private(alias.name))


def of_the_program(tree: ast.Module) -> set[str]:
    """Names that a file imports from the program."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(str(module), names) if module.partition(".")[0] == "gatewayd":
                found |= {alias.asname or alias.name for alias in names}
    return found


def patches(tree: ast.Module) -> Iterator[str]:
    """What is replaced by `monkeypatch` or by an assignment to a module or class of the program."""
    program = of_the_program(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name("setattr") | ast.Attribute(attr="setattr"), [target, *_]):
                if ast.unparse(target) not in MAY_BE_PATCHED:
                    yield ast.unparse(target)
            case ast.Assign(targets=[ast.Attribute(ast.Name(name)) as target]) if name in program:
                yield ast.unparse(target)


def imported_tests(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(str(module)) if module.startswith("tests.") and "test_" in module.rpartition(".")[2]:
                yield module


def of_each_file(found: Callable[[ast.Module], Iterator[str]]) -> dict[str, set[str]]:
    """What was found where; files without anything are left out."""
    return {name: all_ for name, tree in trees().items() if (all_ := set(found(tree)))}


def test_nothing_private_of_others_is_used() -> None:
    found = of_each_file(lambda tree: (each for each in private_reaches(tree) if each not in REVIEWED_PRIVATE))
    assert found == {}


def test_what_a_test_needs_otherwise_is_handed_in_not_patched() -> None:
    assert of_each_file(patches) == {}


def test_what_several_tests_use_stands_in_no_test() -> None:
    assert of_each_file(imported_tests) == {}


def test_these_rules_see_what_they_forbid() -> None:
    tree = ast.parse(
        "from gatewayd.audit import file\nfile.LIMIT = 1\nmonkeypatch.setattr(file, 'LIMIT', 1)\naudit._queue.call()\n"
    )
    assert list(patches(tree)) == ["file.LIMIT", "file"]
    assert list(private_reaches(tree)) == ["audit._queue"]
