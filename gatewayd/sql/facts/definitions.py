"""Handlers of what creates, changes and drops relations, and of EXPLAIN and SHOW (decisions 3.2, 3.3, 3.6).

ALTER TABLE's sub-commands are in alterations.py.
"""

from collections.abc import Iterable, Mapping

from gatewayd.sql.facts.grammar import NODES
from gatewayd.sql.facts.kinds import ALLOWED, PART_WORDS, RELATION_WORDS, kind_of, object_words
from gatewayd.sql.facts.scope import RangeItem, Scope
from gatewayd.sql.facts.selects import into, words
from gatewayd.sql.facts.walk import NodeHandler, Walk
from gatewayd.sql.text.parse import Node

SEQUENCE_OPTIONS = frozenset({"as", "cache", "cycle", "increment", "maxvalue", "minvalue", "owned_by", "restart", "start"})
EXPLAIN_OPTIONS = frozenset(
    {
        "analyze",
        "buffers",
        "costs",
        "format",
        "generic_plan",
        "memory",
        "serialize",
        "settings",
        "summary",
        "timing",
        "verbose",
        "wal",
    }
)
# Column types that exist in the grammar of CREATE TABLE only.
_SERIALS = frozenset((name,) for name in ("serial", "serial2", "serial4", "serial8", "bigserial", "smallserial"))


def explain(walk: Walk, body: Node, scope: Scope) -> None:
    """EXPLAIN: its options, and the statement in it."""
    analyzed = False
    for node in body.get("options", ()):
        option = node["DefElem"]
        name = option.get("defname", "")
        if name not in EXPLAIN_OPTIONS:
            walk.refuse(f"EXPLAIN option {name}", option)
        if name == "analyze":
            analyzed = _is_on(option.get("arg"))
    walk.explains = "analyze" if analyzed else "plan"
    [(kind, inner)] = body["query"].items()
    if kind not in ALLOWED or kind in ("ExplainStmt", "VariableShowStmt"):
        walk.refuse(f"EXPLAIN of {kind_of(kind, inner)}", inner)
    walk.stack.append((kind, inner, scope))


def _is_on(argument: Node | None) -> bool:
    """Whether an option is on; what is not plainly off counts as on."""
    if argument is None:
        return True
    [(kind, value)] = argument.items()
    if kind == "Integer":
        return bool(value.get("ival", 0))
    if kind == "Boolean":
        return bool(value.get("boolval"))
    return str(value.get("sval", "")).lower() not in ("false", "off")


def show(walk: Walk, body: Node, scope: Scope) -> None:
    """SHOW: the name of its setting."""
    walk.setting = body.get("name", "")


def create_table(walk: Walk, body: Node, scope: Scope) -> None:
    """CREATE TABLE: its relation, columns, constraints, parents and partitioning."""
    relation = body["relation"]
    _creates(walk, relation, "CREATE TABLE")
    columns = [node["ColumnDef"].get("colname", "") for node in body.get("tableElts", ()) if "ColumnDef" in node]
    for parent in body.get("inhRelations", ()):
        walk.use(parent["RangeVar"], reads=True, writes=True)  # its rows show up in the parent
    if body.get("oncommit", "ONCOMMIT_NOOP") != "ONCOMMIT_NOOP":
        walk.refuse("ON COMMIT", relation)
    inside = Scope(None, None)
    item = RangeItem("known", relation.get("relname", ""))
    item.known = tuple(columns)
    inside.add(item)
    walk.push_nodes(body.get("tableElts"), inside)
    walk.push_nodes(body.get("constraints"), inside)
    for field, kind in (("partbound", "PartitionBoundSpec"), ("partspec", "PartitionSpec"), ("ofTypename", "TypeName")):
        if field in body:
            walk.stack.append((kind, body[field], inside))


def column_def(walk: Walk, body: Node, scope: Scope) -> None:
    """A column of a definition: its type, default and constraints."""
    type_name = body.get("typeName")
    if type_name is not None and words(type_name.get("names")) not in _SERIALS:
        walk.stack.append(("TypeName", type_name, scope))
    walk.push_node(body.get("raw_default"), scope)
    walk.push_nodes(body.get("constraints"), scope)


def constraint(walk: Walk, body: Node, scope: Scope) -> None:
    """A constraint: its expressions, and the relation that a foreign key names."""
    if "pktable" in body:
        walk.use(body["pktable"], reads=True, writes=False)
    for pair in body.get("exclusions", ()):
        element, operator = pair["List"]["items"]
        walk.push_node(element, scope)
        walk.operator(*walk.qualified(operator["List"]["items"], body), body.get("location", 0))
    if body.get("contype") == "CONSTR_IDENTITY":
        sequence_options(walk, body.get("options", ()), scope)
    walk.push_node(body.get("raw_expr"), scope)
    walk.push_node(body.get("where_clause"), scope)


def sequence_options(walk: Walk, options: Iterable[Node], scope: Scope) -> None:
    """The options of a sequence: OWNED BY names a column."""
    for node in options:
        option = node["DefElem"]
        name = option.get("defname", "")
        if name not in SEQUENCE_OPTIONS:
            walk.refuse(f"sequence option {name}", option)
        elif name == "owned_by":
            owner = words(option["arg"]["List"]["items"])
            if owner != ("none",):
                walk.use(_relation_of(owner[:-1], option), reads=False, writes=True)
        elif name == "as":
            walk.push_node(option["arg"], scope)


def like(walk: Walk, body: Node, scope: Scope) -> None:
    """LIKE in CREATE TABLE: it reads the definition of a relation."""
    walk.use(body["relation"], reads=True, writes=False)


def create_table_as(walk: Walk, body: Node, scope: Scope) -> None:
    """CREATE TABLE AS and CREATE MATERIALIZED VIEW: the new relation, and the query."""
    kind = kind_of("CreateTableAsStmt", body)
    walk.defines = True
    walk.site("block_dml", kind, body["into"]["rel"].get("location", -1))
    into(walk, body["into"])
    if body.get("objtype") not in ("OBJECT_TABLE", "OBJECT_MATVIEW"):
        walk.refuse(kind, body)
    walk.push_node(body["query"], scope)


def create_view(walk: Walk, body: Node, scope: Scope) -> None:
    """CREATE VIEW: the new relation, and the query."""
    _creates(walk, body["view"], "CREATE VIEW")
    walk.push_node(body["query"], scope)


def refresh(walk: Walk, body: Node, scope: Scope) -> None:
    """REFRESH MATERIALIZED VIEW."""
    walk.defines = True
    walk.site("block_dml", "REFRESH MATERIALIZED VIEW", body["relation"].get("location", -1))
    walk.use(body["relation"], reads=True, writes=True)


def create_index(walk: Walk, body: Node, scope: Scope) -> None:
    """CREATE INDEX: its relation, columns, expressions and predicate."""
    not_concurrently(walk, body, "CREATE INDEX", body["relation"])
    walk.site("block_dml", "CREATE INDEX", body["relation"].get("location", -1))
    inside = _on_relation(walk, body["relation"])
    walk.push_nodes(body.get("indexParams"), inside)
    walk.push_nodes(body.get("indexIncludingParams"), inside)
    walk.push_node(body.get("whereClause"), inside)


def create_sequence(walk: Walk, body: Node, scope: Scope) -> None:
    """CREATE SEQUENCE."""
    _creates(walk, body["sequence"], "CREATE SEQUENCE")
    sequence_options(walk, body.get("options", ()), scope)


def alter_sequence(walk: Walk, body: Node, scope: Scope) -> None:
    """ALTER SEQUENCE."""
    _alters(walk, "ALTER SEQUENCE", body["sequence"])
    _on_relation(walk, body["sequence"])
    sequence_options(walk, body.get("options", ()), scope)


def create_trigger(walk: Walk, body: Node, scope: Scope) -> None:
    """CREATE TRIGGER: its relation, function and condition."""
    inside = _on_relation(walk, body["relation"], "old", "new")
    if "constrrel" in body:
        walk.use(body["constrrel"], reads=True, writes=False)
    walk.call(body["funcname"], 0, body["relation"], trigger=True)
    walk.push_node(body.get("whenClause"), inside)


def create_rule(walk: Walk, body: Node, scope: Scope) -> None:
    """CREATE RULE: its relation, condition and actions."""
    inside = _on_relation(walk, body["relation"], "old", "new")
    walk.push_node(body.get("whereClause"), inside)
    for node in body.get("actions", ()):
        [(kind, inner)] = node.items()
        if kind in ("SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt"):
            walk.stack.append((kind, inner, inside))
        else:
            walk.refuse(f"a rule that runs {kind_of(kind, inner)}", inner)


def policy(walk: Walk, body: Node, scope: Scope) -> None:
    """CREATE POLICY and ALTER POLICY: the relation and the conditions."""
    if "cmd_name" not in body:
        _alters(walk, "ALTER POLICY", body["table"])
    inside = _on_relation(walk, body["table"])
    walk.push_node(body.get("qual"), inside)
    walk.push_node(body.get("with_check"), inside)


def rename(walk: Walk, body: Node, scope: Scope) -> None:
    """ALTER … RENAME of a relation or a part of one; other objects are refused."""
    subject = body.get("renameType", "")
    kind = kind_of("RenameStmt", body)
    known = subject in RELATION_WORDS or subject in PART_WORDS or subject == "OBJECT_TABCONSTRAINT"
    if "relation" not in body or not (known or (subject == "OBJECT_COLUMN" and body.get("relationType") in RELATION_WORDS)):
        walk.refuse(kind, body)
        return
    _alters(walk, kind, body["relation"])
    _on_relation(walk, body["relation"])
    if subject in RELATION_WORDS and subject != "OBJECT_INDEX":
        walk.use({**body["relation"], "relname": body.get("newname", "")}, reads=False, writes=True, creates=True)
    _no_cascade(walk, body)


def set_schema(walk: Walk, body: Node, scope: Scope) -> None:
    """ALTER … SET SCHEMA of a relation; other objects are refused."""
    kind = kind_of("AlterObjectSchemaStmt", body)
    if body.get("objectType") not in RELATION_WORDS or "relation" not in body:
        walk.refuse(kind, body)
        return
    _alters(walk, kind, body["relation"])
    _on_relation(walk, body["relation"])
    walk.use({**body["relation"], "schemaname": body.get("newschema", "")}, reads=False, writes=True, creates=True)


def drop(walk: Walk, body: Node, scope: Scope) -> None:
    """DROP of relations or parts of one; other objects are refused."""
    subject = body.get("removeType", "")
    kind = kind_of("DropStmt", body)
    walk.defines = True
    walk.site("block_ddl", kind, -1)
    not_concurrently(walk, body, kind, {"location": -1})
    if subject not in RELATION_WORDS and subject not in PART_WORDS:
        walk.refuse(kind, {"location": -1})
        return
    for node in body.get("objects", ()):
        names = words(node["List"]["items"])
        walk.use(_relation_of(names if subject in RELATION_WORDS else names[:-1], None), reads=False, writes=True)
    _no_cascade(walk, body)


def truncate(walk: Walk, body: Node, scope: Scope) -> None:
    """TRUNCATE of its relations."""
    walk.defines = True
    for node in body["relations"]:
        walk.site("block_ddl", "TRUNCATE", node["RangeVar"].get("location", -1))
        walk.use(node["RangeVar"], reads=False, writes=True)
    _no_cascade(walk, body)


def comment(walk: Walk, body: Node, scope: Scope) -> None:
    """COMMENT ON a relation or a part of one; other objects are refused."""
    walk.defines = True
    subject = body.get("objtype", "")
    if subject in RELATION_WORDS or subject == "OBJECT_COLUMN":
        names = words(body["object"]["List"]["items"])
        walk.use(_relation_of(names if subject in RELATION_WORDS else names[:-1], None), reads=False, writes=True)
    else:
        walk.refuse(f"COMMENT ON {object_words(subject)}", {"location": -1})


def grant(walk: Walk, body: Node, scope: Scope) -> None:
    """GRANT and REVOKE on relations; other objects are refused."""
    walk.defines = True
    kind = kind_of("GrantStmt", body)
    if body.get("targtype") != "ACL_TARGET_OBJECT" or body.get("objtype") not in ("OBJECT_TABLE", "OBJECT_SEQUENCE"):
        walk.refuse(f"{kind} on other than named relations", {"location": -1})
        return
    for node in body["objects"]:
        walk.use(node["RangeVar"], reads=False, writes=True)
    _no_cascade(walk, body)


def _creates(walk: Walk, relation: Node, kind: str) -> None:
    walk.defines = True
    walk.site("block_dml", kind, relation.get("location", -1))
    walk.use(relation, reads=False, writes=True, creates=True)


def _alters(walk: Walk, kind: str, relation: Node) -> None:
    walk.site("block_ddl", kind, relation.get("location", -1))


def _on_relation(walk: Walk, relation: Node, *names: str) -> Scope:
    """A definition that belongs to one relation: it is written, and its expressions see its columns, under `names` or its own."""
    walk.defines = True
    use = walk.use(relation, reads=True, writes=True)
    inside = Scope(None, None)
    for name in names or (relation.get("relname", ""),):
        item = RangeItem("relation", name)
        item.relation, item.schema = use, relation.get("schemaname")
        inside.add(item)
    return inside


def not_concurrently(walk: Walk, body: Node, kind: str, place: Node) -> None:
    """Denied: PostgreSQL does it in transactions of its own. REFRESH MATERIALIZED VIEW CONCURRENTLY runs inside ours."""
    if body.get("concurrent"):
        walk.refuse(f"CONCURRENTLY with {kind}, which cannot run inside the gateway's transaction,", place)


def _no_cascade(walk: Walk, body: Node) -> None:
    if body.get("behavior") == "DROP_CASCADE":
        walk.refuse("CASCADE, which reaches relations that the statement does not name,", {"location": -1})


def _relation_of(names: tuple[str, ...], body: Node | None) -> Node:
    """A RangeVar out of a dotted name, which the parser gives without a place."""
    relation: Node = {
        "relname": names[-1] if names else "",
        "inh": True,
        "location": -1 if body is None else body.get("location", -1),
    }
    if len(names) > 1:
        relation["schemaname"] = names[-2]
    if len(names) > 2:
        relation["catalogname"] = names[-3]
    return relation


def _children(node: str) -> NodeHandler:
    form = NODES[node]
    return lambda walk, body, scope: walk.push_children(form, body, scope)


HANDLERS: Mapping[str, NodeHandler] = {
    "ExplainStmt": explain,
    "VariableShowStmt": show,
    "CreateStmt": create_table,
    "ColumnDef": column_def,
    "Constraint": constraint,
    "TableLikeClause": like,
    "PartitionSpec": _children("PartitionSpec"),
    "PartitionElem": _children("PartitionElem"),
    "PartitionBoundSpec": _children("PartitionBoundSpec"),
    "PartitionRangeDatum": _children("PartitionRangeDatum"),
    "CreateTableAsStmt": create_table_as,
    "ViewStmt": create_view,
    "RefreshMatViewStmt": refresh,
    "IndexStmt": create_index,
    "CreateSeqStmt": create_sequence,
    "AlterSeqStmt": alter_sequence,
    "CreateTrigStmt": create_trigger,
    "RuleStmt": create_rule,
    "CreatePolicyStmt": policy,
    "AlterPolicyStmt": policy,
    "RenameStmt": rename,
    "AlterObjectSchemaStmt": set_schema,
    "DropStmt": drop,
    "TruncateStmt": truncate,
    "CommentStmt": comment,
    "GrantStmt": grant,
}
