"""The guard: one statement that gives a row while everything that a decision rests on is as it was, and none when not.

It is evaluated after the agent's statement, in the same message or the same transaction: a guard inside the statement, or a lock
before it, sees the catalog of another moment than the statement's own parse analysis. What a read gave stays in the gateway
until the guard has spoken. Its command tag is the answer, `SELECT 1` or `SELECT 0`: no row travels.

A session prepares it once, behind the first statement that needs it. Its plan must be the general one: PostgreSQL would plan it
anew for each shape of arrays, which costs more than it takes. Behind a transaction pooler there is no session to prepare it in.
"""

from collections.abc import Iterable
from typing import Final

from gatewayd.postgres.catalog.row_marks import EVERYWHERE, KEYS, SHAPE, functions, functions_named, types_named
from gatewayd.postgres.driver.session import Connection
from gatewayd.postgres.execute.evidence import Evidence
from gatewayd.postgres.execute.failure import FAILURES, failed
from gatewayd.postgres.execute.result import CatalogChanged

HOLDS: Final = "SELECT 1"
_NAME: Final = "gatewayd_guard"
_TYPES: Final = ("oid[]", "int8[]", "oid[]", "int8[]", "name[]", "text", "oid[]", "text", "name[]", "text", "int8")


def _marked(oids: str, marks: str, mark: str) -> str:
    return (
        f"NOT EXISTS (SELECT FROM ROWS FROM (pg_catalog.unnest({oids}), pg_catalog.unnest({marks})) AS p (oid, mark) "
        f"WHERE p.mark IS DISTINCT FROM (SELECT {mark} FROM pg_catalog.pg_class AS c WHERE c.oid = p.oid))"
    )


def _guard(arguments: Iterable[str]) -> str:
    shaped, shapes, keyed, keys, named, named_rows, reached, reached_rows, types, type_rows, everywhere = arguments
    return (
        f"SELECT WHERE {_marked(shaped, shapes, SHAPE)} AND {_marked(keyed, keys, KEYS)} "
        f"AND {functions_named(named)} = {named_rows} AND {functions(reached)} = {reached_rows} "
        f"AND {types_named(types)} = {type_rows} AND ({everywhere} IS NULL OR {EVERYWHERE} = {everywhere})"
    )


_PREPARE: Final = (
    f"PREPARE {_NAME} ({', '.join(f'pg_catalog.{type_}' for type_ in _TYPES)}) AS "
    f"{_guard(f'${number}' for number in range(1, len(_TYPES) + 1))};"
)


def guard(connection: Connection, evidence: Evidence) -> str:
    """The guard as SQL to put behind a statement, within its transaction. Say `spoke` once it has run."""
    arguments = _arguments(evidence)
    if connection.pins_locally:
        return _guard(f"{text}::pg_catalog.{type_}" for text, type_ in zip(arguments, _TYPES, strict=True))
    prepare = "" if connection.has_guard else _PREPARE
    return f"{prepare}SET LOCAL plan_cache_mode = force_generic_plan;EXECUTE {_NAME}({', '.join(arguments)})"


def spoke(connection: Connection, tag: str) -> None:
    """What the guard said as the last of a message. Raises CatalogChanged."""
    connection.has_guard = not connection.pins_locally
    if tag != HOLDS:
        raise CatalogChanged


async def ask(connection: Connection, evidence: Evidence) -> None:
    """The guard alone. Raises CatalogChanged, or ExecutionFailed."""
    try:
        tag = await connection.execute(guard(connection, evidence))
    except FAILURES as error:
        connection.retire()  # what is prepared there is not known
        raise failed(error) from error
    spoke(connection, tag)


def _arguments(evidence: Evidence) -> tuple[str, ...]:
    return (
        _numbers(oid for oid, _ in evidence.shapes),
        _numbers(mark for _, mark in evidence.shapes),
        _numbers(oid for oid, _ in evidence.keys),
        _numbers(mark for _, mark in evidence.keys),
        _names(evidence.functions),
        f"'{evidence.function_rows}'",
        _numbers(evidence.reached),
        f"'{evidence.reached_rows}'",
        _names(evidence.types),
        f"'{evidence.type_rows}'",
        "NULL" if evidence.everywhere is None else f"'{evidence.everywhere}'",  # quoted: a bare -1 would be an operator's call
    )


def _numbers(numbers: Iterable[int]) -> str:
    return f"'{{{','.join(map(str, numbers))}}}'"


def _names(names: Iterable[str]) -> str:
    """An array literal. standard_conforming_strings is on, so that a backslash is only the array's own."""
    elements = (name.replace("\\", "\\\\").replace('"', '\\"') for name in names)
    return "'{" + ",".join(f'"{element}"' for element in elements).replace("'", "''") + "}'"
