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
    "gatewayd.audit.proof_form", "gatewayd.notify.systemd", "gatewayd.postgres.driver",
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


def wrong_ways(module: str) -> Iterator[str]:
    """Imports of a module that ROWS does not allow."""
    own = room(module)
    if module in EVERYBODY or own == SHELL_ONLY:
        yield from (f"{module}:{line} imports {name}" for name, line in imports(module) if name.startswith("gatewayd."))
        return
    if own not in LEVEL:
        yield f"`{own}` has no place in ROWS yet: say where it stands"
        return
    for name, line in imports(module):
        if not name.startswith("gatewayd") or name in EVERYBODY:
            continue
        other = room(name)
        if other == SHELL_ONLY:
            if is_core(module):
                yield f"{module}:{line} logs; the core does not"
        elif other != own and LEVEL[other] <= LEVEL[own]:
            yield f"{module}:{line} imports {name}: `{own}` may not know `{other}`"


def test_imports_point_one_way() -> None:
    assert [fault for module in MODULES for fault in wrong_ways(module)] == []


def test_no_two_modules_need_each_other() -> None:
    """Those that nothing left needs are taken away until none is left: what stays is a circle, and what leads to it."""
    left = {
        module: {name for name, _ in imports(module, types_too=False) if name in MODULES} for module in MODULES
    }  # whom each needs
    while done := {module for module, needed in left.items() if not needed & left.keys()}:
        for module in done:
            del left[module]
    assert sorted(left) == []


def test_core_is_pure() -> None:
    core = [module for module in MODULES if is_core(module)]
    assert core
    impure = [
        f"{module}:{line} imports {name}" for module in core for name, line in imports(module) if name.split(".")[0] in IMPURE
    ]
    called = [f"{module}:{line} calls {name}()" for module in core for name, line in calls(module) if name in CLOCKS | {"open"}]
    assert impure + called == []


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


def test_the_control_plane_reuses_the_core_and_not_the_engine() -> None:
    def may_be_used(name: str) -> bool:
        if not name.startswith("gatewayd.") or name in EVERYBODY or room(name) in CORE:
            return True
        return any(name == each or name.startswith(f"{each}.") for each in CONTROL_MAY_USE)

    control = [module for module in MODULES if room(module) == "control"]
    assert control
    assert [f"{module}:{line} {name}" for module in control for name, line in imports(module) if not may_be_used(name)] == []


def test_only_the_command_line_knows_the_control_plane() -> None:
    knowing = {room(module) for module in MODULES for name, _ in imports(module) if room(name) == "control"} - {"control"}
    assert knowing <= {"cli"}


def test_names_say_what_is_inside() -> None:
    assert [module for module in MODULES if NAMES_THAT_SAY_NOTHING & set(module.split("."))] == []


def test_modules_say_what_they_own() -> None:
    assert [module for module in MODULES if parsed(module).body and not ast.get_docstring(parsed(module))] == []
