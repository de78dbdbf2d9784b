"""Reads single variables by the kind of their value and collects all problems (decision 1).

The list of variables is in `variables.py`; how they make the settings is in `settings.py`.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from gatewayd.config.credentials import CredentialProblem, ReadFile, Secret, read_credential
from gatewayd.config.variables import DEFAULTS
from gatewayd.policy.file.problem import did_you_mean, quoted

ANY: Final = ("*",)
UNIX_HOST: Final = "unix:"
"""The beginning of a GATEWAY_HOST that names a Unix socket."""

_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


class Environment:
    """Reads variables and collects `problems`, lines `NAME: what is wrong; what is expected`, and `warnings`.

    A variable with a problem gives some value of its kind, so that the others are still checked.
    """

    def __init__(self, environ: Mapping[str, str], read_file: ReadFile, defaults: Mapping[str, str | None] = DEFAULTS) -> None:
        self.environ = environ
        self.read_file = read_file
        self.defaults = defaults
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def report(self, name: str, wrong: str, expected: str) -> None:
        """Notes a problem: `name: found; expected …`."""
        self.problems.append(f"{name}: {wrong}; expected {expected}")

    def text(self, name: str) -> str | None:
        """The value, or its default where it is unset or empty."""
        return self.environ.get(name) or self.defaults[name]

    def secret(self, name: str, *, header: bool = False) -> Secret | None:
        """A secret; `header` for one that is sent in an HTTP header. An empty one is a problem, because everybody could guess
        it."""
        try:
            value = read_credential(name, self.environ, self.read_file)
        except CredentialProblem as problem:
            self.problems.append(f"{name}: {problem}")
            return Secret("")
        if value is None:
            return None
        if value == "":
            self.report(name, "is empty", "a secret, or the variable unset")
        elif "\0" in value or not is_unicode(value) or (header and not all("!" <= c <= "~" for c in value)):
            self.report(
                name, "holds characters that it cannot", "visible ASCII characters" if header else "UTF-8 text without NUL"
            )
        return Secret(value)

    def flag(self, name: str) -> bool:
        """A boolean (decision 1)."""
        value = (self.text(name) or "").lower()
        if value not in _TRUE | _FALSE:
            self.report(name, f"found {quoted(value)}", "1, true, yes, on, 0, false, no or off")
        return value in _TRUE

    def choice(self, name: str, words: tuple[str, ...]) -> str:
        """One of `words`."""
        value = self.text(name) or ""
        if value not in words:
            self.report(name, f"found {quoted(value)}{did_you_mean(value, words)}", f"{', '.join(words[:-1])} or {words[-1]}")
            return words[0]
        return value

    def integer(self, name: str, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        value = self.text(name) or ""
        if not is_decimal(value) or not low <= int(value) <= high:
            self.report(name, f"found {quoted(value)}", f"a whole number from {low} to {high}")
            return low
        return int(value)

    def web_address(self, name: str) -> str | None:
        """An http(s) URL. It may carry a key, so a problem does not repeat it."""
        value = self.text(name)
        if value is None:
            return None
        wrong = _address_problem(value)
        if wrong:
            self.report(name, wrong, "an http:// or https:// URL with a host")
        return value

    def allowed(self, name: str, form: re.Pattern[str], expected: str) -> tuple[str, ...] | None:
        """The entries of a comma list in lower case, ANY when one is `*`, None when it is unset."""
        value = self.text(name)
        if value is None:
            return None
        entries = tuple(entry.strip().lower().rstrip("/") for entry in value.split(",") if entry.strip())
        for entry in entries:
            match = form.fullmatch(entry)
            if entry != "*" and (match is None or (match[2] is not None and not 1 <= int(match[2]) <= 65535)):
                self.report(name, f"found {quoted(entry)}", f"{expected}, with commas between, or *")
        if not entries:
            self.report(name, "holds no entry", f"{expected}, with commas between, or *")
        return ANY if "*" in entries else entries


def is_address(host: str) -> bool:
    """Whether the text is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address that is bound so."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def is_unicode(text: str) -> bool:
    """Whether the text can be encoded as UTF-8: other bytes of the environment arrive as lone surrogates."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def is_decimal(text: str) -> bool:
    """Whether the text is a plain decimal number, ASCII digits only."""
    return text.isascii() and text.isdigit() and len(text) <= 12


def _address_problem(url: str) -> str | None:
    if any(not "!" <= c <= "~" for c in url):
        return "found blanks, control or non-ASCII characters"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "found a malformed host or port"
    if parts.scheme not in ("http", "https"):
        return "found another scheme than http or https"
    if not parts.hostname or port == 0:
        return "found no host, or port 0"
    return None
