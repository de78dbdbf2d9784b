"""The portable subset: every statement and migration, parsed by PostgreSQL's parser (docs/control-plane.md, Portable subset)."""

import ast
from pathlib import Path

import pglast
import pytest
from pglast.stream import RawStream

import gatewayd.control
from gatewayd.control.store.statement import Copy
from tests.control.portable import (
    DAY,
    EVERYWHERE,
    FORBIDDEN_FUNCTIONS,
    OF_AN_ORGANISATION,
    Facts,
    columns,
    definitions,
    enums,
    keys,
    modules,
    owner_column,
    pg,
    statements,
    uniques,
)

ALLOWED = (pg.SelectStmt, pg.InsertStmt, pg.UpdateStmt, pg.DeleteStmt)


def test_the_schema_s_statements_are_of_the_subset() -> None:
    for statement in definitions():
        assert isinstance(statement, pg.CreateStmt | pg.IndexStmt), RawStream()(statement)
        if isinstance(statement, pg.IndexStmt):
            assert not statement.unique, "a unique key is part of its table"
            assert statement.whereClause is None
        for element in getattr(statement, "tableElts", None) or ():
            if isinstance(element, pg.ColumnDef):
                assert element.typeName.names[-1].sval not in ("serial", "bigserial", "smallserial"), element.colname
                for constraint in element.constraints or ():
                    assert constraint.contype != enums.ConstrType.CONSTR_IDENTITY
                    assert constraint.contype != enums.ConstrType.CONSTR_FOREIGN


@pytest.mark.parametrize("table", sorted(keys()))
def test_every_table_is_everywhere_or_has_its_owner_first_in_its_keys(table: str) -> None:
    if table in EVERYWHERE:
        assert owner_column(table) is None
        return
    first = "org_id" if table in OF_AN_ORGANISATION or "project_id" not in columns(table) else "project_id"
    assert keys()[table][0] == first
    assert all(unique[0] == first for unique in uniques().get(table, []))


def problems(text: str) -> list[str]:
    (raw,) = pglast.parse_sql(text)
    assert isinstance(raw.stmt, ALLOWED), "only SELECT, INSERT, UPDATE and DELETE"
    facts = Facts()
    facts(raw.stmt)
    forbidden = {name for name in facts.functions if name in FORBIDDEN_FUNCTIONS or name.startswith("pg_advisory")}
    return facts.problems + sorted(forbidden)


@pytest.mark.parametrize("name", sorted(statements()))
def test_every_statement_is_of_the_portable_subset(name: str) -> None:
    assert problems(statements()[name]) == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT name FROM databases WHERE database_id = $1",
        "SELECT name FROM databases WHERE project_id = $1 OR database_id = $2",
        "SELECT d.name FROM databases d JOIN gateways g ON g.gateway_id = d.database_id WHERE d.project_id = $1",
        "SELECT name FROM databases WHERE project_id = $1 ORDER BY name OFFSET 5",
        "SELECT count(*) FROM databases WHERE project_id = $1",
        "SELECT name FROM databases WHERE project_id = $1 FOR UPDATE SKIP LOCKED",
        "INSERT INTO databases (database_id) VALUES ($1)",
        "INSERT INTO databases (project_id, database_id, name) VALUES ($1, $2, $3) ON CONFLICT (database_id) DO NOTHING",
        "UPDATE databases SET name = $1 WHERE database_id = $2",
        "DELETE FROM databases",
        "SELECT pg_advisory_lock(1)",
        "SELECT name FROM projects WHERE project_id = $1",
    ],
)
def test_what_is_outside_of_the_subset_is_found(text: str) -> None:
    assert problems(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT d.name FROM databases d JOIN gateways g ON g.project_id = d.project_id WHERE d.project_id = $1",
        "SELECT count(*) FROM (SELECT 1 FROM databases WHERE project_id = $1 LIMIT 10) AS few",
        "INSERT INTO databases (project_id, database_id, name) VALUES ($1, $2, $3) ON CONFLICT (project_id, name) DO NOTHING",
    ],
)
def test_what_is_inside_of_the_subset_passes(text: str) -> None:
    assert problems(text) == []


def test_copies_name_the_owner() -> None:
    for module in modules():
        for value in vars(module).values():
            if isinstance(value, Copy):
                table = value.on(DAY).table
                assert owner_column(table) in {None, *value.columns}


def test_statements_are_constants_of_their_modules() -> None:
    """Nothing is composed at run time: each `Statement(…)` stands at the top of a module, of a text without holes."""
    for path in Path(gatewayd.control.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        top = {id(node.value) for node in tree.body if isinstance(node, ast.AnnAssign | ast.Assign) and node.value is not None}
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("Statement", "DayStatement", "Copy")
            ):
                if path.name == "statement.py":
                    continue
                assert id(node) in top, f"{path}:{node.lineno}"
                assert all(isinstance(each, ast.Constant | ast.Tuple) for each in node.args), f"{path}:{node.lineno}"
