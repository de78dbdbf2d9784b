"""What counts as reading a source, and what a tainted grant is held to, without a database (docs/policy.md, Containment)."""

import msgspec
import pytest

from gatewayd.catalog import Catalog, Function, Relation, unread
from gatewayd.policy.decide.by_names import decide_by_names
from gatewayd.policy.decide.containment import contained
from gatewayd.policy.decide.decision import decide
from gatewayd.policy.decide.outcomes import Allowed, Denied, Held
from gatewayd.policy.file.load import load_policies
from gatewayd.policy.file.model import Policy
from gatewayd.policy.file.problem import PolicyErrors
from gatewayd.policy.replacement import policy_hash, sections_changed
from gatewayd.policy.tools.expect import load_cases, verdict_of
from gatewayd.policy.tools.lint import lint
from gatewayd.sql.facts.analyze import analyze


def policy(text: str, *, gate: bool = True) -> Policy:
    single = load_policies(text, {}, approval_gate=gate).single
    assert single is not None
    return single


WRITING = "table_access: {default: read_write, tables: {audit: read}}\n"
LISTED = WRITING + "functions: {allow: [public.slug]}\n"
PLAIN = policy(LISTED + "taint: {sources: [tickets], contain: {tables: {payroll: deny, rates: read}}}")
BY_HAND = policy(LISTED + "taint: {sources: [tickets], contain: {writes: hold, tables: {payroll: deny, rates: read}}}")
RELATIONS = (
    Relation(20001, "public", "tickets", "partitioned table", children=(20002,)),
    Relation(20002, "archive", "tickets_2024", "table", parents=(20001,)),
    Relation(20003, "public", "orders", "table"),
    Relation(20004, "public", "payroll", "table"),
    Relation(20005, "public", "v_tickets", "view", reads=(20001,)),
    Relation(20006, "public", "m_tickets", "materialized view", reads=(20005,)),
    Relation(20007, "public", "v_orders", "view", reads=(20003,)),
    Relation(20008, "public", "v_called", "view", reads=(20003,), functions=(30001,)),
    Relation(20009, "public", "rates", "table"),
    Relation(20010, "public", "audit", "table"),
    Relation(20011, "public", "v_payroll", "view", reads=(20004,)),
)
FUNCTIONS = (
    Function(30001, "public", "newest_ticket", "stable", False, "sql", None, 0),
    Function(30002, "public", "slug", "immutable", False, "sql", None, 1),
    Function(30003, "public", "similarity", "stable", False, "c", "pg_trgm", 2),
)
CATALOG = Catalog(
    revision=1,
    database="shop",
    relations={(each.schema, each.name): each for each in RELATIONS},
    functions={each.oid: each for each in FUNCTIONS},
)


def source(sql: str) -> str | None:
    decision = decide(analyze(sql), PLAIN, CATALOG)
    assert isinstance(decision, Allowed), decision
    return decision.reads_source


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("SELECT 1", None),
        ("SELECT * FROM orders", None),
        ("SELECT * FROM tickets", "public.tickets"),
        ("SELECT count(*) FROM tickets", "public.tickets"),
        ("SELECT * FROM archive.tickets_2024", "public.tickets"),  # a part of it
        ("SELECT * FROM v_tickets", "public.tickets"),
        ("SELECT * FROM m_tickets", "public.tickets"),
        ("SELECT * FROM v_orders", None),
        ("SELECT * FROM v_called", "public.v_called"),  # its query calls what may read anything
        ("SELECT newest_ticket()", "public.newest_ticket()"),
        ("SELECT slug(status) FROM orders", None),
        ("SELECT similarity('a', 'b')", None),
        ("SELECT id FROM orders WHERE note IN (SELECT body FROM tickets)", "public.tickets"),
        ("EXPLAIN SELECT * FROM tickets", "public.tickets"),
        ("INSERT INTO tickets (body) VALUES ('mine') RETURNING id", None),
        ("UPDATE tickets SET done = true WHERE id = 1", None),
        ("DELETE FROM tickets WHERE id = 1", None),
    ],
)
def test_what_reads_a_source(sql: str, read: str | None) -> None:
    assert source(sql) == read


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE tickets SET done = true WHERE id = 1 RETURNING body",
        "DELETE FROM tickets WHERE id = 1 RETURNING *",
        "INSERT INTO tickets (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET done = true RETURNING body",
        "WITH t AS (DELETE FROM tickets WHERE id = 1 RETURNING body) INSERT INTO orders (note) SELECT body FROM t",
        "MERGE INTO tickets t USING orders o ON t.id = o.id WHEN MATCHED THEN UPDATE SET done = true",
        "SELECT * FROM tickets FOR UPDATE",
        "CREATE TABLE notes AS SELECT body FROM tickets",
        "CREATE VIEW notes AS SELECT body FROM tickets",
        "INSERT INTO orders (note) SELECT newest_ticket()",
        "EXPLAIN UPDATE tickets SET done = true WHERE id = 1",
    ],
)
def test_a_statement_that_reads_a_source_and_writes_counts_as_tainted_itself(sql: str) -> None:
    decision = decide(analyze(sql), PLAIN, CATALOG)
    assert isinstance(decision, Denied)
    assert decision.policy_rule == "table_access"
    assert decision.matched_rule == "taint:writes→deny"
    assert "a source of foreign text" in decision.reason


@pytest.mark.parametrize(
    ("sql", "rule"),
    [
        ("SELECT * FROM orders", None),
        ("SELECT * FROM rates", None),
        ("SELECT slug(note) FROM orders", None),
        ("UPDATE orders SET note = 'x' WHERE id = 1", "taint:writes→deny"),
        ("SELECT * FROM orders FOR SHARE", "taint:writes→deny"),
        ("SELECT * FROM payroll", "taint:public.payroll→deny"),
        ("SELECT * FROM v_payroll", "taint:public.payroll→deny"),
        ("SELECT * FROM v_payroll, orders", "taint:public.payroll→deny"),
    ],
)
def test_what_a_tainted_grant_may_do(sql: str, rule: str | None) -> None:
    assert isinstance(decide(analyze(sql), PLAIN, CATALOG), Allowed)
    decision = decide(analyze(sql), PLAIN, CATALOG, tainted=True)
    assert (decision.matched_rule if isinstance(decision, Denied) else None) == rule


@pytest.mark.parametrize(
    ("sql", "outcome"),
    [
        ("UPDATE orders SET note = 'x' WHERE id = 1", Held),
        ("INSERT INTO orders (note) SELECT body FROM tickets", Held),
        ("UPDATE rates SET eur = 1 WHERE id = 1", Denied),
        ("SELECT * FROM payroll", Denied),
        ("SELECT * FROM orders", Allowed),
    ],
)
def test_writes_may_be_held_for_a_person_instead(sql: str, outcome: type) -> None:
    assert isinstance(decide(analyze(sql), BY_HAND, CATALOG, tainted=True), outcome)


def test_a_listed_function_that_may_change_things_counts_as_a_write_of_a_tainted_grant() -> None:
    listed = policy(WRITING + "functions: {allow: [public.bump]}\ntaint: {sources: [tickets]}")
    bump = Function(30004, "public", "bump", "volatile", False, "plpgsql", None, 0)
    catalog = msgspec.structs.replace(CATALOG, functions={**CATALOG.functions, bump.oid: bump})
    assert isinstance(decide(analyze("SELECT bump()"), listed, catalog), Allowed)
    refused = decide(analyze("SELECT bump()"), listed, catalog, tainted=True)
    assert isinstance(refused, Denied)
    assert "function public.bump may change things" in refused.reason


def test_a_write_that_waits_for_a_person_tells_that_it_was_contained_and_what_it_reads() -> None:
    held = decide(analyze("INSERT INTO orders SELECT * FROM orders"), BY_HAND, CATALOG, tainted=True)
    assert isinstance(held, Held)
    assert held.allowed.is_contained
    gated = policy(WRITING + "approvals: {writes: true}\ntaint: {sources: [tickets], contain: {writes: hold}}")
    held = decide(analyze("INSERT INTO orders SELECT * FROM tickets"), gated, CATALOG)
    assert isinstance(held, Held)
    assert held.allowed.reads_source == "public.tickets"


def test_a_tainted_grant_is_never_permitted_more() -> None:
    for text in ("default: deny", "default: read", "default: read_write", "tables: {payroll: deny, 'app.*': read_write}"):
        for contain in ("{}", "{contain: {writes: hold}}", "{contain: {tables: {payroll: read, 'app.*': deny}}}"):
            before = policy(f"table_access: {{{text}}}\ntaint: {contain}")
            after = contained(before)
            rank = {"deny": 0, "read": 1, "read_write": 2}
            assert rank[after.table_access.default] <= rank[before.table_access.default]
            for key, level in before.table_access.tables.items():
                assert rank[after.table_access.tables[key]] <= rank[level]


def test_a_schema_key_contains_tables_that_have_a_key_of_their_own() -> None:
    text = "table_access: {default: read, tables: {hr.people: read, hr.holidays: read}}\n"
    found = policy(text + "taint: {contain: {tables: {'hr.*': deny, hr.holidays: read}}}")
    for table, allowed in (("hr.people", False), ("hr.holidays", True), ("hr.other", False)):
        decision = decide_by_names(analyze(f"SELECT * FROM {table}"), found, tainted=True)
        assert isinstance(decision, Allowed) == allowed, table


def test_nothing_is_decided_by_names_alone_while_the_catalog_is_unread() -> None:
    decision = decide(analyze("SELECT * FROM v_tickets"), PLAIN, unread("shop"))
    assert isinstance(decision, Denied)
    assert "has not been read yet" in decision.reason
    unknown = decide(analyze("SELECT * FROM made_just_now"), PLAIN, CATALOG)
    assert isinstance(unknown, Denied)


def test_holding_writes_needs_a_gate_and_a_typo_refuses_the_file() -> None:
    hold = "taint: {sources: [tickets], contain: {writes: hold}}"
    with pytest.raises(PolicyErrors, match=r"taint\.contain\.writes: found hold without a gate"):
        policy(hold, gate=False)
    assert policy(hold.replace("hold", "deny"), gate=False).taint is not None
    with pytest.raises(PolicyErrors, match="did you mean sources"):
        policy("taint: {source: [tickets]}")


def test_a_policy_without_the_section_keeps_its_hash() -> None:
    assert policy_hash(policy(WRITING)) == "8e56e22ed19739b1"
    assert policy_hash(PLAIN) != policy_hash(policy(WRITING))
    assert sections_changed(policy(WRITING), PLAIN) == ("functions", "taint")


def test_cases_may_be_of_a_tainted_agent() -> None:
    text = b"- {sql: 'SELECT * FROM payroll', expect: allow}\n- {sql: 'SELECT * FROM payroll', expect: deny, tainted: true}\n"
    for case in load_cases(text):
        assert case.expect is not None
        assert verdict_of(decide_by_names(analyze(case.sql), PLAIN, tainted=case.tainted)).meets(case.expect)
    with pytest.raises(PolicyErrors, match="expected true or false"):
        load_cases(b"- {sql: SELECT 1, expect: allow, tainted: yes please}")


def test_lint_says_what_containment_leaves_open() -> None:
    text = "table_access: {tables: {closed: deny}}\nfunctions: {allow: [public.newest_ticket]}\n"
    found = policy(
        text + "taint: {sources: [closed, nowhere, tickets], contain: {tables: {closed: deny, misspelt: deny, tickets: deny}}}"
    )
    told = {(finding.severity, finding.found) for finding in lint(found, CATALOG) if finding.path[0] in ("taint", "functions")}
    assert ("low", "public.closed cannot be read anyway") in told
    assert ("high", "no table public.nowhere is there, so nobody is tainted by it") in told
    assert ("high", "no table public.misspelt is there, so this key protects nothing") in told
    assert ("low", "its level is not above deny anyway, so nothing is contained") in told
    assert ("medium", "it is a source as well: a statement that reads it counts as tainted, so nobody can read it") in told
    assert any("counts as reading a source" in words for _, words in told)
    assert not [finding for finding in lint(PLAIN, CATALOG) if finding.path[0] == "taint"]
