"""Canaries: values of masked columns that nothing else holds, and the look for them in whatever leaves gatewayd (issue 5).

Every canary has a stem in it, so that one look finds them all, in each of the spellings that a statement could give them.
"""

import base64
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from tests.conftest import Postgres

HERE: Final = Path(__file__).parent
WORD: Final = "zqkvxwjy"
NUMBER: Final = "90706050"  # the first eight of the nine digits of each
YEAR: Final = "2777"  # of each date, whose month is not January


def _spellings() -> Iterator[str]:
    """Of the stems, in lower case. A mask may show a date's year, never its month."""
    for word in (WORD, WORD.upper(), WORD[::-1]):
        data = word.encode()
        yield word.lower()
        yield data.hex()
        for before in range(3):  # base64 in its three alignments, without the digits that the neighbours have a part in
            digits = base64.b64encode(b"\0" * before + data).decode()
            yield re.escape(digits[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6].lower())
    yield ".{1,4}".join(WORD)  # letter by letter, as an array or a list
    yield NUMBER
    yield NUMBER[::-1]
    yield "907,060,50"  # to_char, money
    yield r"9\.070605\d*e"
    yield "9070:6050"
    yield YEAR + "-(?!01-01)"


_CANARY: Final = re.compile("|".join(_spellings()))


def found(text: str) -> str:
    """The canary in a text, with what stands around it; empty when there is none."""
    hit = _CANARY.search(text.lower())
    return text[max(hit.start() - 100, 0) : hit.end() + 100] if hit else ""


class Values:
    """An endless supply of canaries as SQL literals, the same for the same seed, of different lengths."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._longest = 4 + seed % 2 * 16

    def word(self) -> str:
        return f"a{self._random.randrange(100, 1000)}{WORD}{self._random.randrange(10**8)}{'b' * self._random.randrange(self._longest)}"

    def number(self) -> str:
        return f"{NUMBER}{self._random.randrange(10)}"

    def date(self) -> str:
        return f"{YEAR}-{self._random.randrange(2, 13):02}-{self._random.randrange(1, 29):02}"

    def of(self, type_: str) -> str:
        """A literal of a type as format_type() prints it."""
        word = self.word()
        match type_.partition("(")[0].rstrip("[]"):
            case "integer" | "bigint" | "numeric" | "double precision":
                value = self.number()
            case "date" | "timestamp with time zone" | "timestamp without time zone":
                value = self.date()
            case "json" | "jsonb":
                value = f'{{"k": "{word}", "n": [{self.number()}]}}'
            case "bytea":
                value = f"\\x{word.encode().hex()}"
            case "address":
                value = f"({word},{self.number()})"
            case "numrange":
                value = f"[{self.number()},{NUMBER}9]"
            case "uuid":
                value = f"{NUMBER}-0000-4000-8000-{self._random.randrange(10**12):012}"
            case "inet":
                value = f"2001:db8:{NUMBER[:4]}:{NUMBER[4:]}::{self._random.randrange(1, 10**4)}"
            case "point":
                value = f"({self.number()},{self.number()})"
            case "money":
                value = self.number()
            case "tsvector":
                value = f"'{word}'"
            case _:
                value = word
        return f"'{{{value}}}'" if type_.endswith("[]") else f"'{value.replace(chr(39), chr(39) * 2)}'"


# --- the hostile tables

HIDING: Final = """
table_access: {default: read_write}
guardrails: {block_unqualified_dml: false, block_ddl: false}
column_masks:
  people: {mail: full-redact, phone: null-out, code: full-redact, pin: null-out, salary: null-out, score: full-redact, born: null-out,
    seen: full-redact, profile: full-redact, doc: null-out, raw: full-redact, tags: null-out, home: full-redact, span: null-out,
    token: full-redact, ip: null-out, spot: full-redact, note: full-redact, words: null-out, old: full-redact}
  posts: {secret: full-redact}
  visits: {who: full-redact}
  beings: {label: null-out}
  robots: {serial: full-redact}
"""
ROWS: Final = 120
_TYPES: Final = {
    "mail": "text", "phone": "varchar", "code": "char", "pin": "integer", "salary": "numeric", "score": "double precision", "born": "date",
    "seen": "timestamp with time zone", "profile": "jsonb", "doc": "json", "raw": "bytea", "tags": "text[]", "home": "address",
    "span": "numrange", "token": "uuid", "ip": "inet", "spot": "point", "note": "money", "words": "tsvector",
}  # fmt: skip


class Hostile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Statements that try to carry a masked value out: those that read first, then those that change things."""

    reads: dict[str, list[str]]
    writes: dict[str, list[str]]

    @property
    def statements(self) -> list[str]:
        return [sql for part in (self.reads, self.writes) for statements in part.values() for sql in statements]


HOSTILE: Final = msgspec.convert(yaml.safe_load((HERE / "hostile.yaml").read_text(encoding="utf-8")), Hostile)
PLACED: Final = frozenset(HOSTILE.reads["told by where rows lie"])
"""Those whose answers differ with the lengths of the values."""


def hostile_schema(seed: int) -> str:
    """The hostile tables with rows. `seed` drives the canaries alone."""
    values = Values(seed)
    schema = (HERE / "masking_hostile.sql").read_text(encoding="utf-8")
    for name, value in {"{old}": values.word(), "{pin}": values.number(), "{salary}": values.number()}.items():
        schema = schema.replace(name, value)
    sql = [schema, "INSERT INTO jobs SELECT n, 'job ' || n FROM generate_series(1, 20) n;"]
    people = [
        f"({number}, 'person {number}', '{('Oslo', 'Lima', 'Bergen')[number % 3]}', {1 + number % 10}, "
        + ", ".join(values.of(type_) for type_ in _TYPES.values())
        + ")"
        for number in range(1, ROWS + 1)
    ]
    sql += [
        f"INSERT INTO people (id, name, city, job, {', '.join(_TYPES)}) VALUES {', '.join(people)};",
        "INSERT INTO posts VALUES " + ", ".join(f"({n}, {10 + n}, {values.of('text')})" for n in range(1, 11)) + ";",
        "INSERT INTO visits VALUES " + ", ".join(f"({n}, '2024-03-01', {values.of('text')})" for n in range(1, 11)) + ";",
        f"INSERT INTO beings VALUES (1, {values.of('text')}); INSERT INTO robots VALUES (2, {values.of('text')}, {values.of('text')});",
        "INSERT INTO letters SELECT n, n, 'letter ' || n FROM generate_series(1, 10) n; INSERT INTO desks VALUES (1, NULL);",
        "REFRESH MATERIALIZED VIEW kept; ANALYZE;",
    ]
    return "\n".join(sql)


# --- the corpus' database

CORPUS_MASKS: Final[dict[str, dict[str, Any]]] = {
    "customers": {"email": "consistent-hash", "phone": {"t": "partial", "keepStart": 1, "keepEnd": 2}, "tags": "null-out",
        "info": "full-redact", "born": {"t": "generalize", "granularity": "year"}},
    "employees": {"name": {"t": "pseudonymize", "kind": "name"}, "hired": "null-out"},
    "payments": {"amount": {"t": "noise", "ratio": 0.1}, "method": "full-redact"},
    "orders": {"note": "full-redact"},
    "page_views": {"url": {"t": "partial", "keepEnd": 1}, "referrer": "null-out"},
    "articles": {"author": {"t": "pseudonymize", "kind": "name"}, "body": "full-redact"},
    "sensors": {"place": "full-redact"},
    "secrets": {"value": "full-redact", "pin": "consistent-hash"},
    "vault.keys": {"key": "full-redact", "owner": "null-out"},
    "vault.cards": {"number": {"t": "partial", "keepEnd": 2}},
    "Secrets": {"value": "full-redact"},
    "geheim ü": {"wert": "null-out"},
    "events": {"payload": "full-redact"},
    "people": {"name": "full-redact"},
    "agents": {"codename": "null-out"},
    "private_notes": {"note": "full-redact"},
    "tpch.nation": {"n_comment": "full-redact"},
}  # fmt: skip
HONEST_MASKS: Final[dict[str, dict[str, Any]]] = {
    "mart.users": {"email": {"t": "pseudonymize", "kind": "email"}},
    "mart.places": {"address": "null-out", "at": "full-redact"},
    "tpcds.customer": {"c_email_address": "consistent-hash", "c_last_name": "full-redact"},
    "mart.documents": {"body": "full-redact"},
}


def corpus_policy(*, honest: bool) -> dict[str, Any]:
    """Everything that a policy can grant, and masks over what the corpus wants to get at."""
    return {
        "table_access": {"default": "read_write"},
        "functions": {"allow": ["public.slug", "sales.tax"]},
        "guardrails": {"block_unqualified_dml": False, "block_ddl": False, "block_dml": False},
        "limits": {"statement_timeout_ms": 5000, "lock_timeout_ms": 500},
        "column_masks": CORPUS_MASKS | (HONEST_MASKS if honest else {}),
    }


def seed_corpus(postgres: Postgres, dsn: str, *, honest: bool, seed: int) -> None:
    """Put a canary into every masked column of every row of a database with the corpus' schema."""
    values = Values(seed)
    types = {
        (row["at"], row["name"]): row["type"]
        for row in postgres.query(
            "SELECT a.attrelid::regclass::text AS at, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type "
            "FROM pg_attribute a WHERE a.attnum > 0 AND a.attrelid >= 16384",
            dsn,
        )
    }
    sql = []
    for table, masks in (CORPUS_MASKS | (HONEST_MASKS if honest else {})).items():
        name = ".".join(part if re.fullmatch("[a-z_]+", part) else f'"{part}"' for part in table.split("."))
        for row in postgres.query(f"SELECT tableoid::regclass::text AS at, ctid::text AS place FROM {name}", dsn):
            given = ", ".join(f"{column} = {values.of(types[name, column])}" for column in masks)
            sql.append(f"UPDATE ONLY {row['at']} SET {given} WHERE ctid = '{row['place']}';")
    postgres.execute("\n".join(sql) + "REFRESH MATERIALIZED VIEW m_secrets; ANALYZE;", dsn)
