"""Statements by chance about names: where a column is called like another one, and PostgreSQL's rules say which of them is meant.

Functions in FROM with and without alias lists, rows and sets in GROUP BY, USING and NATURAL, LATERAL, composites, generated columns,
views, system columns, writes under constraints. Each form of the grammar is a production with a name, and is counted.
"""

import random
from collections import Counter

EXTRA = """
CREATE TYPE pair AS (ssn text, card text);
CREATE FUNCTION two() RETURNS TABLE (email text, n int) LANGUAGE sql IMMUTABLE AS $$SELECT 'e', 1$$;
CREATE FUNCTION a_pair() RETURNS pair LANGUAGE sql IMMUTABLE AS $$SELECT ROW('p', 'q')::pair$$;
CREATE FUNCTION a_text() RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT 'x'$$;
CREATE FUNCTION out_one(OUT ssn text) LANGUAGE sql IMMUTABLE AS $$SELECT 'o'$$;
CREATE VIEW renamed AS SELECT id, ssn AS lexeme, email AS value FROM users;
CREATE VIEW listed AS SELECT u.id, u.city, u.ssn FROM users AS u;
CREATE TABLE made (id int, raw text, low text GENERATED ALWAYS AS (lower(coalesce(raw, '-'))) STORED UNIQUE, CHECK (id > 0));
CREATE TABLE rowed (id int, raw text, CHECK (rowed IS NOT NULL));
INSERT INTO made (id, raw) SELECT n, 'x' || n FROM generate_series(1, 5) n;
CREATE UNIQUE INDEX ON orders ((lower(card)), id);
ANALYZE;
"""
MASKS = "  made: {raw: full-redact}\n  rowed: {raw: null-out}\n"
RELATIONS = {
    "users": ("id", "city", "ssn", "email", "name", "tags"),
    "orders": ("id", "user_id", "status", "card"),
    "renamed": ("id", "lexeme", "value"),
    "listed": ("id", "city", "ssn"),
    "contacts": ("id", "name", "email", "number"),
    "products": ("id", "title"),
    "made": ("id", "raw", "low"),
}
POOL = ("ssn", "email", "card", "lexeme", "value", "id", "city", "key", "unnest", "n", "ctid", "number", "low", "raw")
FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "unnest of a tsvector": ("unnest('ssn1 a b'::tsvector)", ("lexeme", "positions")),
    "unnest of an array": ("unnest(ARRAY['a', 'b'])", ()),
    "unnest of two arrays": ("unnest(ARRAY['a'], ARRAY[1, 2])", ("unnest",)),
    "unnest of rows": ("unnest(ARRAY[ROW('a', 'b')::pair])", ("ssn", "card")),
    "unnest of a cast": ("unnest('{a,b}'::text[])", ()),
    "elements of JSON": ('json_array_elements_text(\'["a", "b"]\')', ("value",)),
    "members of JSON": ('jsonb_each_text(\'{"ssn": "a"}\')', ("key", "value")),
    "a populated row": ('jsonb_populate_record(NULL::pair, \'{"ssn": "a"}\')', ("ssn", "card")),
    "a series": ("generate_series(1, 2)", ()),
    "ROWS FROM": ("ROWS FROM (generate_series(1, 2), unnest('a'::tsvector))", ("generate_series", "lexeme")),
    "ROWS FROM with a list": ("ROWS FROM (jsonb_to_record('{}') AS (ssn text, n int), a_text())", ("ssn", "n", "a_text")),
    "a table function": ("two()", ("email", "n")),
    "a composite function": ("a_pair()", ("ssn", "card")),
    "a plain function": ("a_text()", ()),
    "a named OUT parameter": ("out_one()", ("ssn",)),
    "a piece of text": ("string_to_table('a,b', ',')", ()),
    "a built-in record": ("pg_input_error_info('x', 'int4')", ("message",)),
}


class Names:
    """An endless supply, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.produced: Counter[str] = Counter()
        self.ctes: list[tuple[str, tuple[str, ...]]] = []

    def pick(self, *choices: tuple[str, str]) -> str:
        """The text of one of these productions."""
        name, text = self.random.choice(choices)
        self.produced[name] += 1
        return text

    def chance(self, share: float, production: str) -> bool:
        if self.random.random() >= share:
            return False
        self.produced[production] += 1
        return True

    # --- FROM

    def alias(self) -> str:
        return self.random.choice(("a", "b", "x", "ssn", "email", "lexeme", "value", "card"))

    def item(self, depth: int) -> tuple[str, str, tuple[str, ...]]:
        """Text, the name of the item, and the columns that it may have."""
        kind = self.random.random()
        if kind < 0.45:
            name = self.random.choice(list(RELATIONS))
            alias, columns, text = name, RELATIONS[name], name
            if self.chance(0.6, "alias"):
                alias = self.alias()
                text = f"{name} AS {alias}"
                if self.chance(0.2, "column alias list"):
                    columns = tuple(self.random.choice(POOL[:8]) + str(number) for number in range(len(columns) - 1))
                    text += f" ({', '.join(columns)})"
            return text, alias, columns
        if kind < 0.8 or not depth:
            production = self.random.choice(list(FUNCTIONS))
            self.produced[production] += 1
            text, columns = FUNCTIONS[production]
            alias = self.alias()
            ordinality = " WITH ORDINALITY" if self.chance(0.2, "WITH ORDINALITY") else ""
            listed = ""
            if "AS (" not in text and self.chance(0.25, "alias list of a function"):
                listed = f" ({self.random.choice(POOL[:5])})"
            return f"{text}{ordinality} AS {alias}{listed}", alias, columns or (alias,)
        alias = self.alias()
        if self.ctes and self.chance(0.4, "WITH query in FROM"):
            name, columns = self.random.choice(self.ctes)
            return f"{name} AS {alias}", alias, columns
        if self.chance(0.15, "VALUES in FROM"):
            return f"(VALUES (1, 'a'), (2, 'b')) AS {alias} (id, {self.random.choice(POOL[:5])})", alias, ("id",)
        lateral = "LATERAL " if self.chance(0.4, "LATERAL") else ""
        text, columns = self.select(depth - 1)
        return f"{lateral}({text}) AS {alias}", alias, columns

    def source(self, depth: int) -> tuple[str, list[tuple[str, tuple[str, ...]]]]:
        text, alias, columns = self.item(depth)
        items = [(alias, columns)]
        for _ in range(self.random.choice((0, 0, 1, 1, 2))):
            other, alias, columns = self.item(depth)
            if any(alias == known for known, _ in items):
                continue
            shared = [each for each in columns if any(each in known for _, known in items)] or ["id"]
            using = f"{text} JOIN {other} USING ({self.random.choice(shared)})"
            text = self.pick(
                ("comma", f"{text}, {other}"),
                ("CROSS JOIN", f"{text} CROSS JOIN {other}"),
                ("NATURAL JOIN", f"{text} NATURAL JOIN {other}"),
                ("USING", using),
                ("USING with an alias", f"{using} AS j"),
                ("LEFT JOIN ON", f"{text} LEFT JOIN {other} ON true"),
            )
            items.append((alias, columns))
        return text, items

    # --- expressions

    def reference(self, items: list[tuple[str, tuple[str, ...]]]) -> str:
        alias, columns = self.random.choice(items)
        known = self.random.choice(columns)
        return self.pick(
            ("bare name", known),
            ("qualified name", f"{alias}.{known}"),
            ("any name", self.random.choice(POOL)),
            ("any qualified name", f"{alias}.{self.random.choice(POOL)}"),
            ("plain column", known if known in ("id", "city", "status", "title", "n", "key") else "1"),
            ("plain qualified column", f"{alias}.id" if "id" in columns else "2"),
        )

    def target(self, items: list[tuple[str, tuple[str, ...]]], depth: int) -> str:
        reference = self.reference(items)
        alias = self.random.choice(items)[0]
        choices = [
            ("column", reference), ("column", reference), ("column", reference),
            ("x.*", f"{alias}.*"), ("*", "*"), ("whole row", alias), ("(x).name", f"({alias}).id"),
            ("f(x)", f"id({alias})"), ("count(*)", "count(*)"), ("count(column)", f"count({reference})"),
            ("cast", f"{reference}::text"), ("row", f"ROW({reference}, 1)"),
        ]  # fmt: skip
        if depth:
            choices += [("scalar subquery", f"({self.scalar(depth - 1)})")] * 3
        text = self.pick(*choices)
        return f"{text} AS {self.random.choice(POOL)}" if text != "*" and "*" not in text and self.chance(0.4, "AS") else text

    def scalar(self, depth: int) -> str:
        source, items = self.source(depth)
        return f"SELECT {self.reference(items)} FROM {source} LIMIT 1"

    def select(self, depth: int) -> tuple[str, tuple[str, ...]]:
        source, items = self.source(depth)
        targets = [self.target(items, depth) for _ in range(self.random.randint(1, 3))]
        names = tuple(each.rpartition(" AS ")[2] if " AS " in each else each.rpartition(".")[2] for each in targets)
        text = f"{', '.join(targets)} FROM {source}"
        if self.chance(0.25, "WHERE"):
            text += f" WHERE {self.reference(items)}::text {self.random.choice(('=', '<>', '<'))} 'a'"
        if self.chance(0.25, "GROUP BY"):
            text += f" GROUP BY {self.grouping(len(targets), names)}"
        if self.chance(0.2, "ORDER BY"):
            by = self.pick(("ORDER BY a number", "1"), ("ORDER BY a name", names[0] if names[0].isidentifier() else "1"))
            text += f" ORDER BY {by}"
        distinct = self.random.choice(("DISTINCT ", "DISTINCT ON (1) ")) if self.chance(0.08, "DISTINCT") else ""
        return f"SELECT {distinct}{text}", tuple(name if name.isidentifier() else "id" for name in names)

    def grouping(self, count: int, names: tuple[str, ...]) -> str:
        keys = [str(number) for number in range(1, count + 1)]
        keys = [
            name if name.isidentifier() and self.chance(0.5, "GROUP BY a name") else key
            for key, name in zip(keys, names, strict=True)
        ]
        listed = ", ".join(keys)
        row = f"({listed}, 1)"
        return self.pick(
            ("plain GROUP BY", listed),
            ("row in GROUP BY", row),
            ("row in a row", f"(1, {row})"),
            ("ROLLUP", f"ROLLUP ({row})"),
            ("CUBE", f"CUBE ({row}, 1)"),
            ("GROUPING SETS", f"GROUPING SETS ({row}, ())"),
            ("sets in sets", f"GROUPING SETS (ROLLUP ({row}), CUBE ({listed}))"),
        )

    # --- statements

    def read(self) -> str:
        self.ctes = []
        prefix = ""
        if self.chance(0.15, "WITH"):
            text, columns = self.select(1)
            listed = ""
            if self.chance(0.4, "column list of WITH"):
                columns = tuple(f"{self.random.choice(POOL[:6])}{number}" for number in range(len(columns)))
                listed = f" ({', '.join(columns)})"
            prefix = f"WITH q{listed} AS ({text}) "
            self.ctes.append(("q", columns))
        text, _ = self.select(2)
        if self.chance(0.06, "set operation"):
            text += self.pick(("UNION ALL", " UNION ALL "), ("EXCEPT", " EXCEPT ")) + self.select(1)[0]
        explain = "EXPLAIN " if self.chance(0.06, "EXPLAIN") else ""
        return f"{explain}{prefix}{text}"

    def write(self) -> str:
        self.ctes = []
        number = self.random.randint(1, 9)
        scalar = self.scalar(1)
        value = f"x{self.random.randint(1, 9)}"
        return self.pick(
            ("INSERT of a generated key", f"INSERT INTO made (id, raw) VALUES ({number}, '{value}')"),
            ("INSERT without it", f"INSERT INTO made (id) VALUES ({number})"),
            ("UPDATE of what it is made of", f"UPDATE made SET raw = '{value}' WHERE id = {number}"),
            ("UPDATE beside it", f"UPDATE made SET id = {number} WHERE id = {number}"),
            ("ON CONFLICT", f"INSERT INTO made (id, raw) VALUES ({number}, '{value}') ON CONFLICT (low) DO NOTHING"),
            ("whole-row CHECK", f"UPDATE rowed SET id = {number} WHERE id > 0"),
            ("INSERT from a query", f"INSERT INTO notes SELECT {self.random.randrange(10**6, 10**8)}, ({scalar})::text"),
            ("UPDATE from a query", f"UPDATE notes SET body = ({scalar})::text WHERE id = {number}"),
            ("key over an expression", f"UPDATE orders SET status = 'new' WHERE id = {number} RETURNING id"),
        )  # fmt: skip
