"""FROM: relations, joins of all kinds, WITH queries, LATERAL, functions, ROWS FROM, JSON_TABLE, XMLTABLE, TABLESAMPLE."""

from collections.abc import Callable
from typing import Final

from tests.properties.expressions import Expressions
from tests.properties.leaves import Item, Scope, identifier
from tests.properties.literals import BASIC, constant, quoted
from tests.properties.model import Relation

Columns = list[tuple[str, str]]
JOINS: Final = ("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT OUTER JOIN", "INNER JOIN")
SYSTEM_COLUMNS: Final = (("tableoid", "oid"), ("ctid", "tid"), ("xmin", "xid"), ("cmax", "cid"))
HIDDEN_NAMES: Final = ("secrets", "people", "reviews", "events_2023", "animals_rare")


class Sources(Expressions):
    hidden: float = 0.06
    """How often a relation is drawn from all there are, those that the policy hides among them."""

    def query(self, scope: Scope, depth: int, wanted: list[str] | None = None) -> tuple[str, Columns]:
        raise NotImplementedError

    def from_clause(self, scope: Scope, depth: int) -> str:
        text = self.from_item(scope, depth)
        for _ in range(self.draw.upto(2) if depth > 0 else 0):
            text = f"{text}, {self.from_item(scope, depth)}" if self.draw.chance(0.3) else self.join(text, scope, depth)
        return f" FROM {text}"

    def join(self, left: str, scope: Scope, depth: int) -> str:
        draw = self.draw
        before = [name for item in scope.items for name, _ in item.columns]
        known = len(scope.items)
        right = self.from_item(scope, depth - 1)
        way = draw.shape.randrange(10)
        if way == 0:
            return f"{left} CROSS JOIN {right}"
        if way == 1:
            return f"{left} NATURAL {draw.pick(('', 'LEFT ', 'FULL '))}JOIN {right}"
        new = [name for item in scope.items[known:] for name, _ in item.columns]
        common = [name for name in new if before.count(name) == 1 and new.count(name) == 1]
        if way < 4 and common:
            alias = f" AS {self.name('j')}" if draw.chance(0.3) else ""
            return f"{left} {draw.pick(JOINS)} {right} USING ({identifier(draw.pick(common))}){alias}"
        condition = self.expression("boolean", scope, min(depth - 1, 1)) if draw.chance(0.5) else "true"
        one, other = scope.items[0], scope.items[-1]
        pairs = [(a, b) for a, of in one.columns for b, also in other.columns if of == also]
        if pairs and one is not other and draw.chance(0.7):
            a, b = draw.pick(pairs)
            condition = f"{identifier(one.alias)}.{identifier(a)} = {identifier(other.alias)}.{identifier(b)}"
        if draw.chance(0.1):
            return f"({left} {draw.pick(JOINS)} {right} ON {condition})"
        return f"{left} {draw.pick(JOINS)} {right} ON {condition}"

    def from_item(self, scope: Scope, depth: int) -> str:
        draw = self.draw
        choices: list[tuple[float, Callable[[], str]]] = [(6, lambda: self.relation_item(scope, depth))]
        if scope.ctes:
            choices.append((4, lambda: self.cte_item(scope)))
        if depth > 0:
            choices.append((2, lambda: self.subquery_item(scope, depth - 1)))
            choices.append((1.2, lambda: self.function_item(scope, depth - 1)))
            choices.append((0.5, lambda: self.table_function(scope, depth - 1)))
        return draw.weighted(choices)

    def relation(self) -> Relation:
        draw = self.draw
        if draw.chance(0.1):
            return draw.pick(self.model.system)
        if draw.chance(self.hidden):
            return draw.pick(self.model.tables if draw.chance(0.8) else self.model.sequences)
        open_ = [
            each for each in self.model.tables if each.schema != "hr" and "spy" not in each.name and each.name not in HIDDEN_NAMES
        ]
        return draw.pick(open_)

    def relation_name(self, relation: Relation) -> str:
        """As it may be written; unqualified only where it would be found so."""
        draw = self.draw
        name = identifier(relation.name)
        if relation.schema in ("public", "pg_catalog") and draw.chance(0.8):
            return name
        return f"{identifier(relation.schema)}.{name}"

    def relation_item(self, scope: Scope, depth: int) -> str:
        draw = self.draw
        relation = self.relation()
        alias = self.name("t") if draw.chance(0.85) else relation.name
        text = self.relation_name(relation)
        if draw.chance(0.12):
            text = f"ONLY {text}" if draw.chance(0.8) else f"ONLY ({text})"
        elif draw.chance(0.05):
            text += " *"
        columns = list(relation.columns)
        listed = ""
        if alias != relation.name:
            if draw.chance(0.06) and columns:
                columns = [(self.name("x"), type_) for _, type_ in columns]
                listed = "(" + ", ".join(name for name, _ in columns) + ")"
            text += f" {draw.pick(('AS ', ''))}{alias}{listed}"
        if relation.kind in ("r", "p", "m") and draw.chance(0.04):
            method = draw.pick(("BERNOULLI", "SYSTEM", "bernoulli"))
            text += f" TABLESAMPLE {method} ({constant(draw, 'real')}) REPEATABLE ({constant(draw, 'integer')})"
        if relation.kind in ("r", "p", "m"):
            columns += SYSTEM_COLUMNS
        scope.items.append(Item(alias, columns, relation.name if relation.schema == "public" else None))
        return text

    def cte_item(self, scope: Scope) -> str:
        name, columns = self.draw.pick(scope.ctes)
        alias = self.name("t") if self.draw.chance(0.7) else name
        scope.items.append(Item(alias, columns))
        return identifier(name) if alias == name else f"{identifier(name)} AS {alias}"

    def subquery_item(self, scope: Scope, depth: int) -> str:
        draw = self.draw
        lateral = draw.chance(0.3)
        text, columns = self.query(scope if lateral else _without_items(scope), depth)
        alias = self.name("t")
        scope.items.append(Item(alias, columns))
        return f"{'LATERAL ' if lateral else ''}({text}) AS {alias}"

    def function_item(self, scope: Scope, depth: int) -> str:
        draw = self.draw
        alias = self.name("f")
        ordinality = " WITH ORDINALITY" if draw.chance(0.2) else ""
        match draw.shape.randrange(7):
            case 0:
                scope.items.append(Item(alias, [("a", "integer"), ("b", "text")]))
                source = draw.pick(
                    (f"jsonb_to_recordset({self.leaf('jsonb', scope)})", f"json_to_record({self.leaf('json', scope)})")
                )
                return f"{source} AS {alias}(a {self.written_type('integer')}, b text)"
            case 1:
                scope.items.append(Item(alias, [("a", "integer"), ("b", "text")]))
                one = f"generate_series(1, {draw.upto(9, 1)})"
                return f"ROWS FROM ({one}, unnest({self.expression('text[]', scope, depth)})) AS {alias}(a, b)"
            case 2:
                scope.items.append(Item(alias, [("n", "integer")]))
                return f"generate_series({constant(draw, 'smallint')}, {draw.upto(9, 1)}){ordinality} AS {alias}(n)"
            case 3:
                scope.items.append(Item(alias, [("v", "integer"), ("w", "text")]))
                one = self.expression("integer[]", scope, depth)
                return f"unnest({one}, {self.expression('text[]', scope, depth)}) AS {alias}(v, w)"
            case 4 if draw.chance(0.3):
                scope.items.append(Item(alias, [("street", "text"), ("city", "text"), ("zip", "integer")]))
                of = draw.pick(("addr", "addr", "holder", "users", "secrets"))
                name = draw.pick(("jsonb_populate_recordset", "jsonb_populate_record"))
                return f"{name}(NULL::{of}, {self.leaf('jsonb', scope)}) AS {alias}"
            case 4 if self.model.own_functions:
                function = draw.pick(self.model.own_functions)
                if function.kind == "f":
                    scope.items.append(Item(alias, [("v", function.returns)]))
                    return f"{self.call_of(function, scope, depth)} AS {alias}(v)"
        function = draw.pick(self.model.sets)
        returns = function.returns if function.returns in BASIC else "text"
        scope.items.append(Item(alias, [("v", returns)]))
        return f"{'LATERAL ' if draw.chance(0.2) else ''}{self.call_of(function, scope, depth)}{ordinality} AS {alias}(v)"

    def table_function(self, scope: Scope, depth: int) -> str:
        draw = self.draw
        alias = self.name("j")
        scope.items.append(Item(alias, []))
        document = self.expression("jsonb", scope, depth)
        scope.items.pop()
        if draw.chance(0.75):
            scope.items.append(Item(alias, [("o", "integer"), ("a", "integer"), ("b", "text"), ("z", "text")]))
            nested = "NESTED PATH '$.b[*]' COLUMNS (z text PATH '$')" if draw.chance(0.5) else "z text EXISTS PATH '$.z'"
            default = f" DEFAULT {constant(draw, 'integer')} ON EMPTY" if draw.chance(0.3) else ""
            on_error = draw.pick(("", "", " ERROR ON ERROR"))
            return (
                f"JSON_TABLE({document}, {quoted(draw, '$')} COLUMNS (o FOR ORDINALITY, "
                f"a {self.written_type('integer')} PATH '$.a'{default}, "
                f"b {self.written_type('text')} FORMAT JSON PATH '$.b' WITH WRAPPER, {nested}){on_error}) AS {alias}"
            )
        scope.items.append(Item(alias, [("o", "integer"), ("a", "integer"), ("b", "text")]))
        return (
            f"XMLTABLE(XMLNAMESPACES('http://x' AS x), '/r/x' PASSING {constant(draw, 'xml')} COLUMNS o FOR ORDINALITY, "
            f"a {self.written_type('integer')} PATH '@n' DEFAULT {constant(draw, 'integer')}, b text PATH '.') AS {alias}"
        )


def _without_items(scope: Scope) -> Scope:
    """As a subquery in FROM without LATERAL sees it: the WITH queries, and what lies around the whole query."""
    outer = Scope(scope.outer)
    outer.ctes = list(scope.ctes)
    return outer
