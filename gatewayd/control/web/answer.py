"""What a handler gives back, free of the framework that carries it."""

from typing import Final

import msgspec

_JSON: Final = "application/json"


class Answer(msgspec.Struct, frozen=True):
    status: int
    body: bytes = b""
    content_type: str = "text/html; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()

    def with_header(self, name: str, value: str) -> "Answer":
        return msgspec.structs.replace(self, headers=(*self.headers, (name, value)))


class Refusal(Exception):
    """Ends a request: said as a page or as JSON, as its path has it."""

    def __init__(self, status: int, text: str, *, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(text)
        self.status: Final = status
        self.text: Final = text
        self.headers: Final = headers


class Redirect(Exception):
    """Ends a request: the browser goes to `path`, one of ours."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path: Final = path


def json(value: object, status: int = 200) -> Answer:
    return Answer(status, msgspec.json.encode(value), _JSON)


def to(path: str) -> Answer:
    """After a POST: the browser gets that page. `path` is one of ours, made here."""
    return Answer(303, headers=(("Location", path),))


def own_path(wanted: str | None, instead: str = "/") -> str:
    """`wanted` when it is a path of this console, so that a link here leads nowhere else."""
    if wanted is None or not wanted.startswith("/") or wanted.startswith(("//", "/\\")) or "\\" in wanted:
        return instead
    return wanted if wanted.isprintable() and wanted.isascii() and len(wanted) <= 2000 else instead
