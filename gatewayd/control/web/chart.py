"""A chart of calls over time as `ui.chart` draws it: counts to places in a box 100 high and one wide a column. Pure."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

_STEPS: Final = (1, 2, 3, 4, 5, 6, 8)
_LEAST: Final = 1.5
"""Of the height: one refusal among thousands is seen."""


class Calls(msgspec.Struct, frozen=True):
    """What one column counts. `label` stands below it, `when` names it in words, `link` leads to its calls."""

    label: str
    when: str
    calls: int = 0
    denied: int = 0
    failed: int = 0
    link: str = ""

    @property
    def answered(self) -> int:
        return max(0, self.calls - self.denied - self.failed)


class Part(msgspec.Struct, frozen=True):
    """`kind` is a class of console.css."""

    kind: Literal["denied", "failed", "calls"]
    y: str
    height: str


class Chart(msgspec.Struct, frozen=True):
    """`top` is what the whole height stands for. `parts` of each column, from below. `labels` are spread evenly below it."""

    columns: tuple[Calls, ...]
    parts: tuple[tuple[Part, ...], ...]
    top: int
    labels: tuple[str, ...]

    @property
    def calls(self) -> int:
        return sum(each.calls for each in self.columns)

    @property
    def denied(self) -> int:
        return sum(each.denied for each in self.columns)

    @property
    def failed(self) -> int:
        return sum(each.failed for each in self.columns)


def chart(columns: Sequence[Calls], labels: int = 5) -> Chart:
    """`columns` from left to right, at least one; about `labels` of their labels are shown, the first and the last among them."""
    top = _round_above(max(each.denied + each.failed + each.answered for each in columns))
    step = max(1, (len(columns) - 1) / max(1, labels - 1))
    shown = sorted({round(number * step) for number in range(labels) if round(number * step) < len(columns)})
    return Chart(
        tuple(columns), tuple(_parts(each, top) for each in columns), top, tuple(columns[place].label for place in shown)
    )  # fmt: skip


def _parts(column: Calls, top: int) -> tuple[Part, ...]:
    """What was denied stands at the bottom, so that it can be compared from column to column."""
    parts, below = [], 0.0
    counts: tuple[tuple[Literal["denied", "failed", "calls"], int], ...] = (
        ("denied", column.denied), ("failed", column.failed), ("calls", column.answered)
    )  # fmt: skip
    for kind, count in counts:
        if count:
            height = min(max(100 * count / top, _LEAST), 100 - below)
            parts.append(Part(kind, f"{100 - below - height:.2f}", f"{height:.2f}"))
            below += height
    return tuple(parts)


def _round_above(number: int) -> int:
    size = 1
    while True:
        for step in _STEPS:
            if step * size >= number:
                return step * size
        size *= 10
