"""Calls without a closing row: held ones, and those that a crash interrupted. Pure."""

from collections.abc import Sequence
from typing import Any, Final

_LISTED: Final = 3


class OpenChains:
    """Reads rows in order (columns in the specification's order) and keeps only the calls that are still open."""

    def __init__(self) -> None:
        self._undecided: dict[str, str] = {}
        self._unclosed: dict[str, str] = {}

    def take(self, columns: Sequence[Any]) -> None:
        """Reads the next row."""
        event, query_id = columns[9], columns[1]
        if event == "ATTEMPTED":
            self._undecided[query_id] = columns[0]
        elif event == "DECIDED":
            id_ = self._undecided.pop(query_id, columns[0])
            if '"decision":"ALLOW"' in columns[10]:
                self._unclosed[query_id] = id_
        elif event == "EXECUTED" or event == "FAILED":
            self._unclosed.pop(query_id, None)

    @property
    def undecided(self) -> int:
        return len(self._undecided)

    @property
    def unclosed(self) -> int:
        return len(self._unclosed)

    def lines(self) -> list[str]:
        """A sentence for each kind, with the ids of the first calls."""
        said: list[str] = []
        if self._undecided:
            named = ", ".join(list(self._undecided)[:_LISTED])
            said.append(f"{len(self._undecided)} calls have no DECIDED row: held, cancelled, or still running ({named} …)")
        if self._unclosed:
            named = ", ".join(list(self._unclosed)[:_LISTED])
            said.append(f"{len(self._unclosed)} allowed calls have no closing row: running, or cut off by a crash ({named} …)")
        return said
