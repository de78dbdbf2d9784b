"""What code, tests and pages cite is in the repository: decisions and traps by number, pages and their sections, files."""

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.pictures import drawn

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")])
CODE = sorted([*(ROOT / "gatewayd").rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "tests" / "corpus").rglob("*.yaml")])
CITING = [*PAGES, *CODE]
DECISIONS = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")

_NUMBERS = r"\d+(?:\.\d+)?(?:(?:, | and | or | to )\d+(?:\.\d+)?\b(?! \d))*"
CITED_DECISIONS = re.compile(rf"\b[Dd]ecisions? ({_NUMBERS})")
CITED_TRAPS = re.compile(rf"\b[Tt]raps? ({_NUMBERS})")
CITED_PAGES = re.compile(r"\bdocs/[a-z0-9/_-]+\.(?:md|svg|py)")
CITED_SECTIONS = re.compile(r"\b(docs/[a-z-]+\.md), ([A-Z][A-Za-z ]+?| stdio|stdio)(?= and |[;,)]|\.(?:\s|$))")
LINKS = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
MODULE_NAMES = re.compile(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.(?:py|md|yaml|sql|sh|toml))`")
MADE_ELSEWHERE = {"policy.yaml", "cases.yaml"}  # an operator's own, in examples
SKIPPED = {".venv", ".git", "build", "dist", "node_modules", "__pycache__"}
GONE = re.compile(r"\bcontract \d|\.\./shared|\bspec:")


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def prose_of(path: Path) -> str:
    """Docstrings and comments of a module, everything of any other file."""
    text = text_of(path)
    if path.suffix != ".py":
        return text
    comments = [line[line.index("#") :] for line in text.splitlines() if re.search(r"(^|\s)#\s", line)]
    strings = [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) > 20
    ]
    return "\n".join([*comments, *strings])


def numbers(found: str) -> list[str]:
    """`3.2 to 3.5` names its two ends, which is enough to find them."""
    return re.findall(r"\d+(?:\.\d+)?", found)


def anchors(page: Path) -> set[str]:
    """The names under which a page's headings can be linked, as GitHub makes them."""
    headings = re.findall(r"^#{1,6} (.+)$", text_of(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


HEADINGS = set(re.findall(r"^#{2,3} (\d+(?:\.\d+)?)\.? ", DECISIONS, flags=re.MULTILINE))
TRAPS = set(re.findall(r"^\| (\d+) \|", DECISIONS, flags=re.MULTILINE))


def test_decisions_are_numbered_once() -> None:
    numbered = re.findall(r"^#{2,3} (\d+(?:\.\d+)?)\.? ", DECISIONS, flags=re.MULTILINE)
    assert len(numbered) == len(set(numbered)) > 20
    assert [int(trap) for trap in re.findall(r"^\| (\d+) \|", DECISIONS, flags=re.MULTILINE)] == list(range(1, len(TRAPS) + 1))


def of_each(paths: Iterable[Path], found: Callable[[Path], Iterator[str]]) -> dict[str, list[str]]:
    """What was found where; files without anything are left out."""
    return {str(path.relative_to(ROOT)): all_ for path in paths if (all_ := list(found(path)))}


def not_there(path: Path) -> Iterator[str]:
    """What it cites that is not in the repository."""
    text = prose_of(path)
    if path != Path(__file__):
        yield from GONE.findall(text)
    yield from (f"decision {found}" for found in CITED_DECISIONS.findall(text) if not set(numbers(found)) <= HEADINGS)
    yield from (f"trap {found}" for found in CITED_TRAPS.findall(text) if not set(numbers(found)) <= TRAPS)
    yield from (page for page in CITED_PAGES.findall(text) if not (ROOT / page).is_file())
    for page, section in CITED_SECTIONS.findall(text):
        if path.suffix == ".py" and (ROOT / page).is_file():
            wanted = section.strip().lower().replace(" ", "-")
            if not any(anchor.startswith(wanted) for anchor in anchors(ROOT / page)):  # `Load and fairness` is cut at `and`
                yield f"{page}, {section}"


def test_cited_decisions_traps_and_pages_are_there() -> None:
    assert of_each(CITING, not_there) == {}


def dead_links(path: Path) -> Iterator[str]:
    for link in LINKS.findall(re.sub(r"^```.*?^```$", "", text_of(path), flags=re.MULTILINE | re.DOTALL)):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


def test_links_lead_somewhere() -> None:
    assert of_each(PAGES, dead_links) == {}


@cache
def ends_of_paths() -> frozenset[str]:
    """Every file of the checkout but what tools make, by its path and by each end of it that begins with a whole name."""
    ends: set[str] = set()
    for folder, inner, files in os.walk(ROOT):
        inner[:] = [name for name in inner if name not in SKIPPED]
        for file in files:
            parts = (Path(folder) / file).relative_to(ROOT).parts
            ends |= {"/".join(parts[start:]) for start in range(len(parts))}
    return frozenset(ends)


def missing_files(path: Path) -> Iterator[str]:
    """Files that it names and that nothing is called like."""
    named = set(MODULE_NAMES.findall(prose_of(path))) - MADE_ELSEWHERE
    yield from (name for name in named if name not in ends_of_paths())


def test_files_that_are_named_exist() -> None:
    assert of_each([path for path in CITING if path.name != "CHANGELOG.md"], missing_files) == {}


ARCHITECTURE = ROOT / "docs" / "architecture.md"
WALK = re.findall(r"^\| \d+ \| `([^`]+)` \| `([^`]+)` \|", ARCHITECTURE.read_text(encoding="utf-8"), flags=re.MULTILINE)


def functions_of(path: Path) -> set[str]:
    """Functions of a module, and methods as `Class.method`."""
    found: set[str] = set()
    for node in ast.parse(text_of(path)).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
            found |= {f"{node.name}.{method}" for method in methods}
    return found


def test_the_walk_names_what_is_there() -> None:
    assert 15 <= len(WALK) <= 25
    for file, function in WALK:
        assert function in functions_of(ROOT / "gatewayd" / file), f"{file} has no {function}"


def test_every_room_is_on_the_map() -> None:
    named = set(re.findall(r"^\| `([a-z._]+)` \|", text_of(ARCHITECTURE), flags=re.MULTILINE))
    rooms = {path.name for path in (ROOT / "gatewayd").iterdir() if path.is_dir() and path.name not in ("__pycache__", "demo")}
    assert rooms | {"daemon.py", "catalog.py", "judge.py"} == named


def test_pictures_are_drawn_from_the_code_as_it_is() -> None:
    assert drawn(text_of(ARCHITECTURE)) == text_of(ARCHITECTURE), "run `make pictures`"
