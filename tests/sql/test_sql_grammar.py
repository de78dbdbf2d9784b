"""The walk's allow-list against the parser's own grammar: a node or field that nobody has looked at fails here, loudly."""

import inspect
from typing import Any

import pytest
from pglast import ast

from gatewayd.sql.facts import kinds
from gatewayd.sql.facts.analyze import STEPS
from gatewayd.sql.facts.grammar import EXPRESSIONS, HANDLED, NODES

# Nodes that PostgreSQL makes after parsing; a raw tree never holds them, and the walk refuses them.
AFTER_PARSING = frozenset(
    [
        "Aggref",
        "AlternativeSubPlan",
        "ArrayCoerceExpr",
        "ArrayExpr",
        "CallContext",
        "CaseTestExpr",
        "CoerceToDomain",
        "CoerceToDomainValue",
        "CoerceViaIO",
        "CollateExpr",
        "ConvertRowtypeExpr",
        "CurrentOfExpr",
        "FieldSelect",
        "FieldStore",
        "FromExpr",
        "FuncExpr",
        "InferenceElem",
        "InlineCodeBlock",
        "JsonConstructorExpr",
        "JsonExpr",
        "MergeAction",
        "OnConflictExpr",
        "OpExpr",
        "Param",
        "Query",
        "RTEPermissionInfo",
        "RangeTblEntry",
        "RangeTblFunction",
        "RangeTblRef",
        "RelabelType",
        "ReturningExpr",
        "RowCompareExpr",
        "RowMarkClause",
        "ScalarArrayOpExpr",
        "SetOperationStmt",
        "SortGroupClause",
        "SubPlan",
        "SubscriptingRef",
        "TableFunc",
        "TableSampleClause",
        "TargetEntry",
        "ValUnion",
        "Var",
        "WindowClause",
        "WindowFunc",
        "WindowFuncRunCondition",
        "WithCheckOption",
    ]
)
# Parts of denied statements only.
PARTS_OF_DENIED = frozenset(
    ["CreateOpClassItem", "FunctionParameter", "ObjectWithArgs", "PublicationObjSpec", "PublicationTable", "VacuumRelation"]
)
# Parts whose fields are data: the node that holds them is enough.
DATA = frozenset({"JsonFormat", "JsonReturning"})
OTHERWISE_REFUSED = frozenset({"ParamRef"})  # parse() refuses placeholders before the walk


def grammar() -> dict[str, dict[str, Any]]:
    found = {}
    for name, node in inspect.getmembers(ast, inspect.isclass):
        if issubclass(node, ast.Node) and node is not ast.Node and isinstance(slots := vars(node).get("__slots__"), dict):
            found[name] = {"def" if field == "def_" else field: slot for field, slot in slots.items()}
    return found


def test_every_node_of_the_grammar_is_handled_or_denied() -> None:
    placed = set(NODES) | set(kinds.DENIED) | AFTER_PARSING | PARTS_OF_DENIED | DATA | OTHERWISE_REFUSED
    assert set(grammar()) - placed - {"RawStmt"} == set()


def test_no_node_is_both_known_and_denied() -> None:
    assert set(NODES) & (set(kinds.DENIED) | AFTER_PARSING | PARTS_OF_DENIED) == set()
    assert set(EXPRESSIONS) & set(HANDLED) == set()
    assert set(kinds.ALLOWED) & set(kinds.DENIED) == set()


@pytest.mark.parametrize("name", sorted(set(NODES) & set(grammar())))
def test_every_field_of_a_known_node_is_walked_read_or_refused(name: str) -> None:
    form = NODES[name]
    fields = set(grammar()[name])
    if name == "A_Const":  # its value's field is named after its type
        fields = fields - {"val"} | {"ival", "fval", "boolval", "sval", "bsval"}
    assert fields - form.known - form.refused == set()
    assert form.known & form.refused == set()


def test_fields_that_hold_nodes_are_walked_in_plain_expressions() -> None:
    names_only = {("CollateClause", "collname"), ("GroupingFunc", "refs"), ("RowExpr", "colnames"), ("XmlExpr", "arg_names")}
    for name in EXPRESSIONS:
        if name == "A_Const":
            continue
        walked = {field for field, _ in EXPRESSIONS[name].children}
        for field, slot in grammar().get(name, {}).items():
            holds_nodes = slot.c_type.endswith("*") and slot.c_type not in ("char*", "JsonFormat*", "JsonReturning*")
            assert not holds_nodes or field in walked or (name, field) in names_only, (name, field)


def test_statement_kinds_that_are_not_allowed_have_no_way_into_the_walk() -> None:
    assert set(STEPS) & set(kinds.DENIED) == set()
    assert set(kinds.ALLOWED) <= set(STEPS)


def test_typed_children_name_the_type_that_the_grammar_gives_them() -> None:
    for name, form in NODES.items():
        for field, body in form.children:
            slot = grammar().get(name, {}).get(field)
            if slot is None:
                continue
            generic = slot.c_type in ("Node*", "Expr*", "List*")
            assert body == ("" if generic else slot.c_type.rstrip("*")), (name, field)
