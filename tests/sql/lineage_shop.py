"""A catalog with marked columns, and lineage in one line: what the tests of lineage share."""

from gatewayd.catalog import Catalog, Column, Function, Relation, RelationKind
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from gatewayd.sql.lineage.origins import Entangled, Mark, MarkedColumns
from gatewayd.sql.lineage.whole_statement import columns_of, touches

SHOWN, HIDDEN = Mark("shown", keeps_null=True), Mark("hidden", keeps_null=False)


def relation(
    oid: int,
    name: str,
    columns: str,
    *,
    kind: RelationKind = "table",
    schema: str = "public",
    reads: tuple[int, ...] = (),
    children: tuple[int, ...] = (),
    definition: str = "",
) -> Relation:
    """`columns` are `name` (a text) or `name:type`."""
    shaped = tuple(Column(each.partition(":")[0], each.partition(":")[2] or "text") for each in columns.split())
    return Relation(oid, schema, name, kind, shaped, reads=reads, children=children, definition=definition)


def view(oid: int, name: str, columns: str, definition: str, *reads: int, kind: RelationKind = "view") -> Relation:
    return relation(oid, name, columns, kind=kind, reads=reads, definition=definition)


USERS = " SELECT {} FROM public.users{};"
RELATIONS = [
    relation(20000, "users", "id:integer name city email ssn"),
    relation(20001, "orders", "id:integer user_id:integer total:numeric note card"),
    relation(20002, "places", "id:integer city"),
    relation(20003, "parts", "id:integer email", schema="app"),
    relation(20004, "events", "id:integer ip:inet", children=(20005,)),
    relation(20005, "events_1", "id:integer ip:inet"),
    view(20010, "contacts", "id name mail", USERS.format("id, name, email AS mail", ""), 20000),
    view(20011, "contacts2", "id mail", " SELECT contacts.id, contacts.mail FROM public.contacts;", 20010),
    view(20012, "lowered", "id low", USERS.format("users.id, lower(users.email) AS low", ""), 20000),
    view(20013, "matching", "id", USERS.format("users.id", " WHERE (users.email = 'a'::text)"), 20000),
    view(20014, "cities", "city n", USERS.format("users.city, count(*) AS n", " GROUP BY users.city"), 20000),
    view(20015, "kept", "id email", USERS.format("id, email", ""), 20000, kind="materialized view"),
    view(20016, "lost", "id email", "", 20000),
    view(20017, "marked_low", "id low", USERS.format("users.id, lower(users.email) AS low", ""), 20000),
    view(20018, "twice", "id mail", USERS.format("id, email AS mail", ""), 20000),
    view(20019, "circle", "id email", " SELECT circle.id, users.email FROM public.circle, public.users;", 20019, 20000),
    relation(5000, "pg_stats", "tablename most_common_vals", schema="pg_catalog", kind="view"),
    relation(5001, "pg_class", "oid:oid relname", schema="pg_catalog"),
]
MARKS = {
    20000: {"email": SHOWN, "ssn": HIDDEN},
    20001: {"card": SHOWN},
    20004: {"ip": HIDDEN},
    20005: {"ip": HIDDEN},
    20017: {"low": SHOWN},
    20018: {"mail": HIDDEN},
}


def marks(*functions: Function) -> MarkedColumns:
    catalog = Catalog(
        1,
        "shop",
        160000,
        relations={(each.schema, each.name): each for each in RELATIONS},
        functions={each.oid: each for each in functions},
    )
    return MarkedColumns(catalog, lambda each: MARKS.get(each.oid, {}), lambda one, other: one if one == other else HIDDEN)


def lineage(sql: str, of: MarkedColumns | None = None) -> str:
    """`id mail=users.email n*` (`*`: any number of free columns), `free` where nothing marked is touched, `refused: why`."""
    of = of or marks()
    statement = analyze(sql)
    assert isinstance(statement, Statement), statement
    if not touches(statement, of):
        return "free"
    try:
        columns = columns_of(statement, of)
    except Entangled as entangled:
        return f"refused: {entangled}"
    shown = []
    for column in columns:
        sources = "+".join(each.removeprefix("public.") for each in getattr(column.source, "columns", ()))
        shown.append(f"{column.name}{'=' if sources else ''}{sources}{'*' if column.many else ''}")
    return " ".join(shown)
