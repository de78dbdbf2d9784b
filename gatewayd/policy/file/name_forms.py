"""The forms of text inside a policy: keys of tables and functions, columns, database names (decision 2). Pure checks.

Each form turns text into its value or raises ValueError with `found …; expected …`. A name is written as PostgreSQL stores it:
what SQL would call "Users" is `Users`, users and USERS are `users`. A name that holds a dot or a double quote cannot be written;
its schema's `schema.*` covers it.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from gatewayd.policy.file.model import TableKey
from gatewayd.policy.file.problem import quoted

NAME_BYTES: Final = 63  # NAMEDATALEN - 1: PostgreSQL cuts what is longer, so a longer key would never match

_PART: Final = r'[^\s.*"\x00-\x1f\x7f](?:[^.*"\x00-\x1f\x7f]*[^\s.*"\x00-\x1f\x7f])?'
_DATABASE: Final = r"[a-z][a-z0-9_-]{0,31}"
_BUILT_IN: Final = ("pg_catalog", "information_schema")


class NameForm(msgspec.Struct, frozen=True):
    """One form of text: its parser, a regular expression that editors can apply, and what to call it in an error."""

    parse: Callable[[str], object]
    pattern: str
    expected: str


def _part(text: str, key: str, expected: str) -> str:
    if text == "":
        raise ValueError(f"found {quoted(key)} with an empty part; expected {expected}")
    if '"' in text:
        raise ValueError(
            f"found {quoted(key)} with double quotes inside; expected the name as stored: {text.replace(chr(34), '')}"
        )
    if "*" in text:
        raise ValueError(f"found {quoted(key)} with * inside a name; expected {expected}")
    if text != text.strip() or not text.isprintable():
        raise ValueError(f"found {quoted(key)} with a space at an end or a control character; expected {expected}")
    if len(text.encode()) > NAME_BYTES:
        raise ValueError(f"found a name of {len(text.encode())} bytes; expected at most {NAME_BYTES}, as PostgreSQL stores it")
    return text


def _split(key: str, expected: str, *, bare: bool, star: bool) -> TableKey:
    parts = key.split(".")
    if len(parts) > 2:
        raise ValueError(f"found {quoted(key)} with {len(parts) - 1} dots; expected {expected}")
    if len(parts) == 1 and not bare:
        raise ValueError(f"found {quoted(key)} without a schema; expected {expected}")
    schema, name = parts if len(parts) == 2 else ("public", key)
    if star and len(parts) == 2 and name == "*":
        return _part(schema, key, expected), "*"
    return _part(schema, key, expected), _part(name, key, expected)


def _table(key: str) -> TableKey:
    return _split(key, TABLE.expected, bare=True, star=True)


def _masked_table(key: str) -> TableKey:
    return _split(key, MASKED_TABLE.expected, bare=True, star=False)


def _function(key: str) -> TableKey:
    if "(" in key:
        raise ValueError(f"found {quoted(key)} with brackets; expected {FUNCTION.expected} (every function of that name)")
    schema, name = _split(key, FUNCTION.expected, bare=False, star=True)
    if schema in _BUILT_IN:
        raise ValueError(f"found {quoted(key)}; expected a user-defined function (gatewayd decides built-in ones itself)")
    return schema, name


def _column(name: str) -> str:
    if name == "":
        raise ValueError("found an empty name; expected a column")
    if '"' in name:
        raise ValueError(
            f"found {quoted(name)} with double quotes inside; expected the name as stored: {name.replace(chr(34), '')}"
        )
    if len(name.encode()) > NAME_BYTES:
        raise ValueError(f"found a name of {len(name.encode())} bytes; expected at most {NAME_BYTES}, as PostgreSQL stores it")
    return name


def _database(name: str) -> str:
    if not re.fullmatch(_DATABASE, name, re.ASCII):
        raise ValueError(f"found {quoted(name)}; expected {DATABASE.expected}")
    return name


def _glyph(text: str) -> str:
    if len(text) != 1 or not text.isprintable():
        raise ValueError(f"found {quoted(text)}; expected {GLYPH.expected}")
    return text


def _public_url(text: str) -> str:
    if not re.fullmatch(PUBLIC_URL.pattern, text):
        raise ValueError(f"found text of another form; expected {PUBLIC_URL.expected}")
    return text


TABLE: Final = NameForm(_table, rf"^(?:{_PART}\.)?{_PART}$|^{_PART}\.\*$", "name (of schema public), schema.name or schema.*")
MASKED_TABLE: Final = NameForm(_masked_table, rf"^(?:{_PART}\.)?{_PART}$", "name (of schema public) or schema.name")
FUNCTION: Final = NameForm(
    _function, rf"^(?!pg_catalog\.|information_schema\.)(?!.*\(){_PART}\.(?:{_PART}|\*)$", "schema.name or schema.*"
)
COLUMN: Final = NameForm(_column, r'^[^"]+$', "a column")
DATABASE: Final = NameForm(_database, rf"^{_DATABASE}$", "a lower-case letter, then up to 31 of a-z 0-9 _ -")
GLYPH: Final = NameForm(_glyph, r"^.$", "one printable character")
PUBLIC_URL: Final = NameForm(
    _public_url, r"^https?://[^\s/@]+(?:/\S*)?$", "an http:// or https:// address without user or password"
)
