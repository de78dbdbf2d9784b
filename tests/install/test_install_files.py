"""What is shipped beside the code: the wheel, the registry entry, the desktop bundle, the container, manual pages, completion."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from gatewayd.cli.group import COMMANDS
from gatewayd.config.variables import VARIABLES
from tests.cli.gatewayd_process import run

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
INSTALL = ROOT / "conf" / "install"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "gatewayd", source / "gatewayd", ignore=shutil.ignore_patterns("__pycache__"))
    built = "from setuptools import build_meta as b; print(b.build_wheel('.'))"
    done = subprocess.run([sys.executable, "-c", built], cwd=source, capture_output=True, text=True, check=True)
    return source / done.stdout.splitlines()[-1]


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "gatewayd"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    with zipfile.ZipFile(wheel) as archive:
        missing = set(tracked) - set(archive.namelist())
    assert not missing


def test_the_wheel_runs_from_where_it_was_unpacked(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "gatewayd", "--version"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"gatewayd {PROJECT['version']}"


def test_the_registry_entry_is_of_this_version_and_of_known_variables() -> None:
    entry = json.loads((INSTALL / "server.json").read_text(encoding="utf-8"))
    (package,) = entry["packages"]
    assert (entry["version"], package["version"], package["identifier"]) == (PROJECT["version"], PROJECT["version"], "gatewayd")
    assert {each["name"] for each in package["environmentVariables"]} <= {variable.name for variable in VARIABLES}
    assert len(entry["description"]) <= 100  # the registry's limit


def test_the_desktop_bundle_is_of_this_version_and_of_known_variables() -> None:
    manifest = json.loads((INSTALL / "mcpb" / "manifest.json").read_text(encoding="utf-8"))
    bundled = tomllib.loads((INSTALL / "mcpb" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert manifest["version"] == bundled["version"] == PROJECT["version"]
    assert bundled["dependencies"] == [f"gatewayd=={PROJECT['version']}"]
    environment = manifest["server"]["mcp_config"]["env"]
    assert set(environment) <= {variable.name for variable in VARIABLES}
    named = {key for value in environment.values() for key in re.findall(r"\$\{user_config\.(\w+)\}", value)}
    assert named == set(manifest["user_config"])
    assert manifest["user_config"]["database_url"]["sensitive"] is True


def test_the_container_copies_what_is_there_and_keeps_secrets_out() -> None:
    text = (INSTALL / "Containerfile").read_text(encoding="utf-8")
    copied = [words for line in re.findall(r"^COPY (?!--from)(.*)", text, flags=re.MULTILINE) for words in line.split()[:-1]]
    assert copied
    assert all((ROOT / path).exists() for path in copied)
    assert not re.search(r"^(ENV|ARG).*(DATABASE_URL|TOKEN|SALT)", text, flags=re.MULTILINE)
    assert re.search(r"^USER (?!root|0)", text, flags=re.MULTILINE)


def test_each_command_has_a_manual_page(tmp_path: Path) -> None:
    assert run(["manual", str(tmp_path)]).returncode == 0
    pages = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert {f"gatewayd-{name}.1" for name in COMMANDS} < set(pages)
    for name, page in pages.items():
        assert page.startswith(".TH"), name
        requests = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
        assert requests <= {".TH", ".SH", ".PP", ".TP", ".nf", ".fi"}, name
    for found in re.findall(r"\\fB([\w\\-]+)\\fR\(1\)", "".join(pages.values())):
        assert found.replace("\\", "") + ".1" in pages


@pytest.mark.parametrize(("typed", "expected"), [("pol", "policy"), ("policy val", "validate"), ("serve --st", "--stdio")])
def test_a_shell_is_given_commands_and_options(typed: str, expected: str) -> None:
    words = {"COMP_WORDS": f"gatewayd {typed}", "COMP_CWORD": str(len(typed.split()))}
    environment = os.environ | words | {"_GATEWAYD_COMPLETE": "bash_complete"}
    done = subprocess.run([sys.executable, "-m", "gatewayd"], env=environment, capture_output=True, text=True, check=True)
    assert f"plain,{expected}" in done.stdout.splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_asks_the_program(shell: str) -> None:
    done = run(["completion", shell])
    assert done.returncode == 0
    assert f"_GATEWAYD_COMPLETE={shell}_complete" in done.stdout
