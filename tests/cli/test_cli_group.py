"""The command line itself: which commands there are, what wrong usage is told, what a start imports."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import gatewayd
from gatewayd.cli.audit import COMMANDS as AUDIT
from gatewayd.cli.control import COMMANDS as CONTROL
from gatewayd.cli.group import COMMANDS
from gatewayd.cli.link import COMMANDS as LINK
from gatewayd.cli.policy import COMMANDS as POLICY
from tests.cli.gatewayd_process import run

CLI = Path(gatewayd.__file__).parent / "cli"


def test_help_names_every_command() -> None:
    shown = run(["--help"])
    assert shown.returncode == 0
    words = " ".join(shown.stdout.split())
    assert all(name in words and text.split(".")[0].split("(")[0].strip() in words for name, text in COMMANDS.items())


@pytest.mark.parametrize(
    "words",
    [
        *COMMANDS,
        *(f"policy {name}" for name in POLICY),
        *(f"audit {name}" for name in AUDIT),
        *(f"control {name}" for name in CONTROL),
    ],
)
def test_each_command_explains_itself(words: str) -> None:
    shown = run([*words.split(), "--help"])
    assert shown.returncode == 0
    assert shown.stdout.startswith(f"Usage: gatewayd {words} ")


@pytest.mark.parametrize(("group", "commands"), [("policy", POLICY), ("audit", AUDIT), ("control", CONTROL)])
def test_a_group_alone_lists_its_commands(group: str, commands: dict[str, str]) -> None:
    shown = run([group])
    assert shown.returncode == 2
    assert all(name in shown.stdout + shown.stderr for name in commands)


def test_every_file_with_a_command_is_listed() -> None:
    groups = {"policy": POLICY, "audit": AUDIT, "control": CONTROL, "link": LINK}
    for folder, commands in ((CLI, COMMANDS), *((CLI / name, commands) for name, commands in groups.items())):
        written = {path.stem: path for path in folder.glob("*.py") if path.stem != "__init__"}
        written |= {path.parent.name: path for path in folder.glob("*/__init__.py")}
        names = {name for name, path in written.items() if "\ndef command(" in path.read_text(encoding="utf-8")}
        assert {name.replace("_", "-") for name in names} == set(commands)


def test_commands_of_readme_are_there() -> None:
    readme = (CLI.parents[1] / "docs" / "operations.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^## Command line\n(.*?)(?=^## )", readme, flags=re.MULTILINE | re.DOTALL)
    firsts = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = {words.split()[-1] for cell in firsts for words in re.findall(r"`([^`\[]+)[^`]*`", cell)}
    assert named == {*COMMANDS, *POLICY, *AUDIT, *CONTROL, *LINK} - {"policy", "audit", "control", "link"}
    lines = [shlex.split(line.split(" > ")[0]) for line in section.splitlines() if line.startswith("gatewayd ")]
    assert len(lines) > 8
    for line in lines:
        depth = 2 if line[1] in ("policy", "audit") else 1
        explained = run([*line[1 : 1 + depth], "--help"]).stdout
        assert all(word in explained for word in line if word.startswith("-")), line


def test_version() -> None:
    assert run(["--version"]).stdout == f"gatewayd {gatewayd.__version__}\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sreve"], "there is no command `sreve`; type: gatewayd serve"),
        (["xyzzy"], "there is no command `xyzzy`; type: gatewayd --help"),
        (["serve", "--stdoi"], "--stdio"),
        (["--stdoi"], "--stdio"),
        (["serve", "app"], "gatewayd serve --help"),
        (["check", "--conect"], "--connect"),
        (["demo", "--port", "70000"], "1<=x<=65535"),
        (["policy", "lnit"], "there is no command `lnit`; type: gatewayd policy lint"),
        (["audit", "xyzzy"], "type: gatewayd audit --help"),
        (["policy", "validate"], "type: gatewayd policy validate policy.yaml"),
        (["policy", "validate", "/nowhere/policy.yaml"], "cannot read `/nowhere/policy.yaml`"),
        (["policy", "test", "policy.yaml"], "type: gatewayd policy test policy.yaml --sql 'SELECT 1'"),
        (["policy", "test", "--sql", "SELECT 1", "--expect", "alow"], "did you mean allow?"),
        (["policy", "test", "--cases", "/nowhere", "--expect", "deny"], "--expect goes with --sql"),
        (["policy", "init"], "DATABASE_URL is unset; type: DATABASE_URL=postgresql://"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_says_what_to_type(words: list[str], told: str) -> None:
    shown = run(words)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert told in shown.stderr


@pytest.mark.parametrize("words", [[], ["serve"], ["--stdio"], ["serve", "--stdio"]], ids=" ".join)
def test_serving_is_what_it_does_alone(words: list[str]) -> None:
    shown = run(words, {"PORT": "no number"})
    assert (shown.returncode, shown.stdout) == (78, "")
    assert [line.split(":")[0] for line in shown.stderr.splitlines()] == ["DATABASE_URL", "PORT"]


def test_stdio_imports_nothing_it_does_not_use() -> None:
    program = (
        "import sys\n"
        "import gatewayd.__main__, gatewayd.cli.serve, gatewayd.config.settings, gatewayd.daemon, gatewayd.mcp.stdio\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))\n"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    unused = {"hypercorn", "quart", "quart_trio", "h11", "werkzeug", "jinja2", "prometheus_client", "httpx", "rich", "mcp"}
    assert not unused & set(shown.stdout.split())
