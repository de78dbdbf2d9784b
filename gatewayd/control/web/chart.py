"""Charts of columns as the template draws them: counts to places in a box 100 high and one wide a column. Pure."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

Kind = Literal["calls", "failed", "denied"]
"""How a part is coloured; console.css has a rule for each."""

_STEPS: Final = (1, 2, 3, 4, 5, 6, 8)


class Column(msgspec.Struct, frozen=True):
    """`label` stands below it, `title` says it in words. `parts` from below: what, and how many."""

    label: str
    title: str
    parts: tuple[tuple[Kind, int], ...]

    @property
    def total(self) -> int:
        return sum(count for _, count in self.parts)


class Part(msgspec.Struct, frozen=True):
    kind: Kind
    y: str
    height: str


class DrawnColumn(msgspec.Struct, frozen=True):
    title: str
    parts: tuple[Part, ...]


class Chart(msgspec.Struct, frozen=True):
    """`top` is what the whole height stands for. `labels` are spread evenly below."""

    columns: tuple[DrawnColumn, ...]
    top: int
    labels: tuple[str, ...]


def chart(columns: Sequence[Column], labels: int = 5) -> Chart:
    """`columns` from left to right, at least one; about `labels` of their labels are shown, the first and the last among them."""
    top = _round_above(max(column.total for column in columns))
    step = max(1, (len(columns) - 1) / max(1, labels - 1))
    shown = sorted({round(number * step) for number in range(labels) if round(number * step) < len(columns)})
    return Chart(tuple(_drawn(column, top) for column in columns), top, tuple(columns[place].label for place in shown))


def _drawn(column: Column, top: int) -> DrawnColumn:
    parts, below = [], 0.0
    for kind, count in column.parts:
        height = 100 * count / top
        if count:
            height = max(height, 1.5)  # one refusal among thousands is seen
            parts.append(Part(kind, f"{max(0.0, 100 - below - height):.2f}", f"{height:.2f}"))
        below += height
    return DrawnColumn(column.title, tuple(parts))


def _round_above(number: int) -> int:
    size = 1
    while True:
        for step in _STEPS:
            if step * size >= number:
                return step * size
        size *= 10
