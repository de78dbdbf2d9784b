"""Secrets: the type that hides them, and where they are read (decision 1): credential file, NAME_FILE, NAME.

A secret never appears in a repr, a log, an error or argv. Problems name the variable or the file that was looked at.
"""

import hmac
from collections.abc import Callable, Mapping
from typing import Final, final

ReadFile = Callable[[str], bytes]

HIDDEN: Final = "Secret(…)"


@final
class Secret:
    """A text that only `reveal()` shows. Equal to a Secret of the same text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> str:
        raise TypeError("a Secret is not pickled")


class CredentialProblem(Exception):
    """A secret is named and cannot be read; the text is `what is wrong; what is expected`."""


def read_credential(name: str, environ: Mapping[str, str], read_file: ReadFile) -> str | None:
    """The secret's text, or None if it is not set. An empty text is returned: the caller decides whether that is an error.

    A file loses one newline at its end, as editors and `systemd-creds` leave it.
    """
    folder = environ.get("CREDENTIALS_DIRECTORY")
    if folder:
        credential = name.lower().replace("_", "-")
        try:
            return _text(read_file(f"{folder}/{credential}"), f"the credential {credential}")
        except FileNotFoundError:
            pass
        except OSError as error:
            raise CredentialProblem(
                f"cannot read the credential {credential} ({error.strerror}); expected a readable file"
            ) from None
    path = environ.get(f"{name}_FILE")
    if path:
        try:
            return _text(read_file(path), f"the file of {name}_FILE")
        except OSError as error:
            raise CredentialProblem(f"cannot read the file of {name}_FILE ({error.strerror}); expected a readable file") from None
    return environ.get(name)


def _text(data: bytes, source: str) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise CredentialProblem(f"{source} is not UTF-8; expected text") from None
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text


class Variables:
    """The variables that a policy's `url` may name, read as secrets at each look-up, so that a reload sees changed files."""

    def __init__(self, environ: Mapping[str, str], read_file: ReadFile) -> None:
        self._environ = environ
        self._read_file = read_file

    def get(self, name: str, /) -> str | None:
        """The value, or None if it is unset. Raises ValueError if it is set and cannot be read."""
        try:
            return read_credential(name, self._environ, self._read_file)
        except CredentialProblem as problem:
            raise ValueError(str(problem)) from None

    def __repr__(self) -> str:
        return "Variables(…)"
