"""The parser's node types that the walk knows, field by field: the allow-list of the grammar (decisions 3.2, 3.3).

A node that is not here, or that carries a field not named here, is refused by the walk: a newer grammar opens nothing by itself.
`tests/sql/test_sql_grammar.py` holds this table against the parser's own list of nodes and fields.
"""

from collections.abc import Mapping

import msgspec


class Form(msgspec.Struct, frozen=True, gc=False):
    """What the walk does with the fields of one node type."""

    children: tuple[tuple[str, str], ...]  # (field, type of the body that stands there, "" where the value names its type)
    known: frozenset[str]  # every field that may be there; `children` included
    refused: frozenset[str] = frozenset()  # fields of the grammar that deny when they are there


def _form(children: str = "", also: str = "", refused: str = "") -> Form:
    """`children` are walked, `also` are read by the node's own handler or mean nothing, `refused` deny."""
    pairs = []
    for word in children.split():
        field, _, body = word.partition(":")
        pairs.append((field, body))
    known = {field for field, _ in pairs} | set(also.split()) | {"location"}
    return Form(tuple(pairs), frozenset(known), frozenset(refused.split()))


# Expressions that run nothing by themselves: their parts are walked.
EXPRESSIONS: Mapping[str, Form] = {
    "A_ArrayExpr": _form("elements", "list_start list_end"),
    "A_Const": _form("", "isnull ival fval boolval sval bsval"),
    "A_Indices": _form("lidx uidx", "is_slice"),
    "A_Star": _form(),
    "BoolExpr": _form("args", "boolop"),
    "BooleanTest": _form("arg", "booltesttype"),
    "CaseWhen": _form("expr result"),
    "CoalesceExpr": _form("args"),
    "CollateClause": _form("arg", "collname"),  # collations run no function of the database
    "GroupingFunc": _form("args", "refs agglevelsup"),
    "GroupingSet": _form("content", "kind"),
    "Integer": _form("", "ival"),
    "Float": _form("", "fval"),
    "Boolean": _form("", "boolval"),
    "String": _form("", "sval"),
    "BitString": _form("", "bsval"),
    "JsonAggConstructor": _form("output:JsonOutput agg_filter agg_order over:WindowDef"),
    "JsonArgument": _form("val:JsonValueExpr", "name"),
    "JsonBehavior": _form("expr", "btype coerce"),
    "JsonIsPredicate": _form("expr", "format item_type unique_keys"),
    "JsonKeyValue": _form("key value:JsonValueExpr"),
    "JsonOutput": _form("typeName:TypeName", "returning"),
    "JsonTablePathSpec": _form("string", "name name_location"),
    "JsonValueExpr": _form("raw_expr formatted_expr", "format"),
    "List": _form("items"),
    "MinMaxExpr": _form("args", "op"),
    "NamedArgExpr": _form("arg", "name argnumber"),
    "NullTest": _form("arg", "nulltesttype argisrow"),
    "RowExpr": _form("args", "row_format colnames"),
    "SQLValueFunction": _form("", "op typmod"),  # CURRENT_DATE, CURRENT_USER, …: what every session knows of itself
    "SetToDefault": _form("", "typeMod"),
    "WindowDef": _form("partitionClause orderClause startOffset endOffset", "name refname frameOptions"),
    "XmlExpr": _form("named_args args", "op name arg_names xmloption indent typmod"),
    "XmlSerialize": _form("expr typeName:TypeName", "xmloption indent"),
    "ResTarget": _form("indirection val", "name"),
    "JsonTableColumn": _form(
        "typeName:TypeName pathspec:JsonTablePathSpec columns on_empty:JsonBehavior on_error:JsonBehavior",
        "coltype name format wrapper quotes",
    ),
    "RangeTableFuncCol": _form("typeName:TypeName colexpr coldefexpr", "colname for_ordinality is_not_null"),
    "StatsElem": _form("expr", "name"),
}

# Nodes with a handler of their own (expressions.py, queries.py, changes.py, definitions.py).
HANDLED: Mapping[str, Form] = {
    "A_Expr": _form("lexpr rexpr", "kind name rexpr_list_start rexpr_list_end"),
    "A_Indirection": _form("arg indirection"),
    "CaseExpr": _form("arg args defresult"),
    "ColumnRef": _form("", "fields"),
    "FuncCall": _form(
        "args agg_order agg_filter over:WindowDef",
        "funcname agg_within_group agg_star agg_distinct func_variadic funcformat",
    ),
    "JsonArrayAgg": _form("constructor:JsonAggConstructor arg:JsonValueExpr", "absent_on_null"),
    "JsonArrayConstructor": _form("exprs output:JsonOutput", "absent_on_null"),
    "JsonArrayQueryConstructor": _form("query output:JsonOutput", "format absent_on_null"),
    "JsonFuncExpr": _form(
        "context_item:JsonValueExpr pathspec passing output:JsonOutput on_empty:JsonBehavior on_error:JsonBehavior",
        "op column_name wrapper quotes",
    ),
    "JsonObjectAgg": _form("constructor:JsonAggConstructor arg:JsonKeyValue", "absent_on_null unique"),
    "JsonObjectConstructor": _form("exprs output:JsonOutput", "absent_on_null unique"),
    "JsonParseExpr": _form("expr:JsonValueExpr output:JsonOutput", "unique_keys"),
    "JsonScalarExpr": _form("expr output:JsonOutput"),
    "JsonSerializeExpr": _form("expr:JsonValueExpr output:JsonOutput"),
    "MergeSupportFunc": _form("", "msftype msfcollid"),
    "MultiAssignRef": _form("source", "colno ncolumns"),
    "SortBy": _form("node", "sortby_dir sortby_nulls useOp"),
    "SubLink": _form("testexpr subselect", "subLinkType subLinkId operName"),
    "TypeCast": _form("arg typeName:TypeName"),
    "TypeName": _form("typmods", "names typemod arrayBounds", refused="setof pct_type"),
    "IndexElem": _form("expr opclassopts", "name indexcolname collation opclass ordering nulls_ordering"),
    "SelectStmt": _form(
        "",
        "distinctClause intoClause targetList fromClause whereClause groupClause groupDistinct havingClause windowClause "
        "valuesLists sortClause limitOffset limitCount limitOption lockingClause withClause op all larg rarg",
    ),
    "CommonTableExpr": _form(
        "",
        "ctename aliascolnames ctematerialized ctequery search_clause cycle_clause",
        refused="cterecursive cterefcount ctecolnames ctecoltypes ctecoltypmods ctecolcollations",
    ),
    "CTESearchClause": _form("", "search_col_list search_breadth_first search_seq_column"),
    "CTECycleClause": _form(
        "cycle_mark_value cycle_mark_default",
        "cycle_col_list cycle_mark_column cycle_path_column",
        refused="cycle_mark_typmod cycle_mark_type cycle_mark_collation cycle_mark_neop",
    ),
    "WithClause": _form("", "ctes recursive"),
    "IntoClause": _form("", "rel colNames options onCommit skipData", refused="accessMethod tableSpaceName viewQuery"),
    "LockingClause": _form("", "lockedRels strength waitPolicy"),
    "RangeVar": _form("", "catalogname schemaname relname inh relpersistence alias"),
    "Alias": _form("", "aliasname colnames"),
    "RangeSubselect": _form("", "lateral subquery alias"),
    "RangeFunction": _form("", "lateral ordinality is_rowsfrom functions alias coldeflist"),
    "RangeTableFunc": _form("", "lateral docexpr rowexpr namespaces columns alias"),
    "RangeTableSample": _form("", "relation method args repeatable"),
    "JsonTable": _form("", "context_item pathspec passing columns on_error alias lateral"),
    "JoinExpr": _form("", "jointype isNatural larg rarg usingClause join_using_alias quals alias", refused="rtindex"),
    "InsertStmt": _form("", "relation cols selectStmt onConflictClause returningClause withClause override"),
    "UpdateStmt": _form("", "relation targetList whereClause fromClause returningClause withClause"),
    "DeleteStmt": _form("", "relation usingClause whereClause returningClause withClause"),
    "MergeStmt": _form("", "relation sourceRelation joinCondition mergeWhenClauses returningClause withClause"),
    "OnConflictClause": _form("", "action infer targetList whereClause"),
    "InferClause": _form("indexElems whereClause", "conname"),
    "MergeWhenClause": _form("condition targetList values", "matchKind commandType override"),
    "ReturningClause": _form("", "options exprs"),
    "ReturningOption": _form("", "option value"),
    "CreateStmt": _form(
        "",
        "relation tableElts inhRelations partbound partspec ofTypename constraints options oncommit if_not_exists",
        refused="tablespacename accessMethod nnconstraints",
    ),
    "CreateTableAsStmt": _form("", "query into objtype is_select_into if_not_exists"),
    "ViewStmt": _form("", "view aliases query replace options withCheckOption"),
    "RefreshMatViewStmt": _form("", "concurrent skipData relation"),
    "IndexStmt": _form(
        "",
        "idxname relation accessMethod indexParams indexIncludingParams options whereClause unique nulls_not_distinct concurrent "
        "if_not_exists",
        refused="tableSpace excludeOpNames idxcomment indexOid oldNumber oldCreateSubid oldFirstRelfilelocatorSubid primary "
        "isconstraint iswithoutoverlaps deferrable initdeferred transformed reset_default_tblspc",
    ),
    "CreateSeqStmt": _form("", "sequence options if_not_exists", refused="ownerId for_identity"),
    "AlterSeqStmt": _form("", "sequence options missing_ok", refused="for_identity"),
    "CreateTrigStmt": _form(
        "",
        "replace isconstraint trigname relation funcname args row timing events columns whenClause transitionRels deferrable "
        "initdeferred constrrel",
    ),
    "TriggerTransition": _form("", "name isNew isTable"),
    "RuleStmt": _form("", "relation rulename whereClause event instead actions replace"),
    "CreatePolicyStmt": _form("", "policy_name table cmd_name permissive roles qual with_check"),
    "AlterPolicyStmt": _form("", "policy_name table roles qual with_check"),
    "AlterTableStmt": _form("", "relation cmds objtype missing_ok"),
    "AlterTableCmd": _form("", "subtype name num def behavior missing_ok recurse", refused="newowner"),
    "ATAlterConstraint": _form(
        "",
        "conname alterEnforceability is_enforced alterDeferrability deferrable initdeferred alterInheritability noinherit",
    ),
    "ReplicaIdentityStmt": _form("", "identity_type name"),
    "ColumnDef": _form(
        "typeName:TypeName raw_default constraints",
        "colname compression is_local is_not_null storage storage_name identity generated collClause",
        refused="inhcount is_from_type cooked_default identitySequence collOid fdwoptions",
    ),
    "Constraint": _form(
        "raw_expr where_clause",
        "contype conname deferrable initdeferred is_enforced skip_validation initially_valid is_no_inherit generated_when "
        "generated_kind nulls_not_distinct keys without_overlaps including exclusions options indexname access_method "
        "pktable fk_attrs pk_attrs "
        "fk_with_period pk_with_period fk_matchtype fk_upd_action fk_del_action fk_del_set_cols",
        refused="cooked_expr indexspace reset_default_tblspc old_conpfeqop old_pktable_oid",
    ),
    "TableLikeClause": _form("", "relation options", refused="relationOid"),
    "PartitionSpec": _form("partParams", "strategy"),
    "PartitionElem": _form("expr", "name collation opclass"),
    "PartitionBoundSpec": _form("listdatums lowerdatums upperdatums", "strategy is_default modulus remainder"),
    "PartitionRangeDatum": _form("value", "kind"),
    "PartitionCmd": _form("", "name bound concurrent"),
    "DefElem": _form("", "defnamespace defname arg defaction arg_location"),
    "RenameStmt": _form("", "renameType relationType relation subname newname behavior missing_ok", refused="object"),
    "AlterObjectSchemaStmt": _form("", "objectType relation newschema missing_ok", refused="object"),
    "DropStmt": _form("", "objects removeType behavior missing_ok concurrent"),
    "TruncateStmt": _form("", "relations restart_seqs behavior"),
    "CommentStmt": _form("", "objtype object comment"),
    "GrantStmt": _form("", "is_grant targtype objtype objects privileges grantees grant_option grantor behavior"),
    "AccessPriv": _form("", "priv_name cols"),
    "RoleSpec": _form("", "roletype rolename"),
    "ExplainStmt": _form("", "query options"),
    "VariableShowStmt": _form("", "name"),
}

NODES: Mapping[str, Form] = {**EXPRESSIONS, **HANDLED}
