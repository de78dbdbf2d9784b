"""What a decision costs: a new statement, a repeated one, on a small and a large catalog, and texts of 100 kB of any kind.

    .venv/bin/python -m tests.bench.bench_decide

Processor time of this process alone, so that a busy machine changes little. Aims: new below 200 µs for a typical statement,
repeated below 10 µs, 100 kB of anything below 50 ms.
"""

from collections.abc import Callable
from random import Random
from statistics import median
from time import process_time_ns

from gatewayd.catalog import Catalog, Column, Relation
from gatewayd.corridor.known_statements import KnownStatements
from gatewayd.judge import judge
from gatewayd.policy.decide.decision import decide
from gatewayd.policy.file.model import Policy, TableAccess
from gatewayd.sql.facts.analyze import analyze

TYPICAL = {
    "by key": "SELECT id, name, email FROM users WHERE id = 42",
    "join and group": "SELECT u.name, count(*) AS n, sum(o.total) AS total FROM users AS u JOIN orders AS o ON o.user_id = u.id "
    "WHERE o.placed >= '2024-01-01' GROUP BY u.name ORDER BY total DESC LIMIT 20",
    "window": "SELECT id, total, rank() OVER (PARTITION BY user_id ORDER BY total DESC) FROM orders",
    "with": "WITH recent AS (SELECT * FROM orders WHERE placed > now() - interval '7 days') "
    "SELECT u.id, r.total FROM users u LEFT JOIN recent r ON r.user_id = u.id",
    "update": "UPDATE orders SET total = total * 1.1 WHERE id = 7",
    "denied": "SELECT * FROM secrets",
}
POLICY = Policy(TableAccess("read", {("public", "secrets"): "deny", ("public", "orders"): "read_write"}))


def catalog(tables: int) -> Catalog:
    columns = tuple(Column(name, "text") for name in ("id", "name", "email", "user_id", "total", "placed"))
    names = ["users", "orders", "secrets", *(f"table_{number}" for number in range(tables))]
    return Catalog(
        revision=1,
        database="shop",
        relations={("public", name): Relation(16384 + oid, "public", name, "table", columns) for oid, name in enumerate(names)},
    )


def cost_us(call: Callable[[], object], times: int) -> float:
    """Median over rounds of one call's processor time."""
    rounds = []
    for _ in range(9):
        started = process_time_ns()
        for _ in range(times):
            call()
        rounds.append((process_time_ns() - started) / times / 1000)
    return median(rounds)


def typical() -> None:
    small, large = catalog(20), catalog(10_000)
    known_statements = KnownStatements()
    print(f"{'statement':<16}{'parse and walk':>16}{'new':>10}{'new, 10 000 tables':>20}{'repeated':>10}   µs")
    for name, sql in TYPICAL.items():
        known = known_statements.add(sql, analyze(sql))
        known.keep(judge(known.statement, POLICY, small), 1, 1)

        def repeated(sql: str = sql) -> object:
            found = known_statements.get(sql)
            return found.verdict(1, 1) if found is not None else None

        figures = (
            cost_us(lambda sql=sql: analyze(sql), 200),  # type: ignore[misc] # bound now, called now
            cost_us(lambda sql=sql: decide(analyze(sql), POLICY, small), 200),  # type: ignore[misc] # the same
            cost_us(lambda sql=sql: decide(analyze(sql), POLICY, large), 200),  # type: ignore[misc] # the same
            cost_us(repeated, 5000),
        )
        print(f"{name:<16}{figures[0]:>16.0f}{figures[1]:>10.0f}{figures[2]:>20.0f}{figures[3]:>10.2f}")


def hostile(size: int) -> dict[str, str]:
    chance = Random(1)
    words = (
        "select",
        "from",
        "(",
        ")",
        ",",
        "1",
        "'",
        '"',
        "/*",
        "*/",
        "--",
        "$$",
        "t",
        ".",
        "+",
        "@",
        "::",
        "union",
        "case",
        "\n",
    )
    return {
        "bytes": bytes(chance.randrange(256) for _ in range(size // 2)).decode("latin-1"),
        "letters": "".join(chance.choice("abcdefghij ") for _ in range(size)),
        "words": " ".join(chance.choice(words) for _ in range(size // 4)),
        "brackets": "SELECT " + "(" * size,
        "closed brackets": "SELECT " + "(" * (size // 2) + "1" + ")" * (size // 2),
        "operators": "SELECT 1 " + "+-" * (size // 2),
        "comments": "/*" * (size // 2),
        "comment lines": "SELECT 1" + "\n--x" * (size // 4),
        "semicolons": ";" * size,
        "list": "SELECT 1" + ",1" * (size // 2),
        "in list": "SELECT 1 FROM users WHERE id IN (1" + ",1" * (size // 2) + ")",
        "columns": "SELECT id" + ",name" * (size // 5) + " FROM users",
        "calls": "SELECT 1" + ",f(x)" * (size // 5),
        "unions": "SELECT 1" + " UNION SELECT 1" * (size // 15),
        "joins": "SELECT 1 FROM users" + " JOIN users ON true" * (size // 19),
        "ctes": "WITH a0 AS (SELECT 1)"
        + "".join(f", a{n} AS (SELECT 1 FROM a{n - 1})" for n in range(1, size // 32))
        + " SELECT 1",
        "rows": "INSERT INTO orders VALUES (1,'a')" + ",(1,'a')" * (size // 8),
        "and": "SELECT 1 FROM users WHERE a" + " AND a" * (size // 6),
        "literal": "SELECT '" + "x" * size + "'",
        "selections": "SELECT (((x).a).b)" + ".c" * (size // 2),
    }


def main() -> None:
    typical()
    known = catalog(20)
    print(f"\n{'100 kB of':<18}{'ms':>8}   decision")
    for name, sql in hostile(100_000).items():
        cost_ms = []
        for _ in range(5):
            started = process_time_ns()
            decision = decide(analyze(sql), POLICY, known)
            cost_ms.append((process_time_ns() - started) / 1e6)
        print(f"{name:<18}{median(cost_ms):>8.1f}   {type(decision).__name__}")


if __name__ == "__main__":
    main()
