"""Overload resolution against the server's own: every overloaded name with operands of every kind of type."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import trio

from gatewayd.catalog import FIRST_USER_OID, Catalog
from gatewayd.policy.decide.decision import Rules, decide
from gatewayd.policy.decide.outcomes import Allowed
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.catalog.read_catalog import read_catalog
from gatewayd.postgres.embedded import VERSIONS, EmbeddedPostgres, Version
from gatewayd.postgres.pool import Pool
from gatewayd.sql.bind.bound import Bound
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests import places
from tests.masking.masking_rig import policy_of
from tests.oracle.server import Bound as Server
from tests.oracle.server import Oracle, Refused

SCHEMA = Path(__file__).with_name("overloads.sql")
OPERANDS = (
    "1", "3000000000", "-2147483648",
    "-3000000000", "1.5", "'x'", "NULL", "true", "id", "n", "s", "d", "f", "name", "code", "c", "flag", "day", "at", "m", "e",
    "o", "ints", "texts", "r", "u", "j", "ident", "oid_of", "'sad'::mood", "'x'::mail", "'x'::text[]", "'x' COLLATE \"C\"",
    "t.name", "p",
)  # fmt: skip
UNARY = ("upper({0})", "lower({0})", "length({0})", "abs({0})", "- {0}", "{0}::text", "{0}::boolean", "{0}::date", "{0}::int")
BINARY = (
    "{0} = {1}", "{0} < {1}", "{0} || {1}", "{0} + {1}", "{0} @> {1}", "{0} IN ({1}, {1})", "{0} IN ({1})",
    "{0} IS DISTINCT FROM {1}", "{0} = {1} OR {1} = {0}",
    "round({0}, {1})", "array_length({0}, {1})", "max({0}, {1})", "substr({0}, {1})", "to_char({0}, {1})", "date_trunc({0}, {1})",
    "repeat({0}, {1})", "\"left\"({0}, {1})", "concat({0}, {1})", "{0} BETWEEN {1} AND {1}",
)  # fmt: skip
HIDING = policy_of("table_access: {default: read, tables: {secrets: deny}}")


class Overloaded:
    def __init__(self, oracle: Oracle, catalog: Catalog) -> None:
        self.oracle = oracle
        self.catalog = catalog


@pytest.fixture(scope="module", params=VERSIONS)
def overloaded(request: pytest.FixtureRequest) -> Iterator[Overloaded]:
    version: Version = request.param
    root = Path(tempfile.mkdtemp(prefix="gwo", dir=places.ROOT))
    root.chmod(0o711)
    server = EmbeddedPostgres(root / "0", version=version, settings={"fsync": "off"})
    try:
        server.initialise()
        server.start()
        server.psql("CREATE DATABASE overloads")
        server.psql(SCHEMA.read_text("utf-8"), "overloads")

        async def read() -> Catalog:
            pool = Pool("overloads", server.url(database="overloads"), Limits(), 1)
            try:
                return await read_catalog(pool, 1)
            finally:
                await pool.aclose()

        yield Overloaded(Oracle(server, "overloads"), trio.run(read))
    finally:
        server.stop("immediate")
        shutil.rmtree(root, ignore_errors=True)


def statements() -> list[str]:
    unary = [form.format(each) for form, each in product(UNARY, OPERANDS)]
    binary = [form.format(one, other) for form, one, other in product(BINARY, OPERANDS[:27], OPERANDS[:27])]
    return [f"SELECT 1 FROM t WHERE ({each}) IS NULL" for each in (*unary, *binary[::3], *binary[1::7])]


def test_what_is_resolved_is_what_the_server_takes(overloaded: Overloaded) -> None:
    catalog, names = overloaded.catalog, overloaded.oracle.names
    counts: Counter[str] = Counter()
    wrong: list[object] = []
    texts = statements()
    for sql, server in zip(texts, overloaded.oracle.bind(texts), strict=True):
        if isinstance(server, Refused):
            counts["refused by the server"] += 1
            continue
        statement = analyze(sql)
        assert isinstance(statement, Statement)
        bound = Bound(sql, catalog, lambda index: catalog.relation("public", "t"))
        for use in statement.functions:
            if use.name not in catalog.overloads.functions or use.name in ("concat", "left"):
                continue  # variadic, and with a default: undecided
            taken = bound.functions(use.name)
            theirs = {oid for oid in server.calls if names.functions[oid][1] == use.name}
            counts[f"function {'exact' if taken else 'undecided'}"] += 1
            if taken is not None and theirs - taken:
                wrong.append((sql, taken, theirs))
        for operator in statement.operators:
            if operator.name not in catalog.overloads.operators:
                continue
            taken = bound.operators(operator.name)
            theirs = {oid for oid in server.operators if names.operators[oid][1] == operator.name}
            counts[f"operator {'exact' if taken else 'undecided'}"] += 1
            if taken is not None and theirs - taken:
                wrong.append((sql, taken, theirs))
        wrong += permitted_unseen(sql, statement, server, catalog)
    assert not wrong, "\n".join(map(str, wrong[:20]))
    assert counts["function exact"] > 3 * counts["function undecided"], counts
    assert counts["operator exact"] > 3 * counts["operator undecided"], counts


def permitted_unseen(sql: str, statement: Statement, server: Server, catalog: Catalog) -> list[tuple[str, str, int]]:
    """User-defined functions that an allowed statement would run though the policy does not permit them."""
    if not isinstance(decide(statement, HIDING, catalog), Allowed):
        return []
    rules = catalog.worked_out(Rules, HIDING)
    run = {oid for oid in server.functions if oid >= FIRST_USER_OID}
    own = {each.oid: each.function for each in catalog.operators}
    run |= {own[oid] for oid in server.operators if own.get(oid)}
    return [(sql, "runs", oid) for oid in run if rules.functions.refuse_function(catalog.functions[oid]) is not None]
