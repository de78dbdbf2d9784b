"""Whole statements: queries, EXPLAIN, SHOW, the four row writes, definitions, and everything that no policy can grant."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from tests.properties import mutations
from tests.properties.draw import Draw
from tests.properties.leaves import Item, Scope, identifier
from tests.properties.literals import constant
from tests.properties.model import Model, Relation
from tests.properties.queries import Queries
from tests.properties.sources import Columns

HERE: Final = Path(__file__).parent
SETTINGS: Final = (
    "search_path",
    "TimeZone",
    "server_version",
    "work_mem",
    "data_directory",
    "ALL",
    "transaction_read_only",
    "is_superuser",
    "custom.salt",
)
WRITABLE: Final = ("notes", "stock", "logs", "logs_a", "orders", "plants", "note_view", "active_users", "plain_rules", "events")
UTILITY: Final = tuple((HERE / "utility.txt").read_text(encoding="utf-8").splitlines())
DEFINITIONS: Final = tuple((HERE / "definitions.txt").read_text(encoding="utf-8").splitlines())


class Statements(Queries):
    def with_query(self, scope: Scope, depth: int) -> tuple[str, Columns]:
        if self.draw.chance(self.modifying):
            return self.row_write(scope, depth - 1, returning=True)
        return super().with_query(scope, depth)

    modifying: float = 0.03

    def statement(self, depth: int) -> str:
        draw = self.draw
        kind = draw.shape.random()
        if kind < 0.74:
            return self.query(Scope(), depth)[0]
        if kind < 0.79:
            return self.explain(depth)
        if kind < 0.91:
            self.modifying = 0.2
            scope = Scope()
            with_clause = self.with_clause(scope, depth - 1) if draw.chance(0.2) else ""
            return with_clause + self.row_write(scope, depth - 1)[0]
        if kind < 0.92:
            return f"SHOW {draw.pick(SETTINGS)}"
        if kind < 0.93:
            return f"TABLE {self.relation_name(self.relation())}"
        return self.filled(draw.pick(DEFINITIONS if kind < 0.97 else UTILITY), depth)

    def explain(self, depth: int) -> str:
        draw = self.draw
        options = draw.pick(
            (
                "",
                "VERBOSE",
                "(FORMAT JSON)",
                "(COSTS OFF)",
                "(ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)",
                "(VERBOSE, SETTINGS)",
                "ANALYZE",
            )
        )
        inner = self.query(Scope(), depth)[0] if draw.chance(0.8) else self.row_write(Scope(), depth - 1)[0]
        return f"EXPLAIN {options} {inner}"

    def filled(self, template: str, depth: int) -> str:
        scope = Scope()
        relation = self.relation()
        parts: dict[str, Callable[[], str]] = {
            "table": lambda: self.relation_name(relation),
            "query": lambda: self.query(Scope(), depth - 1)[0],
            "function": lambda: self.draw.pick(self.model.own_functions).name,
            "int": lambda: self.expression("integer", scope, 1),
            "expression": lambda: self.expression(self.type(), scope, 1),
            "condition": lambda: self.expression("boolean", scope, 1),
        }
        for name, make in parts.items():
            while "{" + name + "}" in template:
                template = template.replace("{" + name + "}", make(), 1)
        return template

    # --- row writes

    def target(self) -> Relation:
        known = [each for each in self.model.tables if each.name in WRITABLE]
        return self.draw.pick(known) if self.draw.chance(0.9) else self.relation()

    def row_write(self, scope: Scope, depth: int, *, returning: bool = False) -> tuple[str, Columns]:
        draw = self.draw
        target = self.target()
        own = Scope(scope)
        own.hides_outer = True
        own.items.append(Item(target.name, target.columns, target.name if target.schema == "public" else None))
        make = draw.pick((self.insert, self.insert, self.update, self.delete, self.merge))
        text = make(target, own, depth)
        if not (returning or draw.chance(0.5)):
            return text, []
        if draw.chance(0.2):
            return f"{text} RETURNING *", [(name, type_) for name, type_ in target.columns]
        type_ = self.type()
        name = self.name("r")
        if make == self.merge and draw.chance(0.3):
            return f"{text} RETURNING merge_action() AS {name}", [(name, "text")]
        options = draw.pick(("", "", "", " WITH (OLD AS o, NEW AS w)"))
        return f"{text} RETURNING{options} {self.expression(type_, own, depth)} AS {name}", [(name, type_)]

    def insert(self, target: Relation, scope: Scope, depth: int) -> str:
        draw = self.draw
        columns = draw.some(target.columns, 3) if target.columns else []
        names = ", ".join(identifier(name) for name, _ in columns)
        outside = Scope(scope.outer)
        if draw.chance(0.06):
            source = "DEFAULT VALUES"
            names = ""
        elif draw.chance(0.5):
            source = (
                "VALUES ("
                + ", ".join("DEFAULT" if draw.chance(0.1) else self.expression(type_, outside, depth) for _, type_ in columns)
                + ")"
            )
        else:
            source = self.query(outside, depth, [type_ for _, type_ in columns])[0]
        conflict = ""
        if draw.chance(0.3) and columns:
            arbiter = draw.pick(("", "(id)", "(item)", "ON CONSTRAINT stock_pkey"))
            name, type_ = draw.pick(target.columns)
            value = draw.pick((f"EXCLUDED.{identifier(name)}", self.expression(type_, scope, depth)))
            update = f"DO UPDATE SET {identifier(name)} = {value}"
            where = f" WHERE {self.expression('boolean', scope, depth)}" if draw.chance(0.3) else ""
            conflict = f" ON CONFLICT {arbiter} {draw.pick(('DO NOTHING', update + where))}"
        return f"INSERT INTO {self.relation_name(target)}{f' ({names})' if names else ''} {source}{conflict}"

    def assignments(self, target: Relation, scope: Scope, depth: int) -> str:
        draw = self.draw
        if draw.chance(0.15) and len(target.columns) > 1:
            (a, of_a), (b, of_b) = target.columns[:2]
            return (
                f"({identifier(a)}, {identifier(b)}) = (SELECT * FROM ({self.query(scope, depth, [of_a, of_b])[0]}) AS q LIMIT 1)"
            )
        return ", ".join(
            f"{identifier(name)} = {self.expression(type_, scope, depth)}" for name, type_ in draw.some(target.columns, 2)
        )

    def update(self, target: Relation, scope: Scope, depth: int) -> str:
        draw = self.draw
        also = self.from_clause(scope, 0) if draw.chance(0.25) else ""
        where = f" WHERE {self.expression('boolean', scope, depth)}" if draw.chance(0.9) else ""
        only = "ONLY " if draw.chance(0.1) else ""
        return f"UPDATE {only}{self.relation_name(target)} SET {self.assignments(target, scope, depth)}{also}{where}"

    def delete(self, target: Relation, scope: Scope, depth: int) -> str:
        draw = self.draw
        also = self.from_clause(scope, 0).replace(" FROM ", " USING ", 1) if draw.chance(0.25) else ""
        return f"DELETE FROM {self.relation_name(target)}{also} WHERE {self.expression('boolean', scope, depth)}"

    def merge(self, target: Relation, scope: Scope, depth: int) -> str:
        draw = self.draw
        source = self.from_item(scope, min(depth, 1))
        clauses = []
        for _ in range(draw.upto(3, 1)):
            extra = f" AND {self.expression('boolean', scope, 0)}" if draw.chance(0.3) else ""
            matched = draw.pick(("MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"))
            if matched == "NOT MATCHED":
                name, type_ = draw.pick(target.columns) if target.columns else ("id", "integer")
                action = draw.pick(
                    (f"INSERT ({identifier(name)}) VALUES ({constant(draw, type_)})", "DO NOTHING", "INSERT DEFAULT VALUES")
                )
            else:
                action = draw.pick((f"UPDATE SET {self.assignments(target, scope, 0)}", "DELETE", "DO NOTHING"))
            clauses.append(f"WHEN {matched}{extra} THEN {action}")
        condition = self.expression("boolean", scope, depth)
        return f"MERGE INTO {self.relation_name(target)} USING {source} ON {condition} {' '.join(clauses)}"


def generate(shape: Random, literals: Random, model: Model, depth: int = 3, *, twists: bool = True) -> str:
    """One statement: as the grammar gives it, or twisted by one or two mutations."""
    draw = Draw(shape, literals)
    text = Statements(draw, model).statement(draw.upto(depth, 1))
    for _ in range(draw.pick((0, 0, 0, 0, 1, 1, 2)) if twists and draw.chance(0.7) else 0):
        text = mutations.mutate(draw, text)
    return text
