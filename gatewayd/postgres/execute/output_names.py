"""The names of an answer's columns: equal names get `_2`, `_3` (decision 6). Pure.

A row is a JSON object, and a JSON object with two equal keys would lose one value in every reader.
"""

from collections.abc import Iterable
from typing import Final

from gatewayd.catalog import Catalog
from gatewayd.sql.facts.statement import Star, Statement

MOST_COLUMNS: Final = 1664  # MaxTupleAttributeNumber
NAME_BYTES: Final = 63  # PostgreSQL cuts longer identifiers (NAMEDATALEN)


def output_names(statement: Statement, catalog: Catalog) -> tuple[str, ...] | None:
    """Names of the result columns in order; None where neither text nor catalog can tell, or PostgreSQL refuses so many."""
    names: list[str] = []
    for output in statement.outputs:
        if isinstance(output, str):
            names.append(output)
            continue
        columns = output.columns if output.columns is not None else _columns(statement, output, catalog)
        if columns is None:
            return None
        names += columns
        if len(names) > MOST_COLUMNS:
            return None
    return tuple(names)


def is_surely_distinct(statement: Statement) -> bool:
    """Whether no two names can be equal: one `*` of one relation alone, which needs no catalog to know."""
    match statement.outputs:
        case (Star(relation=int()),) | (str(),):
            return True
        case _:
            return False


def distinct(names: Iterable[str]) -> tuple[str, ...] | None:
    """The names to use instead, each cut so that PostgreSQL does not cut it into an equal one; None when all differ already."""
    names = tuple(names)
    taken = set(names)
    if len(taken) == len(names):
        return None
    seen: set[str] = set()
    numbers: dict[str, int] = {}
    chosen: list[str] = []
    for name in names:
        if name in seen:
            name = _free_name(name, taken, numbers)
            taken.add(name)
        seen.add(name)
        chosen.append(name)
    return tuple(chosen)


def _free_name(name: str, taken: set[str], numbers: dict[str, int]) -> str:
    """`numbers`: the last number tried for each name, so that equal names cost a look-up each, not one for each before."""
    number = numbers.get(name, 1)
    while True:
        number += 1
        suffix = f"_{number}"
        kept = name.encode()[: NAME_BYTES - len(suffix)].decode(errors="ignore")
        if kept + suffix not in taken:
            numbers[name] = number
            return kept + suffix


def _columns(statement: Statement, star: Star, catalog: Catalog) -> tuple[str, ...] | None:
    if star.relation is None or not catalog.is_read:
        return None
    use = statement.relations[star.relation]
    # A bare name that pg_catalog holds is pg_catalog's, else public's (decision 2).
    schemas = (use.schema,) if use.schema is not None else ("pg_catalog", "public")
    for schema in schemas:
        relation = catalog.relation(schema, use.name)
        if relation is not None:
            return tuple(column.name for column in relation.columns)
    return None
