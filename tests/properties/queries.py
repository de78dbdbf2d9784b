"""SELECT in all its forms: WITH, set operations, grouping sets, windows, DISTINCT, LIMIT, stars, locking."""

from tests.properties.leaves import Scope, identifier, quote
from tests.properties.literals import BASIC, constant
from tests.properties.sources import SYSTEM_COLUMNS, Columns, Sources


class Queries(Sources):
    locking: float = 0.02

    def query(self, scope: Scope, depth: int, wanted: list[str] | None = None) -> tuple[str, Columns]:
        """A query and its columns; of the wanted types, as many, when these are given."""
        draw = self.draw
        inner = Scope(scope)
        with_clause = self.with_clause(inner, depth) if depth > 0 and draw.chance(0.16) else ""
        if wanted is None and draw.chance(0.1):
            text, columns = self.star(inner, depth)
            return f"{with_clause}{text}{self.tail(columns, depth)}", columns
        if wanted is None:
            wanted = [self.type() for _ in range(draw.upto(4, 1))]
        text, columns = self.body(inner, depth, wanted)
        tail = self.tail(columns, depth)
        return f"{with_clause}{text}{tail}", columns

    def body(self, scope: Scope, depth: int, wanted: list[str]) -> tuple[str, Columns]:
        draw = self.draw
        if depth > 0 and draw.chance(0.13):
            left, columns = self.body(scope, depth - 1, wanted)
            right, _ = self.body(scope, depth - 1, wanted)
            operator = draw.pick(
                ("UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL", "UNION DISTINCT")
            )
            if draw.chance(0.3):
                right = f"({right}{self.tail([], 0)})"
            return f"({left}) {operator} {right}", columns
        if draw.chance(0.05):
            rows = ", ".join(
                "(" + ", ".join(self.expression(each, scope, depth - 1) for each in wanted) + ")" for _ in range(draw.upto(3, 1))
            )
            return f"VALUES {rows}", [(f"column{number}", type_) for number, type_ in enumerate(wanted, 1)]
        return self.select(scope, depth, wanted)

    def select(self, scope: Scope, depth: int, wanted: list[str]) -> tuple[str, Columns]:
        draw = self.draw
        inner = Scope(scope)
        source = self.from_clause(inner, depth) if draw.chance(0.93) else ""
        where = f" WHERE {self.expression('boolean', inner, depth)}" if draw.chance(0.5) else ""
        if draw.chance(0.22) and source:
            return self.grouped(inner, depth, wanted, source + where)
        windows = ""
        if source and draw.chance(0.08):
            name = self.name("w")
            windows = f" WINDOW {name} AS ({self.window_body(inner, 0)})"
            inner.windows.append(name)
        targets: list[str] = []
        columns: Columns = []
        for type_ in wanted:
            text = self.expression(type_, inner, depth, windows=draw.chance(0.2))
            name = self.name("c") if draw.chance(0.8) else draw.pick(("id", "name", "code", "secrets", "lower", "to_jsonb"))
            targets.append(f"{text} {draw.pick(('AS ', 'AS ', ''))}{identifier(name) if draw.chance(0.5) else quote(name)}")
            columns.append((name, type_))
        distinct = draw.pick(("DISTINCT ", "ALL ", f"DISTINCT ON ({self.leaf(self.type(), inner)}) ")) if draw.chance(0.1) else ""
        locking = (
            f" FOR {draw.pick(('UPDATE', 'SHARE', 'NO KEY UPDATE', 'KEY SHARE'))}" if source and draw.chance(self.locking) else ""
        )
        return f"SELECT {distinct}{', '.join(targets)}{source}{where}{windows}{locking}", columns

    def star(self, scope: Scope, depth: int) -> tuple[str, Columns]:
        """All columns of something, in one of the ways to say so."""
        draw = self.draw
        if draw.chance(0.15):
            relation = self.relation()
            return f"TABLE {self.relation_name(relation)}", list(relation.columns)
        inner = Scope(scope)
        source = self.from_clause(inner, depth)
        where = f" WHERE {self.expression('boolean', inner, depth)}" if draw.chance(0.4) else ""
        item = draw.pick(inner.items)
        alias = identifier(item.alias)
        if draw.chance(0.6):
            columns = [column for each in inner.items for column in each.columns if column not in SYSTEM_COLUMNS]
            return f"SELECT *{source}{where}", columns
        columns = [column for column in item.columns if column not in SYSTEM_COLUMNS]
        return f"SELECT {draw.pick((f'{alias}.*', f'({alias}).*', f'({alias}.*).*'))}{source}{where}", columns

    def grouped(self, scope: Scope, depth: int, wanted: list[str], source: str) -> tuple[str, Columns]:
        draw = self.draw
        keys = [found for _ in range(draw.upto(2)) if (found := self.any_column(scope)) is not None]
        texts = [text for text, _ in keys]
        by_type = {type_: text for text, type_ in keys}
        targets = []
        columns: Columns = []
        for type_ in wanted:
            text = by_type[type_] if type_ in by_type and draw.chance(0.5) else self.aggregate(type_, scope, depth - 1)
            if draw.chance(0.05) and texts:
                text = f"GROUPING({texts[0]})" if type_ in ("integer", "bigint") else text
            name = self.name("g")
            targets.append(f"{text} AS {name}")
            columns.append((name, type_))
        group = ""
        if texts:
            listed = ", ".join(texts)
            group = " GROUP BY " + draw.pick(
                (
                    listed,
                    listed,
                    f"ROLLUP ({listed})",
                    f"CUBE ({listed})",
                    f"GROUPING SETS (({listed}), ())",
                    f"DISTINCT {listed}",
                )
            )
        having = f" HAVING {self.aggregate('boolean', scope, 0)}" if draw.chance(0.15) else ""
        return f"SELECT {', '.join(targets)}{source}{group}{having}", columns

    def tail(self, columns: Columns, depth: int) -> str:
        draw = self.draw
        text = ""
        if columns and draw.chance(0.3):
            by = draw.pick((str(1 + draw.upto(len(columns) - 1)), quote(draw.pick(columns)[0])))
            text += f" ORDER BY {by}{draw.pick(('', ' DESC', ' NULLS FIRST'))}"
        if draw.chance(0.25):
            count = self.expression("bigint", Scope(), depth - 1)
            ties = " ROWS WITH TIES" if "ORDER BY" in text else " ROWS ONLY"
            text += draw.pick(
                (
                    f" LIMIT {count}",
                    f" LIMIT {count} OFFSET {constant(draw, 'smallint')}",
                    " LIMIT ALL",
                    f" FETCH FIRST ({count}){ties}",
                )
            )
        return text

    def with_clause(self, scope: Scope, depth: int) -> str:
        draw = self.draw
        recursive = draw.chance(0.35)
        parts = []
        for _ in range(draw.upto(3, 1)):
            name = draw.pick((self.name("q"), self.name("q"), "secrets", "users", "people", "orders", "pg_class"))
            if any(name == known for known, _ in scope.ctes):
                continue
            materialized = draw.pick(("", "", "", "MATERIALIZED ", "NOT MATERIALIZED "))
            if recursive and draw.chance(0.5):
                inner = Scope(scope)
                inner.ctes.append((name, [("n", "integer")]))
                step = f"SELECT n + 1 FROM {identifier(name)} WHERE n < {draw.upto(5, 1)}"
                extra = draw.pick(
                    (
                        "",
                        "",
                        " SEARCH DEPTH FIRST BY n SET o",
                        " CYCLE n SET y USING p",
                        " SEARCH BREADTH FIRST BY n SET o CYCLE n SET y USING p",
                    )
                )
                start = self.expression("integer", Scope(scope), depth - 1)
                parts.append(
                    f"{identifier(name)}(n) AS {materialized}(SELECT {start} UNION {draw.pick(('', 'ALL '))}{step}){extra}"
                )
                columns: Columns = [("n", "integer")]
            else:
                text, columns = self.with_query(scope, depth)
                listed = ""
                if draw.chance(0.2):
                    columns = [(self.name("k"), type_) for _, type_ in columns]
                    listed = "(" + ", ".join(column for column, _ in columns) + ")"
                parts.append(f"{identifier(name)}{listed} AS {materialized}({text})")
            scope.ctes.append((name, columns))
        return f"WITH {'RECURSIVE ' if recursive else ''}{', '.join(parts)} " if parts else ""

    def with_query(self, scope: Scope, depth: int) -> tuple[str, Columns]:
        return self.query(scope, depth - 1)

    def scalar_query(self, type_: str, scope: Scope, depth: int, *, one: bool = True) -> str:
        text, columns = self.query(scope, depth - 1, [type_ if type_ in BASIC else "integer"])
        return f"SELECT {quote(columns[0][0])} FROM ({text}) AS {self.name('s')} LIMIT 1" if one else text

    def boolean_query(self, scope: Scope, depth: int) -> str:
        return self.query(scope, depth - 1)[0]
