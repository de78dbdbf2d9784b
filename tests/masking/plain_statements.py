"""Statements that only show masked columns."""

from tests.masking.masking_statements import RELATIONS, Column, Item, Statements

MASKED = frozenset(
    {
        "email",
        "ssn",
        "phone",
        "birthday",
        "salary",
        "age",
        "profile",
        "tags",
        "card",
        "ip",
        "label",
        "badge",
        '"Näme x"',
        '"Wert"',
    }
)


class PlainStatements(Statements):
    """Masked columns stand in select lists only, and there as they are; what is computed is computed with others."""

    def column(self, items: list[Item], kind: str) -> str:  # type: ignore[override]  # the same in a narrower form
        kept = [Item(item.alias, tuple(column for column in item.columns if column.name not in MASKED)) for item in items]
        return super().column(kept, kind)

    def select(self, depth: int) -> tuple[str, tuple[Column, ...]]:
        sql, columns = super().select(depth)
        if not sql.startswith("SELECT ") or " AS o0" not in sql or "DISTINCT" in sql or "GROUP BY" in sql or self.chance(0.4):
            return sql, columns
        relation = self.random.choice([name for name in RELATIONS if any(each.name in MASKED for each in RELATIONS[name])])
        shown = self.random.choice([each for each in RELATIONS[relation] if each.name in MASKED])
        key = '"Id"' if "Größe" in relation else "id"
        value = f"(SELECT m.{shown.name} FROM {relation} AS m WHERE m.{key} = {self.random.randint(1, 40)})"
        return f"SELECT {value} AS shown, {sql.removeprefix('SELECT ')}".replace("ORDER BY 1", "ORDER BY 2"), ()
