"""Twists of a statement's text that aim at the gap between names and what they stand for, and at the parser."""

from collections.abc import Callable
from random import Random
from typing import Final

from pglast.parser import ParseError, parse_sql_json, scan

from tests.properties.draw import Draw

NAMES: Final = (
    "secrets", "hr.people", "hr.reviews", "public.secrets", "events_2023", "animals_rare", "users", "orders", "spy_view",
    "spy_kept", "spy", "bump", "ticket", "nextval", "set_config", "query_to_xml", "lo_get", "pg_read_file", "current_setting",
    "pg_catalog.pg_class", "pg_stats", "pg_temp.x", "pg_toast.x", "id", "name", "code", "ctid", "xmin", "tableoid",
    "secrets_number", "tickets", "length", "lower", "checked", "holder", "addr", "mood", "shop.public.users", "public",
    "events", "animals",
)  # fmt: skip
OPERATORS: Final = ("+", "===", "OPERATOR(tools.@@@)", "OPERATOR(public.+)", "||", "->>", "=", "<", "OPERATOR(pg_catalog.=)")
PIECES: Final = (
    ";", "--", "/*", "*/", "'", '"', "$$", "(", ")", ",", ".", "::", "$1", "\x00", "\\", "E'\\'", "U&'\\", "0x1F", "1_000", "*",
    "(*)", ".*", "/* ; */", "-- ;\n", "\u00a0", " FROM secrets", " UNION TABLE secrets", " FOR UPDATE", " INTO made",
    " RETURNING *", "\ud800", "\ufeff", "ÿ", "LATERAL", "ONLY ", "VARIADIC ", "[1]", ".zip",
)  # fmt: skip
BLANKS: Final = (" ", "  ", "\n", "\t", "\r\n", " /* c */ ", " /* a /* b */ c */ ", " -- c\n", "\f")


def tokens(text: str) -> list[tuple[str, int, int]]:
    """(kind, start, end) in characters; empty where PostgreSQL's scanner refuses the text."""
    try:
        return [(token.name, token.start, token.end + 1) for token in scan(text)]
    except (ParseError, ValueError):
        return []


def mutate(draw: Draw, text: str) -> str:
    found = tokens(text)
    if not found:
        return text + draw.pick(PIECES)
    return draw.pick(MUTATIONS)(draw, text, found)


Tokens = list[tuple[str, int, int]]


def _replaced(text: str, token: tuple[str, int, int], by: str) -> str:
    return f"{text[: token[1]]}{by}{text[token[2] :]}"


def _of(found: Tokens, *kinds: str) -> Tokens:
    return [token for token in found if token[0] in kinds]


def rename(draw: Draw, text: str, found: Tokens) -> str:
    """One name becomes another one, which may be hidden."""
    names = _of(found, "IDENT")
    return _replaced(text, draw.pick(names), draw.pick(NAMES)) if names else text


def rename_all(draw: Draw, text: str, found: Tokens) -> str:
    """A name becomes another one wherever it stands: an alias or a WITH query takes the name of a table."""
    names = _of(found, "IDENT")
    if not names:
        return text
    _, start, end = draw.pick(names)
    old, new = text[start:end], draw.pick(NAMES)
    for token in reversed(names):
        if text[token[1] : token[2]] == old:
            text = _replaced(text, token, new)
    return text


def operator(draw: Draw, text: str, found: Tokens) -> str:
    signs = [token for token in found if token[0].startswith("ASCII_4") or token[0].startswith("ASCII_6") or token[0] == "Op"]
    signs = [token for token in signs if text[token[1] : token[2]] not in "(),."]
    return _replaced(text, draw.pick(signs), f" {draw.pick(OPERATORS)} ") if signs else text


def written_otherwise(draw: Draw, text: str, found: Tokens) -> str:
    """A name in quotes, in unicode escapes or in capitals: the same name to PostgreSQL, or another one."""
    names = _of(found, "IDENT", "UNRESERVED_KEYWORD")
    if not names:
        return text
    token = draw.pick(names)
    name = text[token[1] : token[2]]
    if name.startswith(('"', "U&", "u&")):
        return _replaced(text, token, name.strip('"'))
    escaped = 'U&"' + "".join(f"\\{ord(each):04x}" if ord(each) < 0x10000 else each for each in name) + '"'
    return _replaced(
        text,
        token,
        draw.pick((f'"{name}"', escaped, name.upper(), f'"{name.upper()}"', f"U&\"!{ord(name[0]):04x}{name[1:]}\" UESCAPE '!'")),
    )


def insert(draw: Draw, text: str, found: Tokens) -> str:
    at = draw.pick(found)[1]
    return f"{text[:at]}{draw.pick(PIECES)}{text[at:]}"


def drop(draw: Draw, text: str, found: Tokens) -> str:
    return _replaced(text, draw.pick(found), "")


def swap(draw: Draw, text: str, found: Tokens) -> str:
    one, other = sorted((draw.pick(found), draw.pick(found)), key=lambda token: token[1])
    if one == other:
        return text
    return text[: one[1]] + text[other[1] : other[2]] + text[one[2] : other[1]] + text[one[1] : one[2]] + text[other[2] :]


def repeat(draw: Draw, text: str, found: Tokens) -> str:
    start, end = sorted((draw.pick(found)[1], draw.pick(found)[2]))
    return text[:end] + " " + text[start:end] + text[end:]


def qualify(draw: Draw, text: str, found: Tokens) -> str:
    names = _of(found, "IDENT")
    if not names:
        return text
    token = draw.pick(names)
    return _replaced(
        text,
        token,
        draw.pick(("public.", "pg_catalog.", "hr.", "tools.", "pg_temp.", "shop.public.")) + text[token[1] : token[2]],
    )


def attribute(draw: Draw, text: str, found: Tokens) -> str:
    """A closing bracket or a name gets an attribute: a column, or a call without brackets."""
    ends = [token for token in found if token[0] in ("ASCII_41", "IDENT")]
    return (
        _replaced(text, token, text[token[1] : token[2]] + "." + draw.pick(NAMES))
        if ends and (token := draw.pick(ends))
        else text
    )


MUTATIONS: Final[tuple[Callable[[Draw, str, Tokens], str], ...]] = (
    rename, rename, rename, rename_all, rename_all, operator, operator, written_otherwise, insert, drop, swap, repeat, qualify,
    qualify, attribute,
)  # fmt: skip


def reformatted(text: str, chance: Random) -> str | None:
    """The same tokens with other blanks and comments between them, keywords in other cases; None where the text has no tokens."""
    found = [token for token in tokens(text) if token[0] not in ("SQL_COMMENT", "C_COMMENT")]
    if not found:
        return None
    out = []
    end = 0
    for kind, start, stop in found:
        piece = text[start:stop]
        if (
            kind not in ("IDENT", "SCONST", "USCONST", "UIDENT", "BCONST", "XCONST", "ICONST", "FCONST", "Op", "PARAM")
            and piece.isalpha()
        ):
            piece = chance.choice((piece, piece.upper(), piece.lower(), piece.title()))
        gap = end != 0 and (start > end)
        out.append((chance.choice(BLANKS) if gap else "") + piece)
        end = stop
    return chance.choice(("", " ", "\n", "/* x */")) + "".join(out) + chance.choice(("", ";", " ;", "\n-- end", ";;"))


def is_one_statement(text: str) -> bool:
    try:
        return str(parse_sql_json(text)).count('"stmt":{') == 1
    except (ParseError, ValueError):
        return False
