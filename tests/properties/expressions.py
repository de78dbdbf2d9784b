"""Expressions of a wanted type in a scope: columns, calls, operators, casts, conditions, subqueries, attribute notation.

Most come out as PostgreSQL accepts them; a few have the wrong type on purpose. Everything is bracketed: precedence never matters.
"""

from collections.abc import Callable
from typing import Final

from tests.properties.forms import Forms
from tests.properties.leaves import Scope, identifier, quote
from tests.properties.literals import BASIC
from tests.properties.model import ANY

_OTHERS: Final = {
    "integer": ("int", "pg_catalog.int4", "pos", "checked"),
    "numeric": ("numeric(9,3)", "decimal"),
    "text": ("varchar(20)", "label", "bpchar"),
    "timestamp with time zone": ("timestamptz(3)",),
    "mood": ("public.mood",),
    "addr": ("public.addr", "holder"),
    "bigint": ("int8", "oid"),
    "int4range": ("span",),
    "integer[]": ("int[3]", "checked[]", "int ARRAY"),
    "boolean": ("bool",),
}
"""Other names of a type, and types that it passes for."""
_ATTRIBUTES: Final = ("text", "to_jsonb", "json", "pg_typeof", "ts_stat", "query_to_xml", "spy_cast", "lo_get")


class Expressions(Forms):
    """`windows` in calls says whether a window call may stand there."""

    def expression(self, type_: str, scope: Scope, depth: int, *, windows: bool = False) -> str:
        draw = self.draw
        type_ = ANY.get(type_, type_)
        if depth <= 0 or draw.chance(0.12):
            return self.leaf(type_, scope)
        if draw.chance(0.015):
            type_ = self.type()  # a wrong type
        below = depth - 1
        choices: list[tuple[float, Callable[[], str]]] = [
            (5, lambda: self.leaf(type_, scope)),
            (4, lambda: self.call(type_, scope, below)),
            (3, lambda: self.operation(type_, scope, below)),
            (1.2, lambda: self.cast(type_, scope, below)),
            (0.8, lambda: self.conditional(type_, scope, below)),
            (0.7, lambda: self.subquery(type_, scope, below)),
            (0.5, lambda: self.attribute(type_, scope, below)),
            (1.6, lambda: self.special(type_, scope, below)),
        ]
        if windows:
            choices.append((2, lambda: self.window(type_, scope, below)))
        return draw.weighted(choices)

    def operation(self, type_: str, scope: Scope, depth: int) -> str:
        draw = self.draw
        operators = self.model.operators.get(type_, [])
        if not operators:
            return self.leaf(type_, scope)
        operator = draw.pick(operators)
        right = self.expression(operator.right, scope, depth)
        symbol = operator.name
        if operator.schema not in ("pg_catalog", "public") or draw.chance(0.06):
            symbol = f"OPERATOR({operator.schema}.{symbol})"
        if not operator.left:
            return f"({symbol} {right})"
        left = self.expression(operator.left, scope, depth)
        if type_ == "boolean" and draw.chance(0.07):
            quantifier = draw.pick(("ANY", "SOME", "ALL"))
            array = f"ARRAY[{right}, {right}]" if draw.chance(0.6) else self.scalar_query(operator.right, scope, depth)
            return f"({left} {symbol} {quantifier} ({array}))"
        return f"({left} {symbol} {right})"

    def cast(self, type_: str, scope: Scope, depth: int) -> str:
        draw = self.draw
        sources = self.model.casts.get(type_, [])
        source = draw.pick(sources) if sources and draw.chance(0.8) else draw.pick(("text", "text", *BASIC[:8]))
        inner = self.expression(source, scope, depth)
        way = draw.shape.randrange(8)
        written = self.written_type(type_)
        if way == 0 and written.isalpha():
            return f"{quote(written) if draw.chance(0.1) else written}({inner})"
        return f"CAST({inner} AS {written})" if way < 4 else f"({inner})::{written}"

    def written_type(self, type_: str) -> str:
        draw = self.draw
        if draw.chance(0.9):
            return type_
        return draw.pick(_OTHERS.get(type_, (type_,)))

    def conditional(self, type_: str, scope: Scope, depth: int) -> str:
        draw = self.draw
        one, other = self.expression(type_, scope, depth), self.expression(type_, scope, depth)
        match draw.shape.randrange(6):
            case 0:
                return f"COALESCE({one}, {other})"
            case 1:
                return f"NULLIF({one}, {other})"
            case 2:
                return f"{draw.pick(('GREATEST', 'LEAST'))}({one}, {other})"
            case 3:
                subject = self.type()
                when = self.expression(subject, scope, 0)
                return f"CASE {self.expression(subject, scope, depth)} WHEN {when} THEN {one} ELSE {other} END"
            case 4:
                return f"(ARRAY[{one}, {other}])[{self.expression('integer', scope, 0)}]"
            case _:
                return f"CASE WHEN {self.expression('boolean', scope, depth)} THEN {one} ELSE {other} END"

    def subquery(self, type_: str, scope: Scope, depth: int) -> str:
        if type_.endswith("[]") and type_.removesuffix("[]") in BASIC:
            return f"ARRAY({self.scalar_query(type_.removesuffix('[]'), scope, depth, one=False)})"
        return f"({self.scalar_query(type_, scope, depth)})"

    def attribute(self, type_: str, scope: Scope, depth: int) -> str:
        draw = self.draw
        rows = [item for item in scope.visible() if item.row_type is not None]
        if rows and draw.chance(0.5):
            item = draw.pick(rows)
            own = [each.name for each in self.model.own_functions if each.arguments == (item.row_type,)]
            name = draw.pick(
                (
                    *own,
                    "to_jsonb",
                    "row_to_json",
                    "text",
                    "pg_typeof",
                    "num_nulls",
                    "quote_literal",
                    "id",
                    "name",
                    "ctid",
                    "tableoid",
                    "xmin",
                )
            )
            alias = identifier(item.alias)
            forms = ("{a}.{n}", "({a}).{n}", "({a}.*).{n}", "{n}({a})", "{n}({a}.*)")
            return f"({draw.pick(forms).format(a=alias, n=name)})"
        subject = self.type()
        names = [*self.model.one_argument.get(subject, []), *_ATTRIBUTES]
        if subject == "addr":
            names = ["street", "city", "zip", *names]
        name = draw.pick(names)
        return f"({self.expression(subject, scope, depth)}).{quote(name) if draw.chance(0.3) else identifier(name)}"
