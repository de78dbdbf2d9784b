"""`gatewayd manual`: manual pages, one a command, made from the same texts as `--help`.

The form is man(7)'s: https://man7.org/linux/man-pages/man7/man.7.html
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from gatewayd import __version__

_SECTION: Final = "1"
_EXIT_CODES: Final = (
    ("0", "done, or a clean stop"),
    ("1", "a denial, a finding or an unexpected failure"),
    ("2", "wrong command line"),
    ("69", "a needed service is unavailable"),
    ("78", "configuration or policy"),
)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.pass_context
def command(context: click.Context, folder: Path) -> None:
    """Write the manual pages into FOLDER.

    One page for gatewayd and one for each command, such as gatewayd-policy-test.1. Read one with `man ./gatewayd.1`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for words, page in pages(context.find_root().command):
        (folder / f"{'-'.join(words)}.{_SECTION}").write_text(page, encoding="utf-8")
        written += 1
    click.echo(f"{written} manual pages in {folder}", err=True)


def pages(program: click.Command) -> Iterator[tuple[list[str], str]]:
    """Each command of the tree, outermost first: its words (`["gatewayd", "policy", "test"]`) and its page."""
    todo: list[tuple[list[str], click.Command, click.Context | None]] = [(["gatewayd"], program, None)]
    while todo:
        words, current, parent = todo.pop(0)
        context = click.Context(current, info_name=words[-1], parent=parent)
        inner = []
        if isinstance(current, click.Group):
            for name in current.list_commands(context):
                found = current.get_command(context, name)
                if found is not None and not found.hidden:
                    inner.append((name, found))
        yield words, _page(words, current, context, inner)
        todo += [([*words, name], found, context) for name, found in inner]


def _page(words: list[str], current: click.Command, context: click.Context, inner: list[tuple[str, click.Command]]) -> str:
    name = "-".join(words)
    lines = [
        f'.TH "{name.upper()}" "{_SECTION}" "" "gatewayd {__version__}" "gatewayd manual"',
        ".SH NAME",
        rf"{_text(name)} \- {_text(current.get_short_help_str(limit=200))}",
        ".SH SYNOPSIS",
        rf"\fB{_text(' '.join(words))}\fR {_text(' '.join(current.collect_usage_pieces(context)))}",
        ".SH DESCRIPTION",
        *_paragraphs(current.help or ""),
    ]
    options = [record for parameter in current.get_params(context) if (record := parameter.get_help_record(context))]
    lines += _terms("OPTIONS", options)
    lines += _terms("COMMANDS", [(found, each.get_short_help_str(limit=200)) for found, each in inner])
    lines += _terms("EXIT STATUS", list(_EXIT_CODES))
    related = [words[:-1]] if len(words) > 1 else []
    related += [[*words, found] for found, _ in inner]
    if related:
        lines += [".SH SEE ALSO", ", ".join(rf"\fB{_text('-'.join(each))}\fR({_SECTION})" for each in related)]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> Iterator[str]:
    """click's help text: paragraphs are parted by empty lines; one that begins with `\\b` keeps its lines."""
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.replace("\r", "").strip())):
        if number:
            yield ".PP"
        lines = [line.rstrip() for line in paragraph.splitlines()]
        if lines and lines[0].strip() == "\b":
            yield from (".nf", *(_text(line) for line in lines[1:]), ".fi")
        else:
            yield _text(" ".join(line.strip() for line in lines))


def _terms(title: str, terms: list[tuple[str, str]]) -> list[str]:
    lines = [f".SH {title}"] if terms else []
    for term, meaning in terms:
        lines += [".TP", rf"\fB{_text(term)}\fR", _text(meaning)]
    return lines


def _text(text: str) -> str:
    """Plain text for roff: backslashes and dashes stay what they are, and no line can be taken for a request."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped
