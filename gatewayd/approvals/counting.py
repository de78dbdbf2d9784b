"""Builds the SELECT that counts the rows of a write before it runs (docs/approvals.md, Preview). Pure.

The SELECT is spliced from the write's own text, then parsed and compared with the write part by part; if a part differs the write
is not counted. It counts each row of the target once, even if FROM or USING matches it several times.
"""

import re
from typing import Final

import msgspec

from gatewayd.approvals.messages import ROWS_COUNTED
from gatewayd.catalog import Catalog
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from gatewayd.sql.text.parse import Node, NotParsed, Tree, parse
from gatewayd.sql.text.tokens import scan

LONGEST: Final = 16 * 1024
_OPEN, _CLOSE = "ASCII_40", "ASCII_41"
_SOURCES: Final = ("SELECT", "WITH", "TABLE", "VALUES", _OPEN)
_POSITION: Final = re.compile(r',?"(?:\w*location|stmt_len|\w*list_(?:start|end))":-?\d+')
_JOINS: Final = {(False, False): "JOIN", (True, False): "LEFT JOIN", (False, True): "RIGHT JOIN", (True, True): "FULL JOIN"}
_AT_MOST_WHEN: Final = "at most so many: conditions of its WHEN clauses may leave rows out"
_AT_MOST_CONFLICT: Final = "at most so many: ON CONFLICT may leave rows out"


class Counting(msgspec.Struct, frozen=True):
    """A count. `sql` is None if the text itself gives the number of `rows`. `why` says in what way the count is inexact."""

    sql: str | None
    rows: int | None = None
    why: str | None = None


class Uncountable(Exception):
    """The write cannot be counted. `str()` says why, in words for the reviewer."""


def counting(statement: Statement, catalog: Catalog) -> Counting:
    """How to count the rows of a write that the policy allows. Raises Uncountable."""
    if len(statement.sql) > LONGEST:
        raise Uncountable("the statement is too long to be counted")
    try:
        tree = parse(statement.sql)
    except NotParsed:
        raise Uncountable("the statement could not be taken apart") from None
    [(node, body)] = tree.node.items()
    if node not in ("UpdateStmt", "DeleteStmt", "MergeStmt", "InsertStmt"):
        raise Uncountable("only UPDATE, DELETE, MERGE and INSERT are counted")
    queries = (each["CommonTableExpr"]["ctequery"] for each in body.get("withClause", {}).get("ctes", ()))
    if any("SelectStmt" not in query for query in queries):
        raise Uncountable("a WITH query of it writes itself")
    if node != "InsertStmt":
        _check_target(body["relation"], catalog)
    made = _Parts(tree, body).counting(node)
    if made.sql is not None:
        asked = analyze(made.sql)
        if not isinstance(asked, Statement) or asked.category != "read" or asked.locks:
            raise Uncountable("a query inside it writes or locks rows itself")
    return made


def explain(statement: Statement) -> str | None:
    """The statement's plain EXPLAIN; None for one that has no plan."""
    if statement.category != "row write" or len(statement.sql) > LONGEST:
        return None
    return "EXPLAIN " + statement.sql.encode()[statement.text_start : statement.text_end].decode()


def _check_target(relation: Node, catalog: Catalog) -> None:
    found = catalog.relation(relation.get("schemaname", "public"), relation["relname"])
    if found is None or found.kind not in ("table", "partitioned table"):
        raise Uncountable("only writes to plain tables are counted")
    if found.rules:
        raise Uncountable("the table has rules, which write elsewhere")
    if found.row_security:
        raise Uncountable("the table has row security, which counts other rows than it lets be written")


class _Parts:
    """One write's text and tree, and its tokens outside of brackets."""

    def __init__(self, tree: Tree, body: Node) -> None:
        self._tree = tree
        self._body = body
        self._data = tree.data[tree.start : tree.end]
        self._tokens = scan(self._data)
        self._depths: list[int] = []
        depth = 0
        for token in self._tokens:
            depth -= token.name == _CLOSE
            self._depths.append(depth)
            depth += token.name == _OPEN
        located = body["relation"].get("location", 0) - tree.start
        self._target = next((index for index, token in enumerate(self._tokens) if token.start == located), -1)
        if self._target < 0:
            raise Uncountable("the statement could not be taken apart")

    def counting(self, node: str) -> Counting:
        match node:
            case "UpdateStmt":
                return self._change("UPDATE", self._after("SET"), "FROM", "fromClause")
            case "DeleteStmt":
                return self._change("FROM", self._after("USING", "WHERE", "RETURNING"), "USING", "usingClause")
            case "MergeStmt":
                return self._merge()
            case _:
                return self._insert()

    # -- the three shapes

    def _change(self, keyword: str, target_ends: int, items: str, clause: str) -> Counting:
        target = self._text(self._behind(keyword), target_ends)
        end = self._after("RETURNING")
        where = self._after("WHERE")
        rest = f"WHERE {self._text(where + 1, end)}" if where < end else ""
        if clause in self._body:
            others = self._text(self._items(items) + 1, min(where, end))
            inner = f"{target} WHERE EXISTS (SELECT 1 FROM {others} {rest})"
        else:
            inner = f"{target} {rest}"
        sql = self._composed(inner)
        query = _counted_query(sql)
        if clause in self._body:
            within = query.get("whereClause", {}).get("SubLink", {}).get("subselect", {}).get("SelectStmt", {})
            same = _same(within.get("fromClause"), self._body[clause]) and _same(
                within.get("whereClause"), self._body.get("whereClause")
            )
        else:
            same = _same(query.get("whereClause"), self._body.get("whereClause"))
        self._check(sql, same and _same(query.get("fromClause"), [{"RangeVar": self._body["relation"]}]))
        return Counting(sql)

    def _merge(self) -> Counting:
        whens = [when["MergeWhenClause"] for when in self._body.get("mergeWhenClauses", ())]
        acting = {when.get("matchKind") for when in whens if when.get("commandType") != "CMD_NOTHING"}
        outer = ("MERGE_WHEN_NOT_MATCHED_BY_TARGET" in acting, "MERGE_WHEN_NOT_MATCHED_BY_SOURCE" in acting)
        using, when = self._after("USING"), self._after("WHEN")
        target = self._text(self._behind("INTO"), using)
        for on in self._places("ON", using, when):
            source, condition = self._text(using + 1, on), self._text(on + 1, when)
            sql = self._composed(f"{source} {_JOINS[outer]} {target} ON {condition}")
            try:
                [joined] = _counted_query(sql).get("fromClause", [{}])
            except Uncountable:
                continue
            join = joined.get("JoinExpr", {})
            if (
                _same(join.get("larg"), self._body["sourceRelation"])
                and _same(join.get("rarg"), {"RangeVar": self._body["relation"]})
                and _same(join.get("quals"), self._body.get("joinCondition"))
            ):
                self._check(sql, equal=True)
                return Counting(sql, why=_AT_MOST_WHEN)
        raise Uncountable("the statement could not be taken apart")

    def _insert(self) -> Counting:
        why = _AT_MOST_CONFLICT if "onConflictClause" in self._body else None
        source = self._body.get("selectStmt")
        if source is None:
            return Counting(None, 1, why)
        lists = source["SelectStmt"].get("valuesLists")
        if lists is not None and not {"limitCount", "limitOffset", "withClause"} & source["SelectStmt"].keys():
            return Counting(None, min(len(lists), ROWS_COUNTED), why)
        end = min([self._after("RETURNING"), *self._places("CONFLICT", self._target, len(self._tokens))])
        end -= end < len(self._tokens) and self._tokens[end].name == "CONFLICT"  # its ON
        for start in range(self._target + 1, end):
            if self._depths[start] == 0 and self._tokens[start].name in _SOURCES:
                sql = self._composed(f"({self._text(start, end)}\n) AS source")
                try:
                    [item] = _counted_query(sql).get("fromClause", [{}])
                except Uncountable:
                    continue
                if _same(item.get("RangeSubselect", {}).get("subquery"), source):
                    self._check(sql, equal=True)
                    return Counting(sql, why=why)
        raise Uncountable("the statement could not be taken apart")

    # -- text

    def _composed(self, items: str) -> str:
        keyword = self._with_ends()
        with_clause = self._text(0, keyword) if "withClause" in self._body else ""
        one_each = f"SELECT 1 FROM {items} LIMIT {ROWS_COUNTED}"
        return f"{with_clause} SELECT pg_catalog.count(*) AS rows FROM ({one_each}) AS counted".strip()

    def _check(self, sql: str, equal: bool) -> None:
        [(_, made)] = parse(sql).node.items()
        if not equal or not _same(made.get("withClause"), self._body.get("withClause")):
            raise Uncountable("the statement could not be taken apart")

    def _text(self, first: int, end: int) -> str:
        """The text of the tokens from `first` to before `end`."""
        if first >= end:
            raise Uncountable("the statement could not be taken apart")
        return self._data[self._tokens[first].start : self._tokens[end - 1].end].decode()

    def _places(self, name: str, first: int, end: int) -> list[int]:
        return [index for index in range(first, end) if self._depths[index] == 0 and self._tokens[index].name == name]

    def _after(self, *names: str) -> int:
        """The index of the first of these keywords after the target, outside of brackets; the end if there is none."""
        found = [place for name in names for place in self._places(name, self._target, len(self._tokens))]
        return min(found, default=len(self._tokens))

    def _behind(self, keyword: str) -> int:
        """The index where the target begins, with its ONLY and bracket: after the last such keyword before its name."""
        found = [index for index in range(self._target) if self._tokens[index].name == keyword]
        if not found:
            raise Uncountable("the statement could not be taken apart")
        return found[-1] + 1

    def _items(self, keyword: str) -> int:
        """The index of the clause's FROM or USING, and not of the FROM in IS DISTINCT FROM."""
        for place in self._places(keyword, self._target, len(self._tokens)):
            if self._tokens[place - 1].name != "DISTINCT":
                return place
        raise Uncountable("the statement could not be taken apart")

    def _with_ends(self) -> int:
        """The index of the verb after the WITH queries: the last one before the target."""
        verbs = ("UPDATE", "DELETE_P", "MERGE", "INSERT")
        return max((index for index in range(self._target) if self._tokens[index].name in verbs), default=0)


def _counted_query(sql: str) -> Node:
    """The query inside `SELECT count(*) FROM ( … )`."""
    try:
        [(_, body)] = parse(sql).node.items()
    except NotParsed:
        raise Uncountable("the statement could not be taken apart") from None
    [item] = body.get("fromClause", [{}])
    found: Node = item.get("RangeSubselect", {}).get("subquery", {}).get("SelectStmt", {})
    return found


def _same(one: object, other: object) -> bool:
    return _bare(one) == _bare(other)


def _bare(node: object) -> str:
    return _POSITION.sub("", msgspec.json.encode(node).decode())
