"""Statement: what the text of one SQL statement says it will do. Facts only: no policy, no catalog (decisions 3.2, 3.3, 3.7).

Made by `analyze()` alone. Positions are byte offsets into the UTF-8 text, -1 where the parser gives none.
"""

from typing import Literal

import msgspec

from gatewayd.catalog import WriteEvent

Category = Literal["read", "row write", "relation write", "unsupported"]


class RelationUse(msgspec.Struct, frozen=True, gc=False):
    """One relation-shaped name in the text that is not a CTE name, and how it is used there."""

    database: str | None  # the first part of database.schema.table
    schema: str | None
    name: str
    reads: bool
    writes: bool
    position: int
    only: bool = False
    creates: bool = False  # the statement brings it into being
    events: "tuple[WriteEvent, ...] | None" = None
    """Which of its rules and triggers a write sets off; None: any."""
    columns: frozenset[str] | None = None
    """Names of all columns that the statement can read from it (unqualified names count for every range item in sight). None: not
    proved, as with `*`, a whole row, a column alias list or NATURAL JOIN. Only asked of relations of pg_catalog."""


class FunctionUse(msgspec.Struct, frozen=True, gc=False):
    """A function that PostgreSQL would look up by this name."""

    schema: str | None
    name: str
    arguments: int  # how many are written; -1 when a VARIADIC or unknown list
    position: int
    trigger: bool = False  # named by CREATE TRIGGER: it runs later, on every write to the table
    constant: str | None = None  # the setting that current_setting names as a constant, the type that pg_input_is_valid does
    grammar_since: int = 0  # not 0: grammar for servers of this version or newer (170000), a call of this name for older ones
    column: "FieldUse | None" = None  # `f(x)` over a range item x, which is `x.f` where no function is called so


class FieldUse(msgspec.Struct, frozen=True, gc=False):
    """A selection `x.name` or `(expr).name`: a column when the catalog proves it, else a call of function `name` (3.5).

    `relation` is the index in `Statement.relations` of the range item selected from, when it is one; `columns` are its output
    names when the text gives them all (subquery, CTE, VALUES, column alias list); `outputs` are its outputs when some of them are
    a relation's columns (`WITH q AS (SELECT *, 1 AS one FROM t) SELECT q.x`): `x` is a column when it is one of the names or a
    column of one of the Stars. All three None: the text cannot tell. System columns (ctid, ...) belong to `relation` only.
    """

    name: str
    position: int
    relation: int | None = None
    columns: tuple[str, ...] | None = None
    outputs: "tuple[str | Star, ...] | None" = None


class OperatorUse(msgspec.Struct, frozen=True, gc=False):
    """An operator that the statement names; `position` is its byte offset."""

    schema: str | None
    name: str
    position: int


class TypeUse(msgspec.Struct, frozen=True, gc=False):
    """A type named by a cast, a column definition, JSON_TABLE, XMLTABLE or a record function's column list."""

    schema: str | None
    name: str  # internal name as the parser folds it: "int4", "varchar", "mood"
    position: int


class Site(msgspec.Struct, frozen=True, gc=False):
    """A place a guardrail or an absolute refusal speaks about: what was found there, in words fit for a reason."""

    rule: Literal["block_unqualified_dml", "block_ddl", "block_dml", "refused"]
    found: str
    position: int


class Star(msgspec.Struct, frozen=True, gc=False):
    """An output `*` or `x.*`; `relation` as in FieldUse. Stars over queries are written out, so `columns` stays None; a Star with
    neither is an unknown number of columns with unknown names."""

    relation: int | None = None
    columns: tuple[str, ...] | None = None


class Statement(msgspec.Struct, frozen=True):
    """The facts about one statement: all that the policy and the masks decide by."""

    sql: str
    kind: str  # statement_type: "SELECT", "CREATE TABLE AS", ...
    category: Category  # the most that any part of it does: a SELECT whose CTE deletes is a "row write"
    fingerprint: str  # 16 hex digits (3.9)
    relations: tuple[RelationUse, ...] = ()  # in order of appearance; the same relation may stand here more than once
    functions: tuple[FunctionUse, ...] = ()
    fields: tuple[FieldUse, ...] = ()
    operators: tuple[OperatorUse, ...] = ()
    types: tuple[TypeUse, ...] = ()
    sites: tuple[Site, ...] = ()  # "refused" ones deny by table_access whatever the policy says
    used_columns: frozenset[str] | None = None
    """Names of all columns that are more than a result column as it stands: operands, arguments, those of subqueries. PostgreSQL
    may convert them, or convert something to their types. None: any column may be meant."""
    setting: str | None = None  # SHOW's
    outputs: tuple[str | Star, ...] = ()  # names of the result columns as PostgreSQL would choose them (FigureColname)
    returns_rows: bool = False
    form: Literal["query", "utility", "dml"] = "query"
    """How the shell runs it: `query` can stand inside FROM ( … ) as it is; `utility` (SHOW, EXPLAIN, DDL) runs as written;
    `dml` is INSERT/UPDATE/DELETE/MERGE, or a SELECT under a data-modifying WITH: see `splice`."""
    locks: bool = False  # FOR UPDATE/SHARE at any depth: runs READ WRITE
    explains: Literal["no", "plan", "analyze"] = "no"
    text_start: int = 0  # byte offset of its first token: behind `;` and comments that stand before it
    text_end: int = 0  # byte offset after the statement itself: before its `;` and trailing blanks and comments
    splice: tuple[int, int] | None = None
    """Byte span of the RETURNING list of a `dml`, or of the main query below a data-modifying WITH."""


class Unparsed(msgspec.Struct, frozen=True, gc=False):
    """A text that is no single statement PostgreSQL would take. `fingerprint` is over the raw text."""

    sql: str
    rule: Literal["parse_error", "multi_statement"]
    reason: str
    fingerprint: str
