"""The guard: one statement that gives a row while everything that a decision rests on is as it was, and none when not.

It is evaluated after the agent's statement, in the same message or the same transaction: a guard inside the statement, or a lock
before it, sees the catalog of another moment than the statement's own parse analysis. What a read gave stays in the gateway
until the guard has spoken. Its command tag is the answer, `SELECT 1` or `SELECT 0`: no row travels.

A session prepares it once for each combination of questions, behind the first statement that needs it. Its plan must be the
general one: PostgreSQL would plan it anew for each shape of arrays, which costs more than it takes. Behind a transaction pooler
there is no session to prepare it in.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

import msgspec

from gatewayd.postgres.catalog.row_marks import EVERYWHERE, KEYS, SHAPE, functions, functions_named, types_named
from gatewayd.postgres.driver.session import Connection
from gatewayd.postgres.execute.evidence import Evidence, RowMarks
from gatewayd.postgres.execute.failure import FAILURES, failed
from gatewayd.postgres.execute.result import CatalogChanged

HOLDS: Final = "SELECT 1"
_NAME: Final = "gatewayd_guard"


def _marked(oids: str, marks: str, mark: str) -> str:
    return (
        f"NOT EXISTS (SELECT FROM ROWS FROM (pg_catalog.unnest({oids}), pg_catalog.unnest({marks})) AS p (oid, mark) "
        f"WHERE p.mark IS DISTINCT FROM (SELECT {mark} FROM pg_catalog.pg_class AS c WHERE c.oid = p.oid))"
    )


class _Question(msgspec.Struct, frozen=True):
    """One part of the guard: its condition over arguments of these types."""

    types: tuple[str, ...]
    condition: Callable[..., str]


_QUESTIONS: Final = (
    _Question(("oid[]", "int8[]"), lambda oids, marks: _marked(oids, marks, SHAPE)),
    _Question(("oid[]", "int8[]"), lambda oids, marks: _marked(oids, marks, KEYS)),
    _Question(("name[]", "text"), lambda names, rows: f"{functions_named(names)} = {rows}"),
    _Question(("oid[]", "text"), lambda oids, rows: f"{functions(oids)} = {rows}"),
    _Question(("name[]", "text"), lambda names, rows: f"{types_named(names)} = {rows}"),
    _Question(("int8",), lambda mark: f"{EVERYWHERE} = {mark}"),
)


def guard(connection: Connection, evidence: Evidence) -> str:
    """The guard as SQL to put behind a statement, within its transaction. Say `spoke` once it has run."""
    asked = [(question, texts) for question, texts in zip(_QUESTIONS, _arguments(evidence), strict=True) if texts]
    if connection.pins_locally:
        conditions = (
            question.condition(*(f"{text}::pg_catalog.{type_}" for text, type_ in zip(texts, question.types, strict=True)))
            for question, texts in asked
        )
        return f"SELECT WHERE {' AND '.join(conditions)}"
    shape = tuple(question for question, _ in asked)
    name = connection.guards.get(shape)
    prepare = ""
    if name is None:  # under a name of its own: what was cancelled may be there or not
        connection.guards_sent += 1
        name = f"{_NAME}_{connection.guards_sent}"
        prepare = f"PREPARE {name} {_prepared(shape)};"
        connection.guard_sent = shape, name
    arguments = ", ".join(text for _, texts in asked for text in texts)
    return f"{prepare}SET LOCAL plan_cache_mode = force_generic_plan;EXECUTE {name}({arguments})"


@cache
def _prepared(shape: tuple[_Question, ...]) -> str:
    """Only what is asked for is in it: every part costs as much to set up as to answer."""
    types: list[str] = []
    conditions: list[str] = []
    for question in shape:
        conditions.append(question.condition(*(f"${len(types) + number}" for number, _ in enumerate(question.types, 1))))
        types += question.types
    return f"({', '.join(f'pg_catalog.{type_}' for type_ in types)}) AS SELECT WHERE {' AND '.join(conditions)}"


def spoke(connection: Connection, tag: str) -> None:
    """What the guard said as the last of a message. Raises CatalogChanged."""
    if connection.guard_sent is not None:
        shape, name = connection.guard_sent
        connection.guards[shape] = name
        connection.guard_sent = None
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


def _arguments(evidence: Evidence) -> tuple[tuple[str, ...], ...]:
    """For each of _QUESTIONS the literals, () where it need not be asked. Numbers are quoted: a bare -1 calls an operator."""
    return (
        _marks(evidence.shapes),
        _marks(evidence.keys),
        (_names(evidence.functions), f"'{evidence.function_rows}'") if evidence.functions else (),
        (_numbers(evidence.reached), f"'{evidence.reached_rows}'") if evidence.reached else (),
        (_names(evidence.types), f"'{evidence.type_rows}'") if evidence.types else (),
        () if evidence.everywhere is None else (f"'{evidence.everywhere}'",),
    )


def _marks(marks: RowMarks) -> tuple[str, ...]:
    return (_numbers(oid for oid, _ in marks), _numbers(mark for _, mark in marks)) if marks else ()


def _numbers(numbers: Iterable[int]) -> str:
    return f"'{{{','.join(map(str, numbers))}}}'"


def _names(names: Iterable[str]) -> str:
    """An array literal. standard_conforming_strings is on, so that a backslash is only the array's own."""
    elements = (name.replace("\\", "\\\\").replace('"', '\\"') for name in names)
    return "'{" + ",".join(f'"{element}"' for element in elements).replace("'", "''") + "}'"
