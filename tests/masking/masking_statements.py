"""Statements by chance over the shop: joins, CTEs, set operations, windows, aggregates, subqueries, writes with RETURNING.

They are typed loosely on purpose: what PostgreSQL refuses must be refused alike in both databases too.
"""

import random
from collections.abc import Sequence
from typing import NamedTuple


class Column(NamedTuple):
    name: str
    kind: str  # "number", "text", "time" or "other"


def _columns(text: str) -> tuple[Column, ...]:
    return tuple(Column(*each.split(":")) for each in text.split())


RELATIONS: dict[str, tuple[Column, ...]] = {
    "users": _columns(
        "id:number name:text city:text email:text ssn:text phone:text birthday:time salary:number age:text "
        "manager_id:number created_at:time profile:text tags:other"
    ),
    "orders": _columns("id:number user_id:number status:text total:number card:text ordered_at:time"),
    "products": (Column("id", "number"), Column("title", "text"), Column("price", "number")),
    "order_items": (Column("order_id", "number"), Column("product_id", "number"), Column("quantity", "number")),
    "app.visits": _columns("id:number day:time user_id:number ip:other seconds:number"),
    "app.visits_2024": _columns("id:number day:time ip:other seconds:number"),
    "app.people": (Column("id", "number"), Column("label", "text")),
    "app.staff": (Column("id", "number"), Column("label", "text"), Column("badge", "text")),
    'app."Größe"': (Column('"Id"', "number"), Column('"Näme x"', "text"), Column('"Wert"', "number")),
    "contacts": (Column("id", "number"), Column("name", "text"), Column("email", "text"), Column("number", "text")),
    "app.contacts_again": (Column("id", "number"), Column("email", "text"), Column("number", "text")),
    "user_cities": (Column("id", "number"), Column("name", "text"), Column("city", "text")),
    "app.cards": (Column("id", "number"), Column("card", "text"), Column("total", "number")),
    "rich": (Column("id", "number"), Column("name", "text")),
    "spend": (Column("city", "text"), Column("n", "number"), Column("total", "number")),
}
WRITTEN = ("users", "orders", "app.people", "notes", 'app."Größe"')


class Item(NamedTuple):
    alias: str
    columns: tuple[Column, ...]


class Statements:
    """An endless supply, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.number = 0
        self.ctes: list[Item] = []

    def read(self) -> str:
        self.ctes = []
        sql, _ = self.query(2)
        return f"EXPLAIN {sql}" if self.chance(0.03) else sql

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def alias(self) -> str:
        self.number += 1
        return self.random.choice((f"t{self.number}", f"ü{self.number}", f'"Q {self.number}"'))

    # queries

    def query(self, depth: int) -> tuple[str, tuple[Column, ...]]:
        kind = self.random.random()
        if depth and kind < 0.12:
            return self.with_ctes(depth)
        if depth and kind < 0.24:
            return self.set_operation(depth)
        return self.select(depth)

    def with_ctes(self, depth: int) -> tuple[str, tuple[Column, ...]]:
        before = list(self.ctes)
        parts: list[str] = []
        for _ in range(self.random.randint(1, 2)):
            inner, columns = self.select(depth - 1)
            name = f"c{len(parts)}_{self.number}"
            self.number += 1
            parts.append(f"{name} AS {self.random.choice(('', 'MATERIALIZED ', 'NOT MATERIALIZED '))}({inner})")
            self.ctes.append(Item(name, columns))
        sql, columns = self.select(depth - 1)
        self.ctes = before
        return f"WITH {', '.join(parts)} {sql}", columns

    def set_operation(self, depth: int) -> tuple[str, tuple[Column, ...]]:
        operator = self.random.choice(("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL"))
        width = self.random.randint(1, 3)
        kinds = [self.random.choice(("number", "text")) for _ in range(width)]
        arms: list[str] = []
        columns: tuple[Column, ...] = ()
        for _ in range(2):
            sources, items = self.from_clause(depth - 1)
            targets = [f"{self.expression(items, kind, 1)} AS o{n}" for n, kind in enumerate(kinds)]
            arms.append(f"SELECT {', '.join(targets)} FROM {sources}{self.where(items, depth - 1)}")
            columns = tuple(Column(f"o{n}", kind) for n, kind in enumerate(kinds))
        tail = f" ORDER BY {self.random.randint(1, width)}" if self.chance(0.5) else ""
        return f"({arms[0]}) {operator} ({arms[1]}){tail}", columns

    def select(self, depth: int) -> tuple[str, tuple[Column, ...]]:
        if self.chance(0.05):
            name = self.random.choice(("users", "orders", "app.people", 'app."Größe"'))
            return f"TABLE {self.random.choice(('', 'ONLY '))}{name}", RELATIONS[name]
        sources, items = self.from_clause(depth)
        where = self.where(items, depth)
        kind = self.random.random()
        if kind < 0.3:
            return self.grouped(sources, items, where, depth)
        if kind < 0.4:
            item = self.random.choice(items)
            star = self.random.choice(("*", f"{item.alias}.*"))
            return f"SELECT {star} FROM {sources}{where}{self.tail(0)}", item.columns if star != "*" or len(items) == 1 else ()
        kinds = [self.random.choice(("number", "text", "text", "time")) for _ in range(self.random.randint(1, 4))]
        targets = [self.expression(items, each, 2) for each in kinds]
        if kind < 0.55:
            targets.append(self.window(items))
            kinds.append("number")
        elif kind < 0.62:
            targets.append(f"row_to_json({self.random.choice(items).alias})")
            kinds.append("other")
        named = ", ".join(f"{target} AS o{number}" for number, target in enumerate(targets))
        distinct = "DISTINCT " if self.chance(0.15) and kind >= 0.62 else ""
        columns = tuple(Column(f"o{number}", each) for number, each in enumerate(kinds))
        return f"SELECT {distinct}{named} FROM {sources}{where}{self.tail(len(targets))}", columns

    def grouped(self, sources: str, items: Sequence[Item], where: str, depth: int) -> tuple[str, tuple[Column, ...]]:
        keys = [self.expression(items, self.random.choice(("number", "text")), 1) for _ in range(self.random.randint(0, 2))]
        targets = keys + [self.aggregate(items) for _ in range(self.random.randint(1, 2))]
        named = ", ".join(f"{target} AS o{number}" for number, target in enumerate(targets))
        group = f" GROUP BY {', '.join(str(n + 1) for n in range(len(keys)))}" if keys else ""
        if keys and self.chance(0.1):
            group = group.replace("GROUP BY", "GROUP BY ROLLUP (") + ")"
        having = f" HAVING count(*) > {self.random.randint(0, 3)}" if self.chance(0.2) else ""
        columns = tuple(Column(f"o{number}", "text" if number < len(keys) else "number") for number in range(len(targets)))
        return f"SELECT {named} FROM {sources}{where}{group}{having}{self.tail(len(targets))}", columns

    def tail(self, width: int) -> str:
        order = (
            f" ORDER BY {self.random.randint(1, width)}{self.random.choice((' DESC', ''))}" if width and self.chance(0.4) else ""
        )
        return order + (f" LIMIT {self.random.randint(1, 20)}" if self.chance(0.4) else "")

    def from_clause(self, depth: int) -> tuple[str, list[Item]]:
        text, item = self.source(depth)
        items = [item]
        for _ in range(self.random.choice((0, 0, 1, 1, 2))):
            other, joined = self.source(depth)
            kind = self.random.random()
            if kind < 0.15:
                text += f" NATURAL JOIN {other}"
            elif kind < 0.3:
                text += f" JOIN {other} USING (id)"
            elif kind < 0.4:
                text += f" CROSS JOIN {other}"
            else:
                both = [*items, joined]
                condition = f"{self.column(items, 'number')} = {self.column([joined], 'number')}"
                if self.chance(0.3):
                    condition = f"{self.column(items, 'text')} = {self.column([joined], 'text')}"
                if self.chance(0.2):
                    condition += f" AND {self.predicate(both, 0)}"
                text += f" {self.random.choice(('JOIN', 'LEFT JOIN', 'FULL JOIN', 'RIGHT JOIN'))} {other} ON {condition}"
            items.append(joined)
        return text, items

    def source(self, depth: int) -> tuple[str, Item]:
        alias = self.alias()
        if self.ctes and self.chance(0.4):
            cte = self.random.choice(self.ctes)
            return f"{cte.alias} AS {alias}", Item(alias, cte.columns)
        if depth and self.chance(0.2):
            sql, columns = self.query(depth - 1)
            return f"({sql}) AS {alias}", Item(alias, columns)
        name = self.random.choice((*RELATIONS, "users", "users", "orders"))
        only = "ONLY " if self.chance(0.05) else ""
        sample = " TABLESAMPLE bernoulli (100)" if name in ("users", "orders") and self.chance(0.05) else ""
        if self.chance(0.1):
            renamed = tuple(Column(f"k{number}", column.kind) for number, column in enumerate(RELATIONS[name]))
            return f"{only}{name} AS {alias} ({', '.join(each.name for each in renamed)}){sample}", Item(alias, renamed)
        return f"{only}{name} AS {alias}{sample}", Item(alias, RELATIONS[name])

    # expressions

    def where(self, items: Sequence[Item], depth: int) -> str:
        return f" WHERE {self.predicate(items, depth)}" if self.chance(0.5) else ""

    def predicate(self, items: Sequence[Item], depth: int) -> str:
        kind = self.random.random()
        text, number = self.column(items, "text"), self.column(items, "number")
        if depth and kind < 0.12:
            sources, inner = self.from_clause(0)
            link = f"{self.column(inner, 'number')} = {number}"
            return f"{self.random.choice(('', 'NOT '))}EXISTS (SELECT * FROM {sources} WHERE {link})"
        if depth and kind < 0.24:
            sources, inner = self.from_clause(0)
            operand = self.random.choice(("text", "number"))
            column = text if operand == "text" else number
            return f"{column} {self.random.choice(('IN', 'NOT IN'))} (SELECT {self.column(inner, operand)} FROM {sources})"
        if kind < 0.34:
            return f"({self.predicate(items, 0)} {self.random.choice(('AND', 'OR'))} {self.predicate(items, 0)})"
        if kind < 0.46:
            return f"{text} LIKE '{self.random.choice(('%1%', 'ssn%', '***', '_%', 'mail1%'))}'"
        if kind < 0.54:
            return f"{self.random.choice((text, number, self.column(items, 'time')))} IS {self.random.choice(('', 'NOT '))}NULL"
        if kind < 0.62:
            return f"length({text}) > {self.random.randint(1, 12)}"
        if kind < 0.7:
            return (
                f"{text} {self.random.choice(('=', '<', '>='))} '{self.random.choice(('***', 'Oslo', 'ssn5', 'user 7', 'mail'))}'"
            )
        return f"{number} {self.random.choice(('=', '<', '>', '<>'))} {self.random.randint(0, 60)}"

    def column(self, items: Sequence[Item], kind: str) -> str:
        fitting = [f"{item.alias}.{column.name}" for item in items for column in item.columns if column.kind == kind]
        if fitting:
            return self.random.choice(fitting)
        return {"number": "7", "text": "'x'::text", "time": "DATE '2024-01-01'"}.get(kind, "NULL")

    def expression(self, items: Sequence[Item], kind: str, depth: int) -> str:
        column = self.column(items, kind)
        chosen = self.random.random()
        if not depth or chosen < 0.5:
            return column
        if kind == "text":
            return self.random.choice((
                f"upper({column})", f"{column} || '!'", f"md5({column})", f"substr({column}, 1, 4)", f"coalesce({column}, 'none')",
                f"CASE WHEN {self.predicate(items, 0)} THEN {column} ELSE 'other' END", f"({self.scalar(items)})::text",
                f"(SELECT max({self.column(items, 'text')}))", f"{self.column(items, 'number')}::text",
            ))  # fmt: skip
        if kind == "number":
            return self.random.choice((
                f"length({self.column(items, 'text')})", f"{column} + 1", f"coalesce({column}, 0)", f"({self.scalar(items)})",
                f"{column} / {self.column(items, 'number')}", f"ascii({self.column(items, 'text')})", f"abs({column})",
                f"CAST({self.column(items, 'text')} AS int)" if self.chance(0.3) else f"{column} * 2",
            ))  # fmt: skip
        return column

    def scalar(self, items: Sequence[Item]) -> str:
        sources, inner = self.from_clause(0)
        link = f" WHERE {self.column(inner, 'number')} = {self.column(items, 'number')}" if self.chance(0.6) else ""
        return f"SELECT {self.aggregate(inner)} FROM {sources}{link}"

    def aggregate(self, items: Sequence[Item]) -> str:
        text, number = self.column(items, "text"), self.column(items, "number")
        return self.random.choice((
            "count(*)", f"count({text})", f"count(DISTINCT {text})", f"sum({number})", f"min({text})", f"max({number})", f"avg({number})",
            f"max({text})", f"count(*) FILTER (WHERE {self.predicate(items, 0)})", f"string_agg({text}, ',' ORDER BY {number}, {text})",
            f"bool_and({text} IS NOT NULL)", f"array_agg({text} ORDER BY {number}, {text})", f"mode() WITHIN GROUP (ORDER BY {text})",
        ))  # fmt: skip

    def window(self, items: Sequence[Item]) -> str:
        text, number = self.column(items, "text"), self.column(items, "number")
        function = self.random.choice(
            ("row_number()", "rank()", f"count({text})", f"sum({number})", f"lag({number})", "ntile(3)")
        )
        partition = f"PARTITION BY {self.random.choice((text, number))} " if self.chance(0.5) else ""
        return f"{function} OVER ({partition}ORDER BY {self.random.choice((text, number))})"

    # writes

    def write(self) -> str:
        self.ctes = []
        table = self.random.choice(WRITTEN)
        kind = self.random.random()
        returning = self.returning(table)
        source, item = self.source(1)
        items = [item]
        number = self.random.randint(1, 45)
        if table == "notes":
            return self.random.choice((
                f"INSERT INTO notes SELECT {1000 + self.fresh()}, {self.expression(items, 'text', 1)} FROM {source} LIMIT 1 RETURNING *",
                f"UPDATE notes SET body = {self.expression(items, 'text', 1)} FROM {source} WHERE notes.id = {self.random.randint(1, 5)} RETURNING body",
                f"INSERT INTO notes VALUES ({self.random.randint(1, 8)}, 'n') ON CONFLICT (id) DO UPDATE SET body = excluded.body RETURNING *",
                f"DELETE FROM notes USING {source} WHERE notes.id > 900 AND {self.predicate(items, 1)} RETURNING notes.id",
                f"WITH d AS (UPDATE notes SET body = 'm' WHERE id = 1 RETURNING id) SELECT d.id, {self.expression(items, 'text', 1)} AS o FROM d, {source} LIMIT 3",
                f"MERGE INTO notes AS n USING (SELECT id, name FROM users WHERE id < {number}) AS s ON n.id = s.id WHEN MATCHED THEN UPDATE SET body = s.name",
            ))  # fmt: skip
        key = '"Id"' if table.startswith('app."') else "id"
        masked = {"users": "ssn", "orders": "card", "app.people": "label"}.get(table, '"Näme x"')
        plain = {"users": "city", "orders": "status"}.get(table, key)
        value = "'w'" if plain != key else str(number)
        if kind < 0.3:
            return f"UPDATE {table} SET {masked} = '{self.random.choice(('a', 'b'))}' WHERE {key} = {number}{returning}"
        if kind < 0.5:
            return f"UPDATE {table} SET {plain} = {value} WHERE {key} = {number} AND {self.predicate([Item(table, RELATIONS[table])], 1)}{returning}"
        if kind < 0.6:
            return f"UPDATE {table} AS z SET {masked} = {self.expression(items, 'text', 1)} FROM {source} WHERE z.{key} = {number}{returning}"
        if kind < 0.7:
            return f"DELETE FROM {table} WHERE {key} = {number} AND {masked} = '{self.random.choice(('***', 'a'))}'{returning}"
        if kind < 0.8 and table == "orders":
            return f"INSERT INTO orders SELECT {10**5 + self.fresh()}, 1, 'new', 5, {self.expression(items, 'text', 1)}, TIMESTAMP '2024-01-01' FROM {source} LIMIT 1{returning}"
        if kind < 0.9:
            return f"DELETE FROM {table} WHERE {key} = {number + 10**4}{returning}"
        return f"WITH w AS (UPDATE {table} SET {masked} = 'c' WHERE {key} = {number}{returning}) SELECT {self.expression(items, 'text', 1)} AS o FROM {source} LIMIT 4"

    def returning(self, table: str) -> str:
        key = '"Id"' if table.startswith('app."') else "id"
        return self.random.choice(
            ("", "", f" RETURNING {key}", " RETURNING *", f" RETURNING {table.rpartition('.')[2]}.{key}", " RETURNING 1 AS one")
        )

    def fresh(self) -> int:
        self.number += 1
        return self.number
