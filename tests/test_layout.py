"""What a newcomer relies on: files small enough to read, and one name for one thing."""

import ast
from collections import defaultdict
from pathlib import Path

from tests.modules import MODULES, parsed

TESTS = Path(__file__).parent

MOST_LINES = 400
REVIEWED_LISTS = {"gatewayd.sql.builtins.functions", "gatewayd.sql.builtins.objects"}
"""Data with a reason for each entry: read by looking up, not from the top."""
ENGINE = [module for module in MODULES if not module.startswith("gatewayd.control.")]
"""The control plane has a world of its own: it shares the core and the server with the engine, and neither knows the other."""

AGAIN_IN_EACH_ROOM = {
    "service": "what a room runs as one service",
    "gate": "the approval gate, and the gate of a linked gateway",
    "messages": "the messages of one protocol",
    "requests": "the requests of one protocol",
    "answers": "the answers of one protocol, or of the tools",
    "rows": "audit events as columns, and as the link sends them",
    "outcomes": "how a decision ends, and how an approved write ended",
    "guard": "what stands before the operators' routes, and what stands behind a statement",
}
"""Names of files that several rooms have, and what they mean in each. None is added without its line."""


def types_of(module: str) -> set[str]:
    """Public classes and aliases of types: names in CamelCase that the module itself gives."""
    names: set[str] = set()
    for node in parsed(module).body:
        match node:
            case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                names.add(name)
    return {name for name in names if name[0].isupper() and any(letter.islower() for letter in name)}


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_files_are_small_enough_to_read() -> None:
    sizes = {module: lines_of(path) for module, path in MODULES.items() if module not in REVIEWED_LISTS}
    assert {module: lines for module, lines in sizes.items() if lines > MOST_LINES} == {}


def test_what_only_soak_runs_is_listed() -> None:
    listed = (TESTS / "README.md").read_text(encoding="utf-8")
    marked = [
        path for path in TESTS.rglob("test_*.py") if "mark.soak" in path.read_text(encoding="utf-8") and path != Path(__file__)
    ]
    assert [str(path.relative_to(TESTS)) for path in marked if f"`{path.relative_to(TESTS)}`" not in listed] == []


def test_the_usual_file_is_read_in_minutes() -> None:
    sizes = sorted(size for size in (lines_of(path) for path in MODULES.values()) if size > 10)  # less is a package's face
    assert 60 <= sizes[len(sizes) // 2] <= 180


def test_no_two_public_types_share_a_name() -> None:
    makers: defaultdict[str, set[str]] = defaultdict(set)
    for module in ENGINE:
        for name in types_of(module):
            makers[name].add(module)
    assert {name: modules for name, modules in makers.items() if len(modules) > 1} == {}


def test_no_two_modules_share_a_name() -> None:
    """But a command of the command line, which is named as what it commands."""
    files: defaultdict[str, set[str]] = defaultdict(set)
    for module in ENGINE:
        name = MODULES[module].stem
        if name not in ("__init__", "__main__") and not module.startswith("gatewayd.cli."):
            files[name].add(module)
    assert {name: modules for name, modules in files.items() if len(modules) > 1 and name not in AGAIN_IN_EACH_ROOM} == {}
