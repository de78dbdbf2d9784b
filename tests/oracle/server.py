"""The server as oracle: what it binds in a statement, by the body of a function that is made of it and undone.

`CREATE FUNCTION … BEGIN ATOMIC <statement>; END` leaves the server's own bound tree in pg_proc.prosqlbody, for every query and
row write, views unexpanded. The function is made in a subtransaction that always fails, so nothing stays.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from gatewayd.postgres.embedded import EmbeddedPostgres
from tests.oracle.node_tree import Node, nodes, parse

_BOUND: Final = r"""
SET search_path = public, pg_temp;
SET default_transaction_read_only = off;
SET check_function_bodies = on;
CREATE FUNCTION pg_temp.bound(sql text) RETURNS json LANGUAGE plpgsql AS $bound$
DECLARE tree text;
BEGIN
    BEGIN
        EXECUTE 'CREATE FUNCTION pg_temp.o() RETURNS void LANGUAGE sql BEGIN ATOMIC ' || sql || E'\n; END';
        SELECT p.prosqlbody::text INTO STRICT tree FROM pg_catalog.pg_proc AS p
        WHERE p.proname = 'o' AND p.pronamespace = pg_my_temp_schema();
        RAISE EXCEPTION USING ERRCODE = 'ORACL';
    EXCEPTION WHEN OTHERS THEN
        IF SQLSTATE <> 'ORACL' THEN RETURN json_build_object('code', SQLSTATE, 'message', SQLERRM); END IF;
    END;
    RETURN json_build_object('tree', tree);
END $bound$;
"""
_NAMES: Final = """
SELECT json_build_object(
  'relations', (SELECT json_object_agg(c.oid, json_build_array(n.nspname, c.relname))
                FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace),
  'functions', (SELECT json_object_agg(p.oid, json_build_array(n.nspname, p.proname))
                FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace),
  'operators', (SELECT json_object_agg(o.oid, json_build_array(n.nspname, o.oprname, o.oprcode::oid::int8))
                FROM pg_operator AS o JOIN pg_namespace AS n ON n.oid = o.oprnamespace),
  'types', (SELECT json_object_agg(t.oid, json_build_array(n.nspname, t.typname, t.typinput::oid::int8, t.typoutput::oid::int8,
                                                          t.typtype))
            FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace))
"""
_BATCH: Final = 400
_BY_FORM: Final = {"0": "calls", "1": "casts", "2": "casts", "3": "grammar"}  # CoercionForm


class Names(msgspec.Struct, frozen=True):
    """What oids stand for."""

    relations: dict[int, tuple[str, str]]
    functions: dict[int, tuple[str, str]]
    operators: dict[int, tuple[str, str, int]]  # with the oid of its function
    types: dict[int, tuple[str, str, int, int, str]]  # with input and output function, and the kind


class Bound(msgspec.Struct, frozen=True):
    """What the server bound in one statement, by oid."""

    relations: frozenset[int]
    calls: frozenset[int]  # functions, aggregates and window functions that the statement calls as such
    casts: frozenset[int]  # functions that casts run, written or not, input and output functions among them
    grammar: frozenset[int]  # functions behind words of the grammar
    operators: frozenset[int]
    types: frozenset[int]  # that something is converted to, domains among them

    @property
    def functions(self) -> frozenset[int]:
        return self.calls | self.casts | self.grammar


class Refused(msgspec.Struct, frozen=True):
    """The server does not take the statement."""

    code: str
    message: str


class Oracle:
    """One database of a running server."""

    def __init__(self, server: EmbeddedPostgres, database: str) -> None:
        self._server = server
        self._database = database
        self.names = msgspec.convert(json.loads(server.psql(_NAMES, database)), Names, strict=False)

    def bind(self, statements: Sequence[str]) -> list[Bound | Refused]:
        """What the server makes of each statement: no text may hold several."""
        found: list[Bound | Refused] = []
        for start in range(0, len(statements), _BATCH):
            texts = json.dumps(list(statements[start : start + _BATCH]))
            tag = "$texts$"
            assert tag not in texts
            each = f"json_array_elements_text({tag}{texts}{tag}) WITH ORDINALITY AS x (s, n)"
            answers = self._server.psql(f"{_BOUND}SELECT pg_temp.bound(s) FROM {each} ORDER BY n;", self._database)
            found += [self._read(json.loads(line)) for line in answers.splitlines() if line.startswith("{")]
        assert len(found) == len(statements)
        return found

    def _read(self, answer: dict[str, Any]) -> Bound | Refused:
        if "code" in answer:
            return Refused(answer["code"], answer["message"])
        return self.bound(nodes(parse(answer["tree"])))

    def bound(self, found: Iterable[Node]) -> Bound:
        found = list(found)
        words = {id(below) for node in found if node["node"] == "JSONCONSTRUCTOREXPR" for below in _grammar_of(node)}
        relations: set[int] = set()
        functions: dict[str, set[int]] = {"calls": set(), "casts": set(), "grammar": set()}
        operators: set[int] = set()
        types: set[int] = set()
        for node in found:
            match node["node"]:
                case "RANGETBLENTRY" | "RTE" if node.get("rtekind") == "0":
                    relations.add(int(node["relid"]))
                case "FUNCEXPR":
                    kind = "grammar" if id(node) in words else _BY_FORM[node["funcformat"]]
                    functions[kind].add(int(node["funcid"]))
                    if kind == "casts":
                        types.add(int(node["funcresulttype"]))
                case "AGGREF":
                    functions["grammar" if id(node) in words else "calls"].add(int(node["aggfnoid"]))
                case "WINDOWFUNC":
                    functions["grammar" if id(node) in words else "calls"].add(int(node["winfnoid"]))
                case "OPEXPR" | "DISTINCTEXPR" | "NULLIFEXPR" | "SCALARARRAYOPEXPR":
                    operators.add(int(node["opno"]))
                case "ROWCOMPAREEXPR":
                    operators.update(int(each) for each in node["opnos"] if each != "o")
                case "COERCEVIAIO":
                    types.add(int(node["resulttype"]))
                    functions["casts"].add(self.names.types[int(node["resulttype"])][2])
                    source = _type_of(node["arg"])
                    if source:
                        functions["casts"].add(self.names.types[source][3])
                case "COERCETODOMAIN" | "ARRAYCOERCEEXPR" | "RELABELTYPE" | "CONVERTROWTYPEEXPR":
                    types.add(int(node["resulttype"]))
        return Bound(
            frozenset(relations),
            frozenset(functions["calls"]),
            frozenset(functions["casts"]),
            frozenset(functions["grammar"]),
            frozenset(operators),
            frozenset(types),
        )


_TYPE_FIELDS: Final = (
    "vartype",
    "consttype",
    "funcresulttype",
    "opresulttype",
    "resulttype",
    "aggtype",
    "wintype",
    "paramtype",
    "coalescetype",
    "casetype",
    "array_typeid",
    "minmaxtype",
    "type",
    "row_typeid",
    "refrestype",
)


def _grammar_of(constructor: Node) -> list[Node]:
    """The aggregate or function that a JSON constructor is made of, and what puts its result into RETURNING's type."""
    parts = [constructor.get("func"), constructor.get("coercion")]
    return [each for each in parts if isinstance(each, dict)] + [each for each in nodes(parts[1:]) if each["node"] == "FUNCEXPR"]


_LARGEST_KIND: Final = 15  # `type` is a kind in some nodes; the first type is 16, boolean


def _type_of(node: Any) -> int:
    """The type of an expression's value; 0 where its node does not say it in one field."""
    if isinstance(node, dict):
        for field in _TYPE_FIELDS:
            value = node.get(field)
            if isinstance(value, str) and value.isdigit() and int(value) > _LARGEST_KIND:
                return int(value)
    return 0
