"""How commands print (decision 14): tables and colours for people, JSON lines for programs, nothing that could control a
terminal. Findings go to stdout, remarks about them to stderr.

rich is imported only where stdout is a terminal. It honours NO_COLOR by itself.
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, final

import click
import msgspec

Record = Mapping[str, object]

# What JSON may hold raw and a terminal, or the eye, may be deceived by: C1 controls, marks that turn the direction of text,
# blanks without width. Escaped in JSON they mean the same.
_DECEIVING: Final = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
_CELL_CHARACTERS: Final = 2000  # rich would wrap a longer text over pages


class TableColumn(msgspec.Struct, frozen=True):
    """One column of a table: its title and the key of the record that fills it."""

    title: str
    key: str
    align: str = "left"
    wide: bool = False  # takes the room that is left, and wraps


@final
class Output:
    """Where a command's findings go. `is_table`: a person reads them on a terminal."""

    def __init__(self, *, as_json: bool) -> None:
        self.is_table = not as_json and sys.stdout.isatty()
        self._console: Any = None

    @property
    def console(self) -> Any:
        """rich's Console on stdout; for terminals only."""
        if self._console is None:
            from rich.console import Console

            self._console = Console(highlight=False, emoji=False, markup=False)
        return self._console

    def records(self, columns: Sequence[TableColumn], records: Iterable[Record], *, title: str = "") -> None:
        """A table with these columns, or a JSON line of the whole record for each."""
        if not self.is_table:
            for record in records:
                self.json(record)
            return
        from rich.table import Table
        from rich.text import Text

        table = Table(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
        for column in columns:
            justify: Any = column.align
            table.add_column(column.title, justify=justify, ratio=1 if column.wide else None, overflow="fold")
        for record in records:
            table.add_row(*(Text(cell(record.get(column.key)), style=style_of(record.get(column.key))) for column in columns))
        if table.row_count:
            self.console.print(table)

    def json(self, value: object) -> None:
        """One JSON object on a line of its own."""
        click.echo(json_line(value))

    def line(self, *parts: tuple[str, str]) -> None:
        """One line of texts with their styles, for terminals; longer than the terminal it is folded."""
        from rich.text import Text

        text = Text()
        for words, style in parts:
            text.append(words, style)
        self.console.print(text, soft_wrap=True)


def remark(text: str) -> None:
    """A sentence about the findings, for the person who started the command."""
    click.echo(visible(text), err=True)


def cell(value: object) -> str:
    """A value as one line of a table."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case str():
            return visible(value if len(value) <= _CELL_CHARACTERS else value[:_CELL_CHARACTERS] + "…")
        case list() | tuple():
            return ", ".join(cell(each) for each in value)
        case int() | float():
            return str(value)
        case dict():
            return "{" + ", ".join(f"{cell(key)}: {cell(inner)}" for key, inner in value.items()) + "}"
        case _:
            return visible(json_line(value))


def visible(text: str, *, lines: bool = False) -> str:
    """The text without anything that controls a terminal (trap 19): line ends (unless `lines` keeps them) and tabs become blanks,
    other invisible characters become escapes."""
    if text.isprintable():
        return text
    return "".join(_shown(character, lines=lines) for character in text.replace("\r\n", "\n"))


def _shown(character: str, *, lines: bool) -> str:
    if character.isprintable():
        return character
    if character == "\n" and lines:
        return "\n"
    return " " if character in "\n\t" else character.encode("unicode_escape").decode()


def json_line(value: object) -> str:
    """The JSON text of a value on one line, fit for a terminal too."""
    return tame(msgspec.json.encode(value).decode())


def tame(json_text: str) -> str:
    """The same JSON, with what could deceive a terminal or a reader as escapes. It stands in strings only, so nothing changes."""
    return _DECEIVING.sub(lambda found: f"\\u{ord(found[0]):04x}", json_text)


_STYLES: Final = {
    **dict.fromkeys(("OK", "allow", "ALLOW", "EXECUTED", "passed"), "green"),
    **dict.fromkeys(("WARN", "medium", "held", "now held", "now allowed"), "yellow"),
    **dict.fromkeys(("FAIL", "deny", "DENY", "FAILED", "high", "failed", "now denied"), "bold red"),
    **dict.fromkeys(("low", "SKIP"), "dim"),
}


def style_of(value: object) -> str:
    """The colour of a word that carries a verdict, none for any other."""
    return _STYLES.get(value, "") if isinstance(value, str) else ""
