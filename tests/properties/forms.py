"""What the grammar spells in a way of its own: predicates, JSON, XML, EXTRACT and its kin, arrays, rows."""

from collections.abc import Callable
from typing import Final

from tests.properties.calls import Calls
from tests.properties.leaves import Scope, identifier, quote
from tests.properties.literals import constant, quoted

_LIKES: Final = ("LIKE", "ILIKE", "NOT LIKE", "SIMILAR TO", "NOT ILIKE", "~", "!~*", "^@")


class Forms(Calls):
    """By the type that they give."""

    def whole_row(self, scope: Scope, form: str) -> str:
        items = scope.visible()
        if not items:
            return self.leaf("text", scope)
        alias = identifier(self.draw.pick(items).alias)
        return "(" + form.format(self.draw.pick((alias, f"({alias}.*)", f"ROW({alias}.*)", f"({alias})"))) + ")"

    def special(self, type_: str, scope: Scope, depth: int) -> str:
        draw = self.draw

        def one(of: str) -> str:
            return self.expression(of, scope, depth)

        def leaf(of: str) -> str:
            return self.leaf(of, scope)

        def maybe(word: str) -> str:
            return word if draw.chance(0.5) else ""

        def pair() -> str:
            return f"({leaf('integer')}, {leaf('text')})"

        forms: list[Callable[[], str]] = []
        match type_:
            case "boolean":
                other = self.type()
                forms = [
                    lambda: f"({one(other)} IS {draw.pick(('', 'NOT '))}NULL)",
                    lambda: f"({one(other)} {draw.pick(('', 'NOT '))}IN ({leaf(other)}, {leaf(other)}))",
                    lambda: f"({one(other)} {draw.pick(('', 'NOT '))}IN ({self.scalar_query(other, scope, depth, one=False)}))",
                    lambda: f"{draw.pick(('', 'NOT '))}EXISTS ({self.boolean_query(scope, depth)})",
                    lambda: f"({one(other)} {maybe('NOT ')}BETWEEN {maybe('SYMMETRIC ')}{leaf(other)} AND {leaf(other)})",
                    lambda: f"({one('text')} {draw.pick(_LIKES)} {leaf('text')})",
                    lambda: f"({one('text')} LIKE {leaf('text')} ESCAPE '!')",
                    lambda: f"({one(other)} IS {draw.pick(('', 'NOT '))}DISTINCT FROM {leaf(other)})",
                    lambda: f"({one('boolean')} IS {draw.pick(('', 'NOT '))}{draw.pick(('TRUE', 'FALSE', 'UNKNOWN'))})",
                    lambda: f"({one('boolean')} {draw.pick(('AND', 'OR'))} {one('boolean')})",
                    lambda: f"(NOT {one('boolean')})",
                    lambda: f"({pair()} {draw.pick(('=', '<', '>=', '<>'))} {pair()})",
                    lambda: f"(({leaf('integer')}, {leaf('text')}) IN (SELECT 1, {leaf('text')}))",
                    lambda: self.whole_row(scope, "{} IS NOT NULL"),
                    lambda: f"(({leaf('date')}, {leaf('date')}) OVERLAPS ({leaf('date')}, {leaf('interval')}))",
                    lambda: (
                        f"({one('text')} IS {maybe('NOT ')}JSON {draw.pick(('', 'OBJECT', 'ARRAY', 'SCALAR WITH UNIQUE KEYS'))})"
                    ),
                    lambda: f"JSON_EXISTS({one('jsonb')}, '$.a'{draw.pick(('', ' PASSING 1 AS x', ' ERROR ON ERROR'))})",
                    lambda: f"({one('text')} IS {draw.pick(('NFC', 'NOT NFKD', ''))} NORMALIZED)",
                    lambda: f"(ROW({leaf(other)}, {leaf('integer')}) IS {draw.pick(('', 'NOT '))}NULL)",
                ]
            case "text" | "character varying":
                forms = [
                    lambda: f"substring({one('text')} FROM {leaf('integer')} FOR {constant(draw, 'smallint')})",
                    lambda: f"substring({one('text')} FROM '[a-z]+')",
                    lambda: f"substring({one('text')} SIMILAR '%#\"x#\"%' ESCAPE '#')",
                    lambda: f"overlay({one('text')} PLACING {leaf('text')} FROM 1 FOR 2)",
                    lambda: f"trim({draw.pick(('BOTH', 'LEADING', 'TRAILING'))} {leaf('text')} FROM {one('text')})",
                    lambda: f"({one('text')} COLLATE {draw.pick((quote('C'), 'pg_catalog.' + quote('C'), quote('POSIX')))})",
                    lambda: f"normalize({one('text')}, NFKC)",
                    lambda: f"(COLLATION FOR ({one('text')}))",
                    lambda: f"({one(self.type())})::text",
                    lambda: self.whole_row(scope, "{}::text"),
                    lambda: f"concat({one(self.type())}, {leaf(self.type())})",
                    lambda: f"format('%s %I %L', {leaf(self.type())}, {leaf('text')}, {leaf(self.type())})",
                    lambda: f"JSON_VALUE({one('jsonb')}, '$.a' RETURNING text DEFAULT {quoted(draw, 'd')} ON EMPTY)",
                    lambda: f"JSON_SERIALIZE({one('jsonb')} RETURNING text)",
                    lambda: f"XMLSERIALIZE(CONTENT XMLELEMENT(NAME a, {leaf('text')}) AS text)",
                    lambda: (
                        draw.pick(("CURRENT_USER", "SESSION_USER", "CURRENT_CATALOG", "CURRENT_SCHEMA", "USER", "CURRENT_ROLE"))
                        + "::text"
                    ),
                    lambda: f"to_char({one('timestamp with time zone')}, 'YYYY-MM')",
                    lambda: f"coalesce({one('jsonb')}->>'a', {leaf('text')})",
                ]
            case "jsonb" | "json":
                forms = [
                    lambda: (
                        f"JSON_OBJECT({leaf('text')} : {one(self.type())}, 'k' VALUE {leaf(self.type())} "
                        f"{draw.pick(('', 'ABSENT ON NULL', 'WITH UNIQUE KEYS'))} RETURNING {type_})"
                    ),
                    lambda: (
                        f"JSON_ARRAY({one(self.type())}, {leaf(self.type())} {draw.pick(('', 'NULL ON NULL '))}RETURNING {type_})"
                    ),
                    lambda: f"JSON_ARRAY({self.scalar_query(self.type(), scope, depth, one=False)} RETURNING {type_})",
                    lambda: (
                        f"JSON_QUERY({one('jsonb')}, '$.b' RETURNING {type_} {draw.pick(('', 'WITH WRAPPER', 'KEEP QUOTES'))})"
                    ),
                    lambda: self.whole_row(scope, f"to_{type_}({{}})"),
                    lambda: f"JSON({leaf('text')})::{type_}",
                    lambda: f"JSON_SCALAR({one(self.type())})::{type_}",
                    lambda: f"to_{type_}({one(self.type())})",
                    lambda: f"({one('jsonb')} {draw.pick(('->', '#>'))} {quoted(draw, '{a}')})::{type_}",
                    lambda: f"({one('jsonb')})[{leaf('text')}]::{type_}",
                    lambda: (
                        f"(SELECT {draw.pick(('to_jsonb', 'row_to_json'))}(q) FROM ({self.boolean_query(scope, depth)}) AS q "
                        f"LIMIT 1)::{type_}"
                    ),
                ]
            case "double precision" | "numeric":
                forms = [
                    lambda: (
                        f"extract({draw.pick(('year', 'epoch', 'dow', 'timezone'))} FROM "
                        f"{one(draw.pick(('date', 'interval', 'timestamp with time zone')))})::{type_}"
                    ),
                    lambda: f"JSON_VALUE({one('jsonb')}, '$.a' RETURNING {type_} NULL ON ERROR)",
                    lambda: f"position({leaf('text')} IN {one('text')})::{type_}",
                    lambda: f"({one('numeric')} {draw.pick(('+', '*', '/', '%', '^'))} {leaf('integer')})::{type_}",
                ]
            case "timestamp with time zone":
                forms = [
                    lambda: (
                        f"({one('timestamp without time zone')} AT TIME ZONE {quoted(draw, draw.pick(('UTC', 'Europe/Berlin')))})"
                    ),
                    lambda: f"date_trunc('day', {one(type_)})",
                    lambda: f"({one(type_)} + {one('interval')})",
                    lambda: draw.pick(("CURRENT_TIMESTAMP", "now()", "CURRENT_TIMESTAMP(2)")),
                ]
            case "interval":
                forms = [
                    lambda: f"make_interval(days => {leaf('integer')}, hours => {one('integer')})",
                    lambda: f"({one('timestamp with time zone')} - {leaf('timestamp with time zone')})",
                    lambda: f"INTERVAL '3' {draw.pick(('DAY', 'HOUR', 'MONTH'))}",
                ]
            case "bit" | "bit varying":
                forms = [lambda: f"B'{draw.pick(('101', '0', ''))}'::{type_}", lambda: f"(X'1F')::bit(8)::{type_}"]
            case "date":
                forms = [
                    lambda: "CURRENT_DATE",
                    lambda: f"({one('timestamp with time zone')})::date",
                    lambda: f"({one('date')} + {leaf('integer')})",
                ]
            case "addr":
                forms = [
                    lambda: f"ROW({leaf('text')}, {one('text')}, {leaf('integer')})::addr",
                    lambda: f"({leaf('text')}, {leaf('text')}, {leaf('integer')})::public.addr",
                    lambda: f"jsonb_populate_record({leaf('addr')}, {one('jsonb')})",
                ]
            case "integer" | "bigint" | "smallint":
                forms = [
                    lambda: f"({one('addr')}).zip",
                    lambda: f"position({leaf('text')} IN {one('text')})",
                    lambda: f"({one('integer')} {draw.pick(('+', '-', '*', '/', '%', '&', '|', '#', '<<'))} {leaf('integer')})",
                    lambda: f"({one('integer[]')})[{leaf('integer')}]",
                    lambda: f"array_length({one('text[]')}, 1)",
                    lambda: f"({self.scalar_query('bigint', scope, depth)})::{type_}",
                    lambda: f"GREATEST({leaf('integer')}, {leaf('integer')})",
                    lambda: f"JSON_VALUE({one('jsonb')}, 'lax $.a' PASSING {leaf('integer')} AS \"p\" RETURNING {type_})",
                ]
            case "integer[]" | "text[]":
                element = type_.removesuffix("[]")
                forms = [
                    lambda: f"ARRAY[{one(element)}, {leaf(element)}]::{type_}",
                    lambda: f"({one(type_)})[{leaf('integer')}:{constant(draw, 'smallint')}]",
                    lambda: f"({one(type_)} || {leaf(element)})",
                    lambda: f"ARRAY[]::{type_}",
                    lambda: f"string_to_array({leaf('text')}, ',')::{type_}",
                ]
            case "xml":
                forms = [
                    lambda: f"XMLELEMENT(NAME a, XMLATTRIBUTES({leaf('text')} AS b), {leaf(self.type())})",
                    lambda: f"XMLFOREST({leaf(self.type())} AS x)",
                    lambda: f"XMLCONCAT({leaf('xml')}, {leaf('xml')})",
                    lambda: f"XMLPI(NAME php, {leaf('text')})",
                    lambda: f"XMLPARSE(CONTENT {leaf('text')})",
                    lambda: f"XMLROOT({leaf('xml')}, VERSION '1.0')",
                ]
            case _:
                forms = [lambda: self.leaf(type_, scope)]
        return draw.pick(forms)()
