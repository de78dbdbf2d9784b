"""What the store may run: texts written down in the code, never composed at run time (docs/control-plane.md, Store).

Each statement is a constant of a module, so a test can collect all of them and hold them to the portable subset. Values travel as
parameters only. The one thing that changes in a text is the day in the name of an audit table.
"""

from datetime import date
from typing import Final, final


@final
class Statement:
    """One SQL statement. Write it as a constant at the top of a module, nowhere else."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text: Final = text

    def __repr__(self) -> str:
        return f"Statement({self.text!r})"


@final
class DayStatement:
    """A statement on the audit tables of one day: `{events}` and `{details}` stand for their names."""

    __slots__ = ("template",)

    def __init__(self, template: str) -> None:
        self.template: Final = template

    def on(self, day: date) -> Statement:
        return Statement(self.template.format(events=events_table(day), details=details_table(day)))


@final
class Copy:
    """Where rows are copied to with COPY: a table and its columns, a constant of a module like a statement."""

    __slots__ = ("columns", "table")

    def __init__(self, table: str, columns: tuple[str, ...]) -> None:
        self.table: Final = table
        self.columns: Final = columns

    def on(self, day: date) -> "Copy":
        """For `{events}` or `{details}` as the table."""
        return Copy(self.table.format(events=events_table(day), details=details_table(day)), self.columns)


def events_table(day: date) -> str:
    return f"audit_{day:%Y%m%d}"


def details_table(day: date) -> str:
    return f"audit_details_{day:%Y%m%d}"
