"""Statement kinds: the allow-list of decision 3.2 and the words of statement_type (3.7). A kind that is not here is denied."""

import re
from collections.abc import Iterable, Mapping

from gatewayd.sql.text.parse import Node

# The kinds that a policy can grant. What a statement does is found by its handler, never by its name.
ALLOWED: Mapping[str, str] = {
    "SelectStmt": "SELECT",
    "ExplainStmt": "EXPLAIN",
    "VariableShowStmt": "SHOW",
    "InsertStmt": "INSERT",
    "UpdateStmt": "UPDATE",
    "DeleteStmt": "DELETE",
    "MergeStmt": "MERGE",
    "CreateStmt": "CREATE TABLE",
    "CreateTableAsStmt": "CREATE TABLE AS",
    "ViewStmt": "CREATE VIEW",
    "RefreshMatViewStmt": "REFRESH MATERIALIZED VIEW",
    "IndexStmt": "CREATE INDEX",
    "CreateSeqStmt": "CREATE SEQUENCE",
    "CreateTrigStmt": "CREATE TRIGGER",
    "RuleStmt": "CREATE RULE",
    "CreatePolicyStmt": "CREATE POLICY",
    "AlterPolicyStmt": "ALTER POLICY",
    "AlterSeqStmt": "ALTER SEQUENCE",
    "AlterTableStmt": "ALTER TABLE",
    "RenameStmt": "ALTER TABLE",
    "AlterObjectSchemaStmt": "ALTER TABLE",
    "DropStmt": "DROP TABLE",
    "TruncateStmt": "TRUNCATE TABLE",
    "CommentStmt": "COMMENT",
    "GrantStmt": "GRANT",
}

# Denied whatever the policy says; the words are used in statement_type and in the reason.
DENIED: Mapping[str, str] = {
    "AlterCollationStmt": "ALTER COLLATION",
    "AlterDatabaseRefreshCollStmt": "ALTER DATABASE",
    "AlterDatabaseSetStmt": "ALTER DATABASE",
    "AlterDatabaseStmt": "ALTER DATABASE",
    "AlterDefaultPrivilegesStmt": "ALTER DEFAULT PRIVILEGES",
    "AlterDomainStmt": "ALTER DOMAIN",
    "AlterEnumStmt": "ALTER TYPE",
    "AlterEventTrigStmt": "ALTER EVENT TRIGGER",
    "AlterExtensionContentsStmt": "ALTER EXTENSION",
    "AlterExtensionStmt": "ALTER EXTENSION",
    "AlterFdwStmt": "ALTER FOREIGN DATA WRAPPER",
    "AlterForeignServerStmt": "ALTER SERVER",
    "AlterFunctionStmt": "ALTER FUNCTION",
    "AlterObjectDependsStmt": "ALTER DEPENDS ON EXTENSION",
    "AlterOpFamilyStmt": "ALTER OPERATOR FAMILY",
    "AlterOperatorStmt": "ALTER OPERATOR",
    "AlterOwnerStmt": "ALTER OWNER",
    "AlterPublicationStmt": "ALTER PUBLICATION",
    "AlterRoleSetStmt": "ALTER ROLE",
    "AlterRoleStmt": "ALTER ROLE",
    "AlterStatsStmt": "ALTER STATISTICS",
    "AlterSubscriptionStmt": "ALTER SUBSCRIPTION",
    "AlterSystemStmt": "ALTER SYSTEM",
    "AlterTSConfigurationStmt": "ALTER TEXT SEARCH CONFIGURATION",
    "AlterTSDictionaryStmt": "ALTER TEXT SEARCH DICTIONARY",
    "AlterTableMoveAllStmt": "ALTER TABLE ALL IN TABLESPACE",
    "AlterTableSpaceOptionsStmt": "ALTER TABLESPACE",
    "AlterTypeStmt": "ALTER TYPE",
    "AlterUserMappingStmt": "ALTER USER MAPPING",
    "CallStmt": "CALL",
    "CheckPointStmt": "CHECKPOINT",
    "ClosePortalStmt": "CLOSE",
    "ClusterStmt": "CLUSTER",
    "CompositeTypeStmt": "CREATE TYPE",
    "ConstraintsSetStmt": "SET CONSTRAINTS",
    "CopyStmt": "COPY",
    "CreateAmStmt": "CREATE ACCESS METHOD",
    "CreateCastStmt": "CREATE CAST",
    "CreateConversionStmt": "CREATE CONVERSION",
    "CreateDomainStmt": "CREATE DOMAIN",
    "CreateEnumStmt": "CREATE TYPE",
    "CreateEventTrigStmt": "CREATE EVENT TRIGGER",
    "CreateExtensionStmt": "CREATE EXTENSION",
    "CreateFdwStmt": "CREATE FOREIGN DATA WRAPPER",
    "CreateForeignServerStmt": "CREATE SERVER",
    "CreateForeignTableStmt": "CREATE FOREIGN TABLE",
    "CreateFunctionStmt": "CREATE FUNCTION",
    "CreateOpClassStmt": "CREATE OPERATOR CLASS",
    "CreateOpFamilyStmt": "CREATE OPERATOR FAMILY",
    "CreatePLangStmt": "CREATE LANGUAGE",
    "CreatePublicationStmt": "CREATE PUBLICATION",
    "CreateRangeStmt": "CREATE TYPE",
    "CreateRoleStmt": "CREATE ROLE",
    "CreateSchemaStmt": "CREATE SCHEMA",
    "CreateStatsStmt": "CREATE STATISTICS",
    "CreateSubscriptionStmt": "CREATE SUBSCRIPTION",
    "CreateTableSpaceStmt": "CREATE TABLESPACE",
    "CreateTransformStmt": "CREATE TRANSFORM",
    "CreateUserMappingStmt": "CREATE USER MAPPING",
    "CreatedbStmt": "CREATE DATABASE",
    "DeallocateStmt": "DEALLOCATE",
    "DeclareCursorStmt": "DECLARE CURSOR",
    "DefineStmt": "CREATE",
    "DiscardStmt": "DISCARD",
    "DoStmt": "DO",
    "DropOwnedStmt": "DROP OWNED",
    "DropRoleStmt": "DROP ROLE",
    "DropSubscriptionStmt": "DROP SUBSCRIPTION",
    "DropTableSpaceStmt": "DROP TABLESPACE",
    "DropUserMappingStmt": "DROP USER MAPPING",
    "DropdbStmt": "DROP DATABASE",
    "ExecuteStmt": "EXECUTE",
    "FetchStmt": "FETCH",
    "GrantRoleStmt": "GRANT ROLE",
    "ImportForeignSchemaStmt": "IMPORT FOREIGN SCHEMA",
    "ListenStmt": "LISTEN",
    "LoadStmt": "LOAD",
    "LockStmt": "LOCK TABLE",
    "NotifyStmt": "NOTIFY",
    "PLAssignStmt": "PL/PGSQL ASSIGNMENT",
    "PrepareStmt": "PREPARE",
    "ReassignOwnedStmt": "REASSIGN OWNED",
    "ReindexStmt": "REINDEX",
    "ReturnStmt": "RETURN",
    "SecLabelStmt": "SECURITY LABEL",
    "TransactionStmt": "TRANSACTION",
    "UnlistenStmt": "UNLISTEN",
    "VacuumStmt": "VACUUM",
    "VariableSetStmt": "SET",
}

# The kinds of relation that DDL may name, and the words for them.
RELATION_WORDS: Mapping[str, str] = {
    "OBJECT_TABLE": "TABLE",
    "OBJECT_VIEW": "VIEW",
    "OBJECT_MATVIEW": "MATERIALIZED VIEW",
    "OBJECT_INDEX": "INDEX",
    "OBJECT_SEQUENCE": "SEQUENCE",
    "OBJECT_FOREIGN_TABLE": "FOREIGN TABLE",
}
# Objects that belong to one relation: `DROP TRIGGER x ON t` is a matter of t.
PART_WORDS: Mapping[str, str] = {"OBJECT_TRIGGER": "TRIGGER", "OBJECT_RULE": "RULE", "OBJECT_POLICY": "POLICY"}
# Other objects whose names in the grammar differ from SQL's words.
_OBJECT_WORDS: Mapping[str, str] = {
    "OBJECT_AMOP": "OPERATOR FAMILY",
    "OBJECT_AMPROC": "OPERATOR FAMILY",
    "OBJECT_DOMCONSTRAINT": "DOMAIN",
    "OBJECT_FDW": "FOREIGN DATA WRAPPER",
    "OBJECT_FOREIGN_SERVER": "SERVER",
    "OBJECT_LARGEOBJECT": "LARGE OBJECT",
    "OBJECT_OPCLASS": "OPERATOR CLASS",
    "OBJECT_OPFAMILY": "OPERATOR FAMILY",
    "OBJECT_STATISTIC_EXT": "STATISTICS",
    "OBJECT_TABCONSTRAINT": "CONSTRAINT",
    "OBJECT_TSCONFIGURATION": "TEXT SEARCH CONFIGURATION",
    "OBJECT_TSDICTIONARY": "TEXT SEARCH DICTIONARY",
    "OBJECT_TSPARSER": "TEXT SEARCH PARSER",
    "OBJECT_TSTEMPLATE": "TEXT SEARCH TEMPLATE",
}
# Fields of the grammar that deny, in the words of the clause that sets them; "" where the statement's own words say it.
_CLAUSE_WORDS: Mapping[str, str] = {
    "accessMethod": "USING",
    "newowner": "OWNER TO",
    "object": "",
    "pct_type": "%TYPE",
    "setof": "SETOF",
    "tableSpace": "TABLESPACE",
    "tableSpaceName": "TABLESPACE",
    "tablespacename": "TABLESPACE",
}

_SUBJECT_FIELDS = {
    "AlterTableStmt": "objtype",
    "RenameStmt": "renameType",
    "AlterObjectSchemaStmt": "objectType",
    "DropStmt": "removeType",
}


def kind_of(node: str, body: Node) -> str:
    """statement_type: the SQL command tag's words."""
    known = ALLOWED.get(node)
    if known is None:
        return DENIED.get(node, node)
    if node in _SUBJECT_FIELDS:
        subject = body.get(_SUBJECT_FIELDS[node], "")
        if subject in ("OBJECT_COLUMN", "OBJECT_ATTRIBUTE"):
            subject = body.get("relationType", "")
        verb = "DROP" if node == "DropStmt" else "ALTER"
        if subject == "OBJECT_TABCONSTRAINT":
            return "ALTER TABLE"
        return f"{verb} {object_words(subject)}"
    if node == "SelectStmt" and "intoClause" in leftmost(body):
        return "SELECT INTO"
    if node == "CreateTableAsStmt":
        if body.get("objtype") == "OBJECT_MATVIEW":
            return "CREATE MATERIALIZED VIEW"
    elif node == "GrantStmt" and not body.get("is_grant"):
        return "REVOKE"
    return known


def object_words(subject: str) -> str:
    """What SQL calls a kind of object."""
    known = RELATION_WORDS.get(subject) or PART_WORDS.get(subject) or _OBJECT_WORDS.get(subject)
    return known or subject.removeprefix("OBJECT_").replace("_", " ")


def part_words(node: str, body: Node, fields: Iterable[str]) -> str:
    """What a refused part of a statement is called; `fields` are those of it that deny."""
    name = kind_of(node, body) if node in ALLOWED or node in DENIED else node.removesuffix("Cmd").removesuffix("Stmt")
    clauses = [_CLAUSE_WORDS.get(field, field) for field in fields]
    return " with ".join((spaced(name), ", ".join(filter(None, clauses)))).removesuffix(" with ")


def spaced(name: str) -> str:
    """`SetTableSpace` -> `SET TABLE SPACE`; words stay as they are."""
    return name if name.isupper() else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper()


def leftmost(body: Node) -> Node:
    """The first arm of a set operation: the one that names its columns, and the one that INTO may stand in."""
    while "larg" in body:
        body = body["larg"]
    return body
