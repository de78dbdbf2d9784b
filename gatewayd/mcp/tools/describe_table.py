"""Tool `describe_table`: the columns, keys and indexes of one table or view (docs/http-api.md)."""

import msgspec

from gatewayd.corridor.answer import Answered
from gatewayd.corridor.deciding import Deciding
from gatewayd.corridor.gateway import Database, Gateway
from gatewayd.corridor.pipeline import run
from gatewayd.masking.rules.marks import kinds
from gatewayd.masking.rules.mask_rules import MaskRules
from gatewayd.mcp.dispatch import Tool, ToolCall, ToolResult
from gatewayd.mcp.tools.answers import invalid_arguments, result_of
from gatewayd.mcp.tools.arguments import InvalidArguments, decode, identifier, literal, named_database
from gatewayd.policy.decide.outcomes import Allowed


class _Column(msgspec.Struct):
    name: str
    about: msgspec.Raw = msgspec.Raw(b"null")


_column = msgspec.json.Decoder(_Column).decode
_ABOUT = b',"about":'
_NO_COMMENT = b',"comment":null'


class DescribeTableArguments(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments of `describe_table`."""

    table: str
    schema: str = "public"
    database: str | None = None


def describe_table_tool(gateway: Gateway) -> Tool:
    """The tool, with the databases served now."""
    properties: dict[str, object] = {
        "table": {"type": "string", "minLength": 1, "description": "Name of the table or view, as stored (no quotes)."},
        "schema": {"type": "string", "default": "public", "minLength": 1, "description": "Its schema."},
    }
    required = ["table"]
    if gateway.is_multi:
        properties["database"] = {"type": "string", "enum": list(gateway.databases), "description": "Which database to ask."}
        required.append("database")

    async def call(call: ToolCall) -> ToolResult:
        try:
            arguments = decode(call.arguments, DescribeTableArguments)
            names = identifier(arguments.schema, "schema"), identifier(arguments.table, "table")
            database = named_database(gateway, arguments.database)
        except InvalidArguments as error:
            return invalid_arguments(str(error))
        sql = _sql(*names, whole=True)
        whole = await _is_allowed(sql, gateway, database, call)
        if not whole:  # a policy that closes pg_catalog
            sql = _sql(*names, whole=False)
        answer = await run(gateway, database, "describe_table", sql, None, call.agent, call.caller)
        if isinstance(answer, Answered) and database.enforced.policy.column_masks:
            answer = _told_masks(answer, database, arguments.schema, arguments.table)
        if not (isinstance(answer, Answered) and whole and answer.result.rows):
            return result_of(answer, "columns")
        about, answer = _parted(answer)
        result = result_of(answer, "columns")
        return msgspec.structs.replace(result, text=f"{result.text[:-1]},{about[1:]}") if about != "{}" else result

    return Tool(
        name="describe_table",
        title="Describe a table",
        description="List a table's columns with type, nullability, default, comment and mask, if any, and the table's keys, "
        "checks, indexes, comment and estimated rows. The call is recorded.",
        input_schema={"type": "object", "properties": properties, "required": required, "additionalProperties": False},
        annotations={"readOnlyHint": True, "openWorldHint": False},
        call=call,
    )


async def _is_allowed(sql: str, gateway: Gateway, database: Database, call: ToolCall) -> bool:
    """Asked before the call is recorded; its verdict is remembered, so the call itself costs no second one."""
    deciding = Deciding(database, gateway.masking, "describe_table", call.caller)
    return isinstance((await deciding.verdict(await deciding.known(sql))).final_decision, Allowed)


def _told_masks(answer: Answered, database: Database, schema: str, table: str) -> Answered:
    """Each masked column says how: agents need not find out by refusals. One key more in the rows that PostgreSQL made."""
    relation = database.catalog.relation(schema, table)
    masks = kinds(database.catalog.worked_out(MaskRules, database.enforced.policy), relation) if relation is not None else {}
    if not masks:
        return answer
    rows = []
    for row in answer.result.rows:
        kind = masks.get(_column(row).name)
        rows.append(row if kind is None else b'%s,"masked":"%s"}' % (row[:-1], kind.encode()))
    return msgspec.structs.replace(answer, result=msgspec.structs.replace(answer.result, rows=tuple(rows)))


def _parted(answer: Answered) -> tuple[str, Answered]:
    """What the first row says about the whole table, as a JSON object, and the rows without that."""
    about = "{}"
    rows = []
    for row in answer.result.rows:
        told = bytes(_column(row).about)
        at = row.rindex(_ABOUT + told)
        rows.append(row[:at].removesuffix(_NO_COMMENT) + row[at + len(_ABOUT) + len(told) :])
        about = told.decode() if told != b"null" else about
    return about, msgspec.structs.replace(answer, result=msgspec.structs.replace(answer.result, rows=tuple(rows)))


def _sql(schema: str, table: str, *, whole: bool) -> str:
    """information_schema spells arrays and user-defined types as ARRAY and USER-DEFINED; udt_name has the type's own name. It is
    asked alone without `whole`, which works under every policy."""
    more = ""
    if whole:
        more = (
            f", (SELECT col_description(c.oid, ordinal_position::int) {_found(schema, table)}) AS comment"
            f", CASE WHEN row_number() OVER (ORDER BY ordinal_position) = 1 THEN ({_about(schema, table)}) END AS about"
        )
    return (
        "SELECT column_name AS name, "
        "CASE WHEN data_type = 'ARRAY' THEN substr(udt_name, 2) || '[]' "
        "WHEN data_type = 'USER-DEFINED' THEN "
        "CASE WHEN udt_schema IN ('public', 'pg_catalog') THEN udt_name ELSE udt_schema || '.' || udt_name END "
        "WHEN character_maximum_length IS NOT NULL THEN data_type || '(' || character_maximum_length || ')' "
        "WHEN data_type = 'numeric' AND numeric_precision IS NOT NULL THEN "
        "'numeric(' || numeric_precision || ',' || numeric_scale || ')' "
        f"ELSE data_type END AS type, is_nullable = 'YES' AS nullable, column_default AS \"default\"{more} "
        f"FROM information_schema.columns WHERE table_schema = {literal(schema)} AND table_name = {literal(table)} "
        "ORDER BY ordinal_position"
    )


def _found(schema: str, table: str) -> str:
    return (
        "FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace "
        f"WHERE n.nspname = {literal(schema)} AND c.relname = {literal(table)}"
    )


def _about(schema: str, table: str) -> str:
    """Definitions as PostgreSQL writes them. One that may not be told is NULL and left out, as a key to a hidden table is."""
    columns = (
        "(SELECT json_agg(a.attname ORDER BY array_position(k.conkey, a.attnum)) FROM pg_catalog.pg_attribute AS a "
        "WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey))"
    )
    keys = "FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = c.oid AND k.contype ="
    defined = "pg_get_constraintdef(k.oid)"
    return (
        "SELECT json_strip_nulls(json_build_object("
        f"'primary_key', (SELECT {columns} {keys} 'p'), "
        f"'unique', (SELECT json_agg({columns} ORDER BY k.conname) {keys} 'u'), "
        f"'foreign_keys', (SELECT json_agg({defined} ORDER BY k.conname) {keys} 'f' AND {defined} IS NOT NULL), "
        f"'checks', (SELECT json_agg({defined} ORDER BY k.conname) {keys} 'c' AND {defined} IS NOT NULL), "
        "'indexes', (SELECT json_agg(pg_get_indexdef(i.indexrelid) ORDER BY i.indexrelid) FROM pg_catalog.pg_index AS i "
        "WHERE i.indrelid = c.oid AND pg_get_indexdef(i.indexrelid) IS NOT NULL), "
        "'comment', obj_description(c.oid, 'pg_class'), "
        "'partitioned_by', pg_get_partkeydef(c.oid), "
        "'estimated_rows', CASE WHEN c.reltuples >= 0 THEN c.reltuples::bigint END"
        f")) {_found(schema, table)}"
    )
