"""What is wrong with a policy file: where, what was found, what is expected (decision 2). Never a secret."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

SHOWN: Final = 50
_CLOSE_CHARACTERS: Final = 64  # difflib is quadratic, and nobody mistypes a longer key

Path = tuple[str | int, ...]


class Problem(msgspec.Struct, frozen=True):
    """`path` is dotted (`databases[1].limits.max_rows`), "" for the whole file; `line` counts from 1, 0 where none applies."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        where = ", ".join(part for part in (f"line {self.line}" if self.line else "", self.path) if part)
        return f"{where}: {self.message}" if where else self.message


class PolicyErrors(Exception):
    """The policy is refused. `problems` in order of the text, at most SHOWN and one that counts the rest.

    `multiple` says whether the text has a `databases` key, for who must know the shape although the content is refused.
    """

    def __init__(self, problems: Iterable[Problem], *, multiple: bool = False) -> None:
        ordered = sorted(problems, key=lambda problem: problem.line)
        if len(ordered) > SHOWN:
            ordered = [*ordered[:SHOWN], Problem("", 0, f"and {len(ordered) - SHOWN} more problems")]
        self.problems: tuple[Problem, ...] = tuple(ordered)
        self.multiple = multiple
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


def dotted(path: Path) -> str:
    """The path as an operator would write it: `table_access.tables."app.*"`, `databases[0].url`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        plain = part.isascii() and part.replace("_", "a").replace("-", "a").isalnum()
        text += ("." if text else "") + (part if plain else quoted(part))
    return text


def quoted(text: str, characters: int = 60) -> str:
    """The text in double quotes on one line, control characters escaped, cut. What may be an address is not shown: by mistake a
    url, with its password, can stand in the place of a key or of another value."""
    if "@" in text or "postgres:" in text or "postgresql:" in text:
        return '"…"'
    shown = text if len(text) <= characters else text[:characters] + "…"
    inner = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown.replace("\\", "\\\\"))
    return '"' + inner.replace('"', '\\"') + '"'


def did_you_mean(found: str, known: Sequence[str]) -> str:
    """` (did you mean …?)` when one of `known` is close, else nothing."""
    if len(found) > _CLOSE_CHARACTERS:
        return ""
    spelt = {word.lower(): word for word in known}
    close = [
        *difflib.get_close_matches(found.lower().replace("-", "_"), spelt, n=1),
        *difflib.get_close_matches(found.lower(), spelt, n=1),
    ]
    return f" (did you mean {spelt[close[0]]}?)" if close else ""
