"""What the tools' arguments may be: identifiers, the intent, the database's name (decision 5)."""

import unicodedata
from typing import Final, TypeVar

import msgspec

from gatewayd.corridor.gateway import Database, Gateway

INTENT_CHARACTERS: Final = 500
_IDENTIFIER_BYTES: Final = 63  # NAMEDATALEN - 1

T = TypeVar("T")


class InvalidArguments(Exception):
    """Text fit for the agent: names the argument, what was found and what is expected."""


def decode(raw: msgspec.Raw, shape: type[T]) -> T:
    """The arguments of a call in their shape. Raises InvalidArguments."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except msgspec.ValidationError as error:
        raise InvalidArguments(_named(str(error))) from None


def clean_intent(intent: str) -> str:
    """Control characters out, outer white space off. Blank or over 500 characters is refused."""
    cleaned = intent if intent.isprintable() else "".join(c for c in intent if unicodedata.category(c) != "Cc")
    cleaned = cleaned.strip()
    if not cleaned:
        raise InvalidArguments("`intent` is blank; expected one sentence that says why the statement runs")
    if len(cleaned) > INTENT_CHARACTERS:
        raise InvalidArguments(f"`intent` has {len(cleaned)} characters; expected at most {INTENT_CHARACTERS}")
    return cleaned


def identifier(name: str, argument: str) -> str:
    """Any SQL identifier, quoted ones too: non-empty, at most 63 bytes, without NUL. Passed on as data, never as SQL."""
    size = len(name.encode("utf-8", "surrogatepass"))
    if not name or "\0" in name or size > _IDENTIFIER_BYTES:
        found = "empty" if not name else "NUL inside" if "\0" in name else f"{size} bytes"
        raise InvalidArguments(
            f"`{argument}` is no SQL identifier ({found}); expected 1 to {_IDENTIFIER_BYTES} bytes without NUL"
        )
    return name


def literal(text: str) -> str:
    """A string constant with this value. Safe because standard_conforming_strings is pinned on (decision 11)."""
    return "'" + text.replace("'", "''") + "'"


def only_database(gateway: Gateway) -> Database:
    """The first served database: to be called where there is only one."""
    return next(iter(gateway.databases.values()))


def named_database(gateway: Gateway, name: str | None) -> Database:
    """The database a call means: the only one when there is one, else the one it names."""
    if not gateway.is_multi:
        if name is not None:
            raise InvalidArguments("`database` is not an argument here: one database is served")
        return only_database(gateway)
    expected = ", ".join(f"`{known}`" for known in gateway.databases)
    if name is None:
        raise InvalidArguments(f"`database` is missing; expected one of {expected}")
    found = gateway.databases.get(name)
    if found is None:
        raise InvalidArguments(f"`database` names no served database; expected one of {expected}")
    return found


def _named(error: str) -> str:
    """msgspec's text with the argument's name first: "Expected `str`, got `int` - at `$.sql`" says it last."""
    text, separator, path = error.partition(" - at `$.")
    name = path.rstrip("`")
    return f"`{name}`: {text[0].lower()}{text[1:]}" if separator else text[0].lower() + text[1:]
