"""ALTER TABLE and its kin, sub-command by sub-command: an allow-list. Owners, tablespaces and access methods deny."""

from collections.abc import Mapping

from gatewayd.sql.facts.definitions import not_concurrently, sequence_options
from gatewayd.sql.facts.kinds import RELATION_WORDS, kind_of, spaced
from gatewayd.sql.facts.scope import RangeItem, Scope
from gatewayd.sql.facts.walk import NodeHandler, Walk
from gatewayd.sql.text.parse import Node

# Sub-commands whose `def` is walked: a column, a constraint or an expression.
_WALKED = frozenset(
    {
        "AT_AddColumn",
        "AT_AddConstraint",
        "AT_AddIdentity",
        "AT_AlterColumnType",
        "AT_ColumnDefault",
        "AT_SetExpression",
        "AT_AddOf",
    }
)
# Sub-commands that name nothing beyond this relation; a `def` of theirs holds data only.
_PLAIN = frozenset(
    {
        "AT_AlterConstraint",
        "AT_ClusterOn",
        "AT_DisableRowSecurity",
        "AT_DisableRule",
        "AT_DisableTrig",
        "AT_DisableTrigAll",
        "AT_DisableTrigUser",
        "AT_DropCluster",
        "AT_DropColumn",
        "AT_DropConstraint",
        "AT_DropExpression",
        "AT_DropIdentity",
        "AT_DropNotNull",
        "AT_DropOf",
        "AT_EnableAlwaysRule",
        "AT_EnableAlwaysTrig",
        "AT_EnableReplicaRule",
        "AT_EnableReplicaTrig",
        "AT_EnableRowSecurity",
        "AT_EnableRule",
        "AT_EnableTrig",
        "AT_EnableTrigAll",
        "AT_EnableTrigUser",
        "AT_ForceRowSecurity",
        "AT_NoForceRowSecurity",
        "AT_ReplicaIdentity",
        "AT_ResetOptions",
        "AT_ResetRelOptions",
        "AT_SetCompression",
        "AT_SetLogged",
        "AT_SetNotNull",
        "AT_SetOptions",
        "AT_SetRelOptions",
        "AT_SetStatistics",
        "AT_SetStorage",
        "AT_SetUnLogged",
        "AT_ValidateConstraint",
    }
)
_INHERITANCE = frozenset({"AT_AddInherit", "AT_DropInherit"})
_PARTITIONS = frozenset({"AT_AttachPartition", "AT_DetachPartition", "AT_DetachPartitionFinalize"})


def alter_table(walk: Walk, body: Node, scope: Scope) -> None:
    """ALTER TABLE: its relation and each of its commands."""
    kind = kind_of("AlterTableStmt", body)
    if body.get("objtype") not in RELATION_WORDS:
        walk.refuse(kind, body["relation"])
    relation = body["relation"]
    walk.defines = True
    walk.site("block_ddl", kind, relation.get("location", -1))
    item = RangeItem("relation", relation.get("relname", ""))
    item.relation = walk.use(relation, reads=True, writes=True)
    item.schema = relation.get("schemaname")
    inside = Scope(None, None)
    inside.add(item)
    for node in body.get("cmds", ()):
        command = node["AlterTableCmd"]
        walk.check("AlterTableCmd", command)
        _command(walk, command, relation, inside)


def _command(walk: Walk, body: Node, relation: Node, inside: Scope) -> None:
    subtype = body.get("subtype", "")
    definition = body.get("def")
    if subtype in _WALKED:
        walk.push_node(definition, inside)
    elif subtype in _INHERITANCE and definition is not None:
        walk.use(definition["RangeVar"], reads=True, writes=True)
    elif subtype in _PARTITIONS and definition is not None:
        partition = definition["PartitionCmd"]
        walk.check("PartitionCmd", partition)
        not_concurrently(walk, partition, "DETACH PARTITION", partition["name"])
        walk.use(partition["name"], reads=True, writes=True)
        if "bound" in partition:
            walk.stack.append(("PartitionBoundSpec", partition["bound"], inside))
    elif subtype == "AT_SetIdentity" and definition is not None:
        sequence_options(walk, definition["List"]["items"], inside)
    elif subtype not in _PLAIN:
        walk.refuse(f"ALTER TABLE … {spaced(subtype.removeprefix('AT_'))}", relation)
    if body.get("behavior") == "DROP_CASCADE":
        walk.refuse("CASCADE, which reaches relations that the statement does not name,", relation)


HANDLERS: Mapping[str, NodeHandler] = {"AlterTableStmt": alter_table}
