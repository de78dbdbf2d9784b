"""Who may know whom: arrows point one way, the core is pure, and the two values that stand for safety have one maker each."""

import ast
from collections.abc import Iterator

import pytest

from tests.modules import CORE, EVERYBODY, MODULES, ROWS, SHELL_ONLY, imports, is_core, parsed, room

LEVEL = {room: level for level, row in enumerate(ROWS) for room in row}
# What the control plane may use beside the core: never the corridor or the daemon, which are the engine.
CONTROL_MAY_USE = (
    "gatewayd.control", "gatewayd.log", "gatewayd.config", "gatewayd.http", "gatewayd.keys", "gatewayd.process_memory",
    "gatewayd.durable_file",
    "gatewayd.audit.ids", "gatewayd.audit.tree", "gatewayd.audit.leaf", "gatewayd.audit.heads", "gatewayd.audit.rows",
    "gatewayd.notify.systemd", "gatewayd.postgres.driver",
    "gatewayd.postgres.embedded", "gatewayd.approvals.messages", "gatewayd.approvals.rules", "gatewayd.link.formats",
    "gatewayd.judge", "gatewayd.policy", "gatewayd.sql", "gatewayd.masking", "gatewayd.shields", "gatewayd.catalog",
)  # fmt: skip
IMPURE = {
    "asyncio", "asyncpg", "hypercorn", "os", "pathlib", "quart", "quart_trio", "random", "secrets", "select", "signal", "socket",
    "sqlite3", "subprocess", "tempfile", "threading", "time", "trio", "trio_asyncio", "uuid",
}  # fmt: skip
CLOCKS = {"now", "utcnow", "today"}
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc"}


def calls(module: str) -> Iterator[tuple[str, int]]:
    """Names that are called: `Allowed(…)` and `decision.Allowed(…)` both give `Allowed`."""
    for node in ast.walk(parsed(module)):
        match node:
            case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name)):
                yield name, node.lineno


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_one_way(module: str) -> None:
    own = room(module)
    if module in EVERYBODY or own == SHELL_ONLY:
        assert not [name for name, _ in imports(module) if name.startswith("gatewayd.")]
        return
    assert own in LEVEL, f"`{own}` has no place in ROWS yet: say where it stands"
    for name, line in imports(module):
        if not name.startswith("gatewayd") or name in EVERYBODY:
            continue
        other = room(name)
        if other == SHELL_ONLY:
            assert not is_core(module), f"{module}:{line} logs; the core does not"
        elif other != own:
            assert LEVEL[other] > LEVEL[own], f"{module}:{line} imports {name}: `{own}` may not know `{other}`"


@pytest.mark.parametrize("module", MODULES)
def test_no_two_modules_need_each_other(module: str) -> None:
    seen: set[str] = set()
    todo = [module]
    while todo:
        for name, _ in imports(todo.pop(), types_too=False):
            assert name != module, f"{module} is imported by what it imports"
            if name in MODULES and name not in seen:
                seen.add(name)
                todo.append(name)


@pytest.mark.parametrize("module", [module for module in MODULES if is_core(module)])
def test_core_is_pure(module: str) -> None:
    for name, line in imports(module):
        assert name.split(".")[0] not in IMPURE, f"{module}:{line} imports {name}"
    for name, line in calls(module):
        assert name not in CLOCKS | {"open"}, f"{module}:{line} calls {name}()"


@pytest.mark.parametrize(
    ("value", "maker"),
    [("Allowed", "gatewayd.policy.decide.decision"), ("Permit", "gatewayd.audit.service")],
    ids=["Allowed", "Permit"],
)
def test_one_maker(value: str, maker: str) -> None:
    makers = {module for module in MODULES for name, _ in calls(module) if name == value}
    assert makers == {maker}


def test_the_corridor_does_not_know_who_is_notified() -> None:
    knowing = {room(module) for module in MODULES for name, _ in imports(module) if room(name) == "notify"} - {"notify"}
    assert knowing <= {"daemon", "operators", "control"}  # operators: /metrics shows how the senders fare; control: sd_notify


@pytest.mark.parametrize("module", [module for module in MODULES if room(module) == "control"])
def test_the_control_plane_reuses_the_core_and_not_the_engine(module: str) -> None:
    for name, line in imports(module):
        if name.startswith("gatewayd.") and name not in EVERYBODY and room(name) not in CORE:
            known = any(name == each or name.startswith(f"{each}.") for each in CONTROL_MAY_USE)
            assert known, f"{module}:{line} imports {name}: the control plane may not"


def test_only_the_command_line_knows_the_control_plane() -> None:
    knowing = {room(module) for module in MODULES for name, _ in imports(module) if room(name) == "control"} - {"control"}
    assert knowing <= {"cli"}


@pytest.mark.parametrize("module", MODULES)
def test_names_say_what_is_inside(module: str) -> None:
    assert not NAMES_THAT_SAY_NOTHING & set(module.split("."))


@pytest.mark.parametrize("module", MODULES)
def test_modules_say_what_they_own(module: str) -> None:
    assert ast.get_docstring(parsed(module)) or not parsed(module).body
