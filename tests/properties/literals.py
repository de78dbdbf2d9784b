"""Constants of PostgreSQL's types, as text that stands in a statement."""

from typing import Final

from tests.properties.draw import Draw

WORDS: Final = (
    "",
    "a",
    "x",
    "user 3",
    "u1@example.org",
    "Note 2",
    "it''s",
    "%",
    "_",
    "1",
    "7",
    "-3",
    "true",
    "2024-01-05",
    "ÄÖ",
    "𝒳",
    "\\",
    "NULL",
    "null",
    "happy",
    "secrets",
    "public.secrets",
    "hr",
    "public",
    "users",
    "simple",
    "b",
    "$.a",
    "SELECT code FROM secrets",
    "item & number",
)
VALUES: Final[dict[str, tuple[str, ...]]] = {
    "timestamp with time zone": ("2024-01-03 00:00+00", "infinity", "1999-12-31 23:59:59.5+02"),
    "timestamp without time zone": ("2024-05-01 10:00", "-infinity", "2000-02-29"),
    "date": ("2024-01-05", "1990-01-01", "2023-06-01", "infinity"),
    "time without time zone": ("10:00", "23:59:59.999", "00:00"),
    "time with time zone": ("10:00+02", "00:00-11"),
    "interval": ("1 day", "2 hours", "1 mon -3 days", "P1Y2M"),
    "json": ('{"a": 1, "b": [1, "x"]}', "[]", "null", '"s"', "12.50"),
    "jsonb": ('{"a": 1, "b": [1, "x"]}', '[{"sku": 1}]', "null", '"s"', "12.50", '{"street": "s", "zip": 3}'),
    "jsonpath": ("$.a", "$[*].sku", "strict $.b[1]", "$.** ? (@ > 1)", 'lax $."c"'),
    "uuid": ("c4ca4238-a0b9-2382-0dcc-509a6f75849b", "00000000-0000-0000-0000-000000000000"),
    "bytea": ("\\x01ff", "", "abc"),
    "text[]": ("{a,b1}", "{}", '{NULL,"x y"}'),
    "integer[]": ("{1,2,3}", "{}", "{NULL,5}", "{{1,2},{3,4}}"),
    "inet": ("10.0.0.3", "192.168.0.0/16", "::1"),
    "cidr": ("10.0.0.0/8", "::/0"),
    "macaddr": ("08:00:2b:01:02:03",),
    "macaddr8": ("08:00:2b:01:02:03:04:05",),
    "int4range": ("[1,5)", "empty", "(,3]"),
    "int8range": ("[1,5)", "empty"),
    "numrange": ("[1.5,5)", "(,)"),
    "daterange": ("[2024-01-01,2024-02-01)", "empty"),
    "tsrange": ("[2024-01-01 00:00,2024-02-01 00:00)",),
    "tstzrange": ("[2024-01-01 00:00+00,2024-02-01 00:00+00)",),
    "int4multirange": ("{[1,3),[5,9)}", "{}"),
    "nummultirange": ("{[1,3)}", "{}"),
    "datemultirange": ("{[2024-01-01,2024-02-01)}",),
    "tsvector": ("'item':1 'number':2", "a b c"),
    "tsquery": ("'item' & 'number'", "'a' | !'b'", "a"),
    "point": ("(1,2)", "(0,0)"),
    "box": ("(1,1),(0,0)",),
    "circle": ("<(0,0),2>",),
    "line": ("{1,-1,0}",),
    "lseg": ("[(0,0),(1,1)]",),
    "path": ("[(0,0),(1,1),(2,0)]", "((0,0),(1,1))"),
    "polygon": ("((0,0),(1,1),(2,0))",),
    "money": ("12.50", "-3"),
    "bit": ("1", "0"),
    "bit(4)": ("1010", "0001"),
    "bit varying": ("101", ""),
    '"char"': ("a", "b"),
    "character": ("a", " "),
    "name": ("users", "secrets", "id"),
    "regclass": ("users", "pg_class", "public.secrets"),
    "regtype": ("integer", "mood", "checked"),
    "regproc": ("now", "spy"),
    "regprocedure": ("lower(text)", "spy()"),
    "regrole": ("postgres",),
    "regnamespace": ("public", "hr"),
    "regconfig": ("simple", "english"),
    "regdictionary": ("simple",),
    "regoper": ("!~~",),
    "regoperator": ("+(integer,integer)",),
    "regcollation": ('"C"',),
    "oid": ("1259", "77001", "16384"),
    "xid": ("3", "700"),
    "xid8": ("3", "700"),
    "cid": ("0",),
    "tid": ("(0,1)", "(0,5)"),
    "pg_lsn": ("0/16B3748",),
    "pg_snapshot": ("10:20:10,14,15",),
    "txid_snapshot": ("10:20:10,14,15",),
    "aclitem": ("postgres=r/postgres",),
    "refcursor": ("c",),
    "xml": ("<a>1</a>", '<r><x n="1">u</x></r>'),
    "mood": ("sad", "ok", "happy"),
    "addr": ("(s,c,3)", "(,,)"),
    "holder": ("(1,2)",),
    "checked": ("5", "0"),
    "pos": ("5", "0", "900"),
    "label": ("x", "note 3"),
    "span": ("[1,4)", "empty"),
    "spans": ("{[1,4)}",),
    "users": ('(1,n,e,3,ok,"(s,c,1)","{a}","{}",1.5,"2024-01-01 00:00+00",c4ca4238-a0b9-2382-0dcc-509a6f75849b,t,2)',),
}
INTEGERS: Final = ("smallint", "integer", "bigint")
NUMBERS: Final = (*INTEGERS, "numeric", "real", "double precision")
TEXTS: Final = ("text", "character varying")
COMMON: Final = (
    "integer",
    "integer",
    "integer",
    "bigint",
    "numeric",
    "double precision",
    "text",
    "text",
    "text",
    "boolean",
    "boolean",
    "date",
    "timestamp with time zone",
    "interval",
    "jsonb",
    "json",
    "integer[]",
    "text[]",
    "mood",
    "addr",
    "int4range",
    "bytea",
    "uuid",
)
BASIC: Final = (*NUMBERS, *TEXTS, "boolean", *VALUES)


def quoted(draw: Draw, text: str) -> str:
    """One of the ways to write a string. The way belongs to the shape, except where the text allows only one."""
    way = draw.shape.randrange(12)
    doubled = text.replace("'", "''")
    if way == 0:
        return "E'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if way == 1 and "$q$" not in text:
        return f"$q${text}$q$"
    if way == 2:
        return "U&'" + doubled.replace("\\", "\\\\").replace("a", "\\0061") + "'"
    return f"'{doubled}'"


def constant(draw: Draw, type_: str) -> str:
    """A constant of this type; NULL now and then, and for types that have none here."""
    if draw.chance(0.04):
        return f"NULL::{type_}" if draw.chance(0.5) else "NULL"
    if type_ in INTEGERS:
        number = draw.literal(("0", "1", "2", "3", "5", "7", "100", "32000"))
        return f"(-{number})" if draw.chance(0.05) else number
    if type_ == "numeric":
        return draw.literal(("0.0", "1.50", "10.5", "1e3", "99999999999999999999.5"))
    if type_ in ("real", "double precision"):
        return f"'{draw.literal(('0', '1.5', 'NaN', '-2.25', 'Infinity'))}'::{type_}"
    if type_ == "boolean":
        return draw.pick(("true", "false"))
    if type_ in TEXTS:
        text = quoted(draw, draw.literal(WORDS).replace("''", "'"))
        return text if draw.chance(0.7) else f"{text}::{type_}"
    values = VALUES.get(type_)
    if values is None:
        return f"NULL::{type_}"
    text = quoted(draw, draw.literal(values))
    if draw.chance(0.2):
        return f"CAST({text} AS {type_})"
    if type_.islower() and type_.isalnum() and draw.chance(0.2):
        return f"{type_} {text}" if not text.startswith("$") else f"{text}::{type_}"
    return f"{text}::{type_}"
