"""Rewrites gatewayd/sql/builtins/functions.py from what servers have, and reports what a person must review.

    .venv/bin/python tests/sql/builtins_generate.py [DSN …]

starts the PostgreSQL versions that the environment carries, and reads those at each DSN besides (Debian's 15, a new release).
Names keep their section and are never dropped; new support and conversion routines are filed by their signature; all other new
names, and what is missing in builtins_objects.py, is printed and left out: not listed is denied, and tests fail until someone has
decided.
"""

import asyncio
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from gatewayd.postgres.embedded import VERSIONS, EmbeddedPostgres
from gatewayd.sql.builtins import functions as builtins_functions
from gatewayd.sql.builtins import lookup as builtins
from tests import places

FUNCTIONS = """
SELECT p.proname::text AS name,
       bool_or(p.provolatile = 'v') AS volatile,
       bool_or('internal'::regtype = ANY (p.proargtypes) OR p.prorettype IN ('internal'::regtype, 'trigger'::regtype,
               'event_trigger'::regtype) OR p.prorettype::regtype::text LIKE '%\\_handler') AS support,
       bool_or('cstring'::regtype = ANY (p.proargtypes) OR '_cstring'::regtype = ANY (p.proargtypes)
               OR p.prorettype = 'cstring'::regtype OR p.proname ~ '(recv|send)$') AS conversion,
       string_agg(p.oid::regprocedure::text || ' ' || p.provolatile::text, '; ') AS overloads
FROM pg_catalog.pg_proc AS p
WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.oid < 16384
GROUP BY p.proname ORDER BY p.proname
"""
OBJECTS = """
SELECT 'relation' AS kind, c.relname::text AS name FROM pg_catalog.pg_class AS c
WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v', 'm', 'f', 'p', 'S')
UNION ALL
SELECT DISTINCT 'operator', o.oprname::text FROM pg_catalog.pg_operator AS o WHERE o.oprnamespace = 'pg_catalog'::regnamespace
UNION ALL
SELECT 'type', t.typname::text FROM pg_catalog.pg_type AS t WHERE t.typnamespace = 'pg_catalog'::regnamespace AND t.oid < 16384
UNION ALL
SELECT 'information_schema function', p.proname::text FROM pg_catalog.pg_proc AS p
WHERE p.pronamespace = 'information_schema'::regnamespace
"""
DATA = Path(builtins_functions.__file__)


class FunctionFacts(msgspec.Struct, frozen=True):
    """What a server says about all functions of one name together."""

    name: str
    volatile: bool
    support: bool
    conversion: bool
    overloads: str


def unlisted_objects(rows: Iterable[dict[str, Any]]) -> list[str]:
    """`kind name` of each row of OBJECTS that no list holds."""

    def is_listed(kind: str, name: str) -> bool:
        match kind:
            case "relation":
                return builtins.relation(name) is not None
            case "operator":
                return builtins.operator(name)
            case "type":
                return builtins.type_name(name) is not None
            case _:
                return builtins.function(name, "information_schema") is not None

    return [f"{row['kind']} {row['name']}" for row in rows if not is_listed(row["kind"], row["name"])]


def refiled(facts: Sequence[FunctionFacts]) -> list[tuple[str, str, list[str]]]:
    """The sections for these functions, in the order of the present ones."""
    sections = [(verdict, reason, set(names.split())) for verdict, reason, names in builtins_functions.SECTIONS]
    by_reason = {reason: names for _, reason, names in sections}
    for fact in facts:
        if builtins.function(fact.name) is None:
            if fact.support:
                by_reason[builtins.SUPPORT_ROUTINE].add(fact.name)
            elif fact.conversion:
                by_reason[builtins.CONVERSION_ROUTINE].add(fact.name)
    return [(verdict, reason, sorted(names)) for verdict, reason, names in sections]


def source(sections: list[tuple[str, str, list[str]]]) -> str:
    """The text of builtins_functions.py."""
    head, _ = DATA.read_text(encoding="utf-8").split("SECTIONS: Final", 1)
    body = "".join(
        f'    (\n        "{verdict}",\n        "{reason}",\n        """\n{_wrapped(names)}\n        """,\n    ),\n'
        for verdict, reason, names in sections
    )
    return f'{head}SECTIONS: Final[tuple[tuple[str, str, str], ...]] = (\n{body})\n"""(verdict, reason, names)"""\n'


def _wrapped(names: list[str]) -> str:
    return textwrap.fill(" ".join(names), 126, initial_indent=" " * 8, subsequent_indent=" " * 8, break_on_hyphens=False)


async def _rows(dsn: str, sql: str) -> list[dict[str, Any]]:
    connection = await asyncpg.connect(dsn)
    try:
        return [dict(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()


def main(dsns: Sequence[str]) -> None:
    facts: dict[str, FunctionFacts] = {}
    missing: set[str] = set()

    def take(dsn: str) -> None:
        for row in asyncio.run(_rows(dsn, FUNCTIONS)):
            facts.setdefault(row["name"], FunctionFacts(**row))
        missing.update(unlisted_objects(asyncio.run(_rows(dsn, OBJECTS))))

    for dsn in dsns:
        take(dsn)
    with tempfile.TemporaryDirectory(prefix="gw", dir=places.ROOT) as folder:
        Path(folder).chmod(0o711)
        for version in VERSIONS:
            server = EmbeddedPostgres(Path(folder) / str(version), version=version)
            server.initialise()
            server.start()
            try:
                take(server.url(user="postgres", database="postgres"))
            finally:
                server.stop("immediate")
    sections = refiled(sorted(facts.values(), key=lambda fact: fact.name))
    DATA.write_text(source(sections), encoding="utf-8")
    listed = {name for _, _, names in sections for name in names}
    for fact in facts.values():
        if fact.name not in listed:
            missing.add(f"function {fact.name}: {fact.overloads}")
    print("\n".join(sorted(missing)) or "nothing to review")


if __name__ == "__main__":
    main(sys.argv[1:])
