"""Two versions of a policy's text, line by line: what went, what came, and a few lines around it. Pure."""

from difflib import SequenceMatcher
from typing import Final, Literal

import msgspec

_AROUND: Final = 3
_LINES: Final = 20_000


class DiffLine(msgspec.Struct, frozen=True):
    """`before` and `after` are line numbers from 1, 0 where the line is not there. `gap`: lines alike are left out here."""

    kind: Literal["same", "gone", "new", "gap"]
    before: int
    after: int
    text: str


def diff(before: str, after: str) -> list[DiffLine]:
    """Empty where nothing differs."""
    ours, theirs = before.splitlines()[:_LINES], after.splitlines()[:_LINES]
    found: list[DiffLine] = []
    for group in SequenceMatcher(None, ours, theirs, autojunk=len(ours) > 2000).get_grouped_opcodes(_AROUND):
        if found:
            found.append(DiffLine("gap", 0, 0, ""))
        for kind, start, end, other, other_end in group:
            if kind == "equal":
                found += [DiffLine("same", n + 1, other + n - start + 1, ours[n]) for n in range(start, end)]
                continue
            found += [DiffLine("gone", n + 1, 0, ours[n]) for n in range(start, end)]
            found += [DiffLine("new", 0, n + 1, theirs[n]) for n in range(other, other_end)]
    return found
