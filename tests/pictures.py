"""The pictures in docs/architecture.md, drawn from the code (`make pictures`). Mermaid, between marks."""

import re
from pathlib import Path
from typing import Final

from gatewayd.http.connection_state import TABLE
from tests.modules import CORE, EVERYBODY, MODULES, ROWS, SHELL_ONLY, imports, room

PAGE: Final = Path(__file__).parents[1] / "docs" / "architecture.md"


def arrows() -> set[tuple[str, str]]:
    """Which room imports which, the version and the log left out."""
    found: set[tuple[str, str]] = set()
    for module in MODULES:
        own = room(module)
        for name, _ in imports(module):
            other = room(name)
            if name.startswith("gatewayd") and name not in EVERYBODY and other != own and SHELL_ONLY not in (own, other):
                found.add((own, other))
    return {(own, other) for own, other in found if own}


def reduced(all_: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Without the arrows that follow from others."""
    after: dict[str, set[str]] = {}
    for own, other in all_:
        after.setdefault(own, set()).add(other)

    def reaches(start: str, end: str) -> bool:
        return any(step == end or reaches(step, end) for step in after.get(start, ()))

    return {(own, other) for own, other in all_ if not any(reaches(step, other) for step in after[own] - {other})}


def rooms() -> str:
    kept = reduced(arrows())
    order = [name for row in ROWS for name in row]
    shown = [name for name in order if any(name in arrow for arrow in kept)]
    boxes = [f'  {node(name)}["{name}"]{":::core" if name in CORE else ""}' for name in shown]
    ranked = sorted(kept, key=lambda arrow: (order.index(arrow[0]), order.index(arrow[1])))
    lines = ["flowchart TB", *boxes, *(f"  {node(own)} --> {node(other)}" for own, other in ranked)]
    return "\n".join([*lines, "  classDef core fill:#e8f0e0,stroke:#6a8"])


def node(name: str) -> str:
    return name.replace(".", "_").strip("_")


def states() -> str:
    lines = ["stateDiagram-v2", "  [*] --> idle"]
    lines += [f"  {state} --> {follows}: {step}" for state, steps in TABLE.items() for step, follows in steps.items()]
    return "\n".join([*lines, "  closing --> [*]"])


def drawn(page: str) -> str:
    """The page with its pictures as the code is now."""
    for mark, picture in (("rooms", rooms()), ("states", states())):
        block = f"<!-- {mark} -->\n```mermaid\n{picture}\n```\n<!-- /{mark} -->"
        page = re.sub(rf"<!-- {mark} -->.*?<!-- /{mark} -->", block, page, flags=re.DOTALL)
    return page


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
