"""Calls: functions, aggregates, ordered sets, windows; and the names under which they are called."""

from typing import Final

from tests.properties.leaves import Leaves, Scope, quote
from tests.properties.literals import BASIC, constant
from tests.properties.model import Function


class Calls(Leaves):
    """`over` says that a window follows the call."""

    def call(self, type_: str, scope: Scope, depth: int) -> str:
        functions = self.model.plain.get(type_, [])
        if not functions:
            return constant(self.draw, type_)
        return self.call_of(self.draw.pick(functions), scope, depth)

    def call_of(self, function: Function, scope: Scope, depth: int) -> str:
        draw = self.draw
        count = len(function.arguments) - (draw.upto(function.defaults) if function.defaults else 0)
        arguments = [self.expression(type_, scope, depth) for type_ in function.arguments[:count]]
        if function.variadic and count == len(function.arguments):
            if draw.chance(0.5):
                arguments[-1] = f"VARIADIC {arguments[-1]}"
            else:
                element = function.arguments[-1].removesuffix("[]")
                arguments[-1:] = [
                    self.expression(element if element in BASIC else "text", scope, depth) for _ in range(draw.upto(3, 1))
                ]
        return f"{self.function_name(function)}({', '.join(arguments)})"

    def function_name(self, function: Function) -> str:
        draw = self.draw
        name = (
            quote(function.name)
            if draw.chance(0.05) or not function.name.isidentifier() or _is_special(function.name)
            else function.name
        )
        if function.schema not in ("public", "pg_catalog") or draw.chance(0.1):
            name = f"{function.schema}.{name}"
        return name

    def aggregate(self, type_: str, scope: Scope, depth: int, *, over: bool = False) -> str:
        draw = self.draw
        if draw.chance(0.1) and type_ in ("bigint", "numeric"):
            return f"count({'' if draw.chance(0.5) else 'ALL '}*)" if not over else "count(*) OVER ()"
        if type_ in ("json", "jsonb") and draw.chance(0.4):
            return self.json_aggregate(type_, scope, depth)
        functions = self.model.aggregates.get(type_, [])
        if not functions:
            return constant(draw, type_)
        function = draw.pick(functions)
        arguments = [self.expression(each, scope, depth) for each in function.arguments]
        name = self.function_name(function)
        if function.aggregate in ("o", "h"):
            direct, ordered = arguments[: function.direct], arguments[function.direct :] or arguments[:1]
            text = f"{name}({', '.join(direct)}) WITHIN GROUP (ORDER BY {', '.join(ordered or ['1'])}{self.direction()})"
        else:
            distinct = "DISTINCT " if draw.chance(0.12) and len(arguments) == 1 and not over else ""
            order = f" ORDER BY {arguments[0]}{self.direction()}" if draw.chance(0.25) and arguments and not over else ""
            text = f"{name}({distinct}{', '.join(arguments) or '*'}{order})"
        if draw.chance(0.2):
            text += f" FILTER (WHERE {self.expression('boolean', scope, depth)})"
        return text

    def json_aggregate(self, type_: str, scope: Scope, depth: int) -> str:
        draw = self.draw
        value = self.expression(self.type(), scope, depth)
        nulls = draw.pick(("", " NULL ON NULL", " ABSENT ON NULL"))
        if draw.chance(0.5):
            text = f"JSON_ARRAYAGG({value} ORDER BY {self.leaf('integer', scope)}{nulls} RETURNING {type_})"
        else:
            text = f"JSON_OBJECTAGG({self.leaf('text', scope)} : {value}{nulls} RETURNING {type_})"
        return text + (f" FILTER (WHERE {self.expression('boolean', scope, 0)})" if draw.chance(0.3) else "")

    def window(self, type_: str, scope: Scope, depth: int) -> str:
        draw = self.draw
        functions = self.model.windows.get(type_, [])
        if functions and draw.chance(0.6):
            function = draw.pick(functions)
            text = f"{function.name}({', '.join(self.expression(each, scope, depth) for each in function.arguments)})"
        else:
            text = self.aggregate(type_, scope, depth, over=True)
            if text.endswith("OVER ()") or "(" not in text or "WITHIN" in text:
                return "count(*) OVER ()"
        if scope.windows and draw.chance(0.4):
            return f"{text} OVER {draw.pick(scope.windows)}"
        return f"{text} OVER ({self.window_body(scope, depth)})"

    def window_body(self, scope: Scope, depth: int) -> str:
        draw = self.draw
        parts = []
        if draw.chance(0.6):
            parts.append("PARTITION BY " + ", ".join(self.expression(self.type(), scope, 0) for _ in range(draw.upto(2, 1))))
        if draw.chance(0.7):
            parts.append(f"ORDER BY {self.expression('integer', scope, depth)}{self.direction()}")
            if draw.chance(0.4):
                frame = draw.pick(("ROWS", "GROUPS", "RANGE"))
                start = draw.pick(("UNBOUNDED PRECEDING", "CURRENT ROW", f"{constant(draw, 'smallint')} PRECEDING"))
                end = draw.pick(("UNBOUNDED FOLLOWING", "CURRENT ROW", f"{constant(draw, 'smallint')} FOLLOWING"))
                exclude = draw.pick(("", "", " EXCLUDE CURRENT ROW", " EXCLUDE TIES", " EXCLUDE GROUP", " EXCLUDE NO OTHERS"))
                parts.append(f"{frame} BETWEEN {start} AND {end}{exclude}")
        return " ".join(parts)

    def direction(self) -> str:
        return self.draw.pick(
            ("", "", "", " ASC", " DESC", " NULLS FIRST", " DESC NULLS LAST", " USING <", " USING OPERATOR(pg_catalog.>)")
        )


def _is_special(name: str) -> bool:
    """Names that the grammar takes as something else when they stand alone before a bracket."""
    return name in _KEYWORDS


_KEYWORDS_WORDS: Final = """
    char bit character dec decimal float int integer interval nchar national numeric overlay position real smallint
    substring time timestamp trim varchar boolean bigint xmlconcat xmlelement xmlexists xmlforest xmlparse xmlpi xmlroot
    xmlserialize coalesce greatest least nullif row setof normalize json_object json_array json_value json_query
    json_exists json_scalar json_serialize json array any all some left right like ilike similar overlaps is isnull
    notnull binary collation concurrently cross freeze full inner join natural outer verbose table user current_user
    session_user current_role current_schema cast case array grouping merge_action values precision
"""
_KEYWORDS: Final = frozenset(_KEYWORDS_WORDS.split()) - {"left", "right"}
