"""Short forms of facts, so that one rule is one row of a test table."""

from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement, Unparsed


def statement(sql: str) -> Statement:
    found = analyze(sql)
    assert isinstance(found, Statement), found
    return found


def unparsed(sql: str) -> Unparsed:
    found = analyze(sql)
    assert isinstance(found, Unparsed), found
    return found


def relations(sql: str) -> str:
    """`users:r app.items:rw new:wc` in order of appearance: r reads, w writes, c creates."""
    uses = []
    for use in statement(sql).relations:
        name = ".".join(part for part in (use.database, use.schema, use.name) if part is not None)
        uses.append(f"{name}:{'r' * use.reads}{'w' * use.writes}{'c' * use.creates}")
    return " ".join(uses)


def refused(sql: str) -> list[str]:
    return [site.found for site in statement(sql).sites if site.rule == "refused"]
