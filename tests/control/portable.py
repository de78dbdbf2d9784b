"""The portable subset of SQL that the store keeps to, as statements and definitions of tables show it."""

import importlib
import pkgutil
from collections.abc import Iterator
from datetime import date
from functools import cache
from typing import Any

import pglast
from pglast.visitors import Visitor

import gatewayd.control
from gatewayd.control.store import days, migrate
from gatewayd.control.store.statement import DayStatement, Statement

pg: Any = importlib.import_module("pglast.ast")
enums: Any = importlib.import_module("pglast.enums")
DAY = date(2026, 11, 22)
MADE = {"Statement", "DayStatement", "Copy"}
FORBIDDEN_FUNCTIONS = {"nextval", "currval", "setval", "pg_notify", "lastval"}
# Found before a project or organisation is known, or belonging to none: small, and on every node.
EVERYWHERE = {
    "organisations", "people", "memberships", "sessions", "one_time_links", "throttles", "passkeys", "challenges",
    "oidc_providers", "oidc_identities", "directory", "leases", "migrations", "trust_documents", "replicas", "audit_days",
    "former_peppers", "notification_due",
}  # fmt: skip
# Rows of an organisation that name a project, so that its id is not the key's first part.
OF_AN_ORGANISATION = {"projects", "api_keys", "org_events", "notification_channels", "notification_deliveries"}


def modules() -> list[Any]:
    found = pkgutil.walk_packages(gatewayd.control.__path__, "gatewayd.control.")
    return [importlib.import_module(each.name) for each in found]


@cache
def statements() -> dict[str, str]:
    """Where each statement stands -> its text; those of a day for one day."""
    found = {}
    for module in modules():
        for name, value in vars(module).items():
            if isinstance(value, DayStatement):
                value = value.on(DAY)
            if isinstance(value, Statement):
                found[f"{module.__name__.removeprefix('gatewayd.control.')}.{name}"] = value.text
    return found


@cache
def definitions() -> list[Any]:
    """What creates the tables and indexes that there are after the last migration."""
    sql = [*migrate.known().values(), migrate.BOOTSTRAP]
    sql += [text.format(events="audit_20261122", details="audit_details_20261122") for text in (days.EVENTS, days.DETAILS)]
    found: list[Any] = []
    for raw in (raw.stmt for text in sql for raw in pglast.parse_sql(text)):
        if isinstance(raw, pg.DropStmt):
            dropped = {name[-1].sval for name in raw.objects}
            found = [each for each in found if each.relation.relname not in dropped]
        else:
            found.append(raw)
    return found


@cache
def keys() -> dict[str, tuple[str, ...]]:
    """Table -> its primary key."""
    found: dict[str, tuple[str, ...]] = {}
    for create in definitions():
        if not isinstance(create, pg.CreateStmt):
            continue
        for element in create.tableElts:
            if isinstance(element, pg.Constraint) and element.contype == enums.ConstrType.CONSTR_PRIMARY:
                found[create.relation.relname] = tuple(key.sval for key in element.keys)
            elif isinstance(element, pg.ColumnDef):
                for constraint in element.constraints or ():
                    if constraint.contype == enums.ConstrType.CONSTR_PRIMARY:
                        found[create.relation.relname] = (element.colname,)
    return found


def columns(table: str) -> set[str]:
    return {
        element.colname
        for create in definitions()
        if isinstance(create, pg.CreateStmt) and create.relation.relname == table
        for element in create.tableElts
        if isinstance(element, pg.ColumnDef)
    }


def owner_column(table: str) -> str | None:
    """The column that every statement on the table filters by."""
    return None if table in EVERYWHERE else keys()[table][0]


class Facts(Visitor):
    """Tables by alias for each query level, and what is equal to what there. `owners`: the numbers of the parameters that owner
    columns are equal to; `owned`: the tables that have such a column."""

    def __init__(self) -> None:
        self.owners: set[int] = set()
        self.owned: set[str] = set()
        self.functions: set[str] = set()
        self.problems: list[str] = []

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:  # noqa: N802  # the library's name for it
        self.functions.add(node.funcname[-1].sval)

    def visit_LockingClause(self, _ancestors: Any, node: Any) -> None:  # noqa: N802
        if node.waitPolicy != enums.LockWaitPolicy.LockWaitBlock:
            self.problems.append("SKIP LOCKED or NOWAIT")

    def visit_SelectStmt(self, _ancestors: Any, node: Any) -> None:  # noqa: N802
        if node.limitOffset is not None:
            self.problems.append("OFFSET")
        self._level(node, [*(node.fromClause or ())], node.whereClause)
        counted = any(
            isinstance(target.val, pg.FuncCall) and target.val.agg_star
            for target in node.targetList or ()
            if target.val is not None
        )
        if counted and any(isinstance(each, pg.RangeVar) for each in node.fromClause or ()):
            self.problems.append("an unbounded count: count over a subselect with a LIMIT")

    def visit_UpdateStmt(self, _ancestors: Any, node: Any) -> None:  # noqa: N802
        self._level(node, [node.relation, *(node.fromClause or ())], node.whereClause)

    def visit_DeleteStmt(self, _ancestors: Any, node: Any) -> None:  # noqa: N802
        self._level(node, [node.relation, *(node.usingClause or ())], node.whereClause)

    def visit_InsertStmt(self, _ancestors: Any, node: Any) -> None:  # noqa: N802
        table = node.relation.relname
        owner = owner_column(table)
        if owner is not None and owner not in {column.name for column in node.cols or ()}:
            self.problems.append(f"{table} without {owner}")
        elif owner is not None:
            self.owned.add(table)
            self.owners |= owners_of_new_rows(node, owner)
        clause = node.onConflictClause
        if clause is not None:
            named = tuple(element.name for element in clause.infer.indexElems or ()) if clause.infer is not None else ()
            if named not in [keys()[table], *uniques().get(table, [])]:
                self.problems.append("ON CONFLICT on something else than the whole key")

    def _level(self, node: Any, sources: list[Any], where: Any) -> None:
        tables: dict[str, str] = {}
        conditions = list(conjuncts(where))
        while sources:
            source = sources.pop()
            if isinstance(source, pg.JoinExpr):
                sources += [source.larg, source.rarg]
                conditions += conjuncts(source.quals)
            elif isinstance(source, pg.RangeVar) and source.relname in keys():
                tables[source.alias.aliasname if source.alias else source.relname] = source.relname
        owned = {alias: column for alias, table in tables.items() if (column := owner_column(table)) is not None}
        self.owned |= {tables[alias] for alias in owned}
        bound: set[str] = set()
        equal: list[tuple[str, str]] = []
        for condition in conditions:
            left, right = sides(condition)
            for side, other in ((left, right), (right, left)):
                alias = place(side, owned)
                if alias is not None and isinstance(other, pg.ParamRef):
                    bound.add(alias)
                    self.owners.add(other.number)
                elif alias is not None and (also := place(other, owned)) is not None:
                    equal.append((alias, also))
        for _ in equal:
            bound |= {second for first, second in equal if first in bound}
        for alias in owned.keys() - bound:
            self.problems.append(f"{tables[alias]} is not filtered by {owned[alias]}")


def owners_of_new_rows(insert: Any, owner: str) -> set[int]:
    """The parameters that become the owner column of what is inserted; 0 for what is no parameter."""
    place = [column.name for column in insert.cols].index(owner)
    source = insert.selectStmt
    given = [row[place] for row in source.valuesLists] if source.valuesLists else [source.targetList[place].val]
    plain = [value.arg if isinstance(value, pg.TypeCast) else value for value in given]
    return {value.number if isinstance(value, pg.ParamRef) else 0 for value in plain}


def conjuncts(node: Any) -> Iterator[Any]:
    if isinstance(node, pg.BoolExpr) and node.boolop == enums.BoolExprType.AND_EXPR:
        for each in node.args:
            yield from conjuncts(each)
    elif node is not None:
        yield node


def sides(condition: Any) -> tuple[Any, Any]:
    if isinstance(condition, pg.A_Expr) and [each.sval for each in condition.name] == ["="]:
        return condition.lexpr, condition.rexpr
    return None, None


def place(node: Any, owned: dict[str, str]) -> str | None:
    """The alias whose owner column this is; without an alias only where one table is owned."""
    if not isinstance(node, pg.ColumnRef):
        return None
    names = [field.sval for field in node.fields if isinstance(field, pg.String)]
    if len(names) == 2:
        return names[0] if owned.get(names[0]) == names[1] else None
    matching = [alias for alias, column in owned.items() if names == [column]]
    return matching[0] if len(matching) == 1 else None


@cache
def uniques() -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for create in definitions():
        for element in getattr(create, "tableElts", None) or ():
            if isinstance(element, pg.Constraint) and element.contype == enums.ConstrType.CONSTR_UNIQUE:
                found.setdefault(create.relation.relname, []).append(tuple(key.sval for key in element.keys))
    return found
