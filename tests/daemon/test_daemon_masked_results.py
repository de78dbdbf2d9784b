"""A whole gatewayd that masks after execution: answers, refusals, audit rows, describe_table."""

from pathlib import Path

from tests.conftest import Postgres
from tests.daemon.daemon_rig import SHOP, Agent, chains, gatewayd, kinds

POLICY = """
table_access:
  default: read
  tables: {customers: read_write}
column_masks:
  customers: {email: {t: partial, keepStart: 1, keepEnd: 4}, name: full-redact}
"""
VIEWS = """
CREATE VIEW contacts AS SELECT id, email AS mail FROM customers;
CREATE VIEW loud AS SELECT id, upper(name) AS shouted FROM customers;
CREATE VIEW found AS SELECT id FROM customers WHERE name LIKE 'name 1%';
"""
QUERY = "SELECT id FROM customers WHERE email = 'c3@example.com'"
SALT = "salt of the daemon's tests"


async def test_results_are_masked_or_refused_and_the_audit_says_which(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    dsn = postgres.create_database(SHOP + VIEWS)
    with gatewayd(dsn, tmp_path, free_port, POLICY, GATEWAY_MASK_SALT=SALT) as running:
        async with Agent(free_port) as agent:
            answer = await agent.query("SELECT id, email, name FROM customers ORDER BY id LIMIT 2")
            assert answer["rows"] == [
                {"id": 1, "email": "c•••••••••.com", "name": "***"},
                {"id": 2, "email": "c•••••••••.com", "name": "***"},
            ]
            assert (await agent.query("SELECT count(*), count(name) FROM customers"))["rows"] == [{"count": 20, "count_2": 20}]
            assert (await agent.query("SELECT mail FROM contacts WHERE id = 3"))["rows"] == [{"mail": "c•••••••••.com"}]
            written = await agent.query("UPDATE customers SET name = 'new' WHERE id = 3 RETURNING *")
            assert written["rows"] == [{"id": 3, "name": "***", "email": "c•••••••••.com"}]
            for refused in (
                QUERY,
                "SELECT upper(email) FROM customers",
                "DELETE FROM customers WHERE name = 'new'",
                "SELECT * FROM found",
                "SELECT shouted FROM loud",
            ):
                denied = await agent.query(refused)
                assert denied["allowed"] is False
                assert denied["policy_rule"] == "column_masking"
            assert "leave it out of WHERE (line 1, column 32)" in (await agent.query(QUERY))["reason"]
        running.stop()
    assert postgres.execute("SELECT name FROM customers WHERE id = 3", dsn).strip() == "new"
    found = list(chains(tmp_path).values())
    assert [kinds(chain) for chain in found] == ["ATTEMPTED ALLOW EXECUTED"] * 4 + ["ATTEMPTED ALLOW FAILED"] * 6
    executed = found[0][-1][1]
    assert executed["columns_masked"] == ["public.customers.email", "public.customers.name"]
    assert executed["masking_path"] == "post_exec"
    assert "columns_masked" not in found[1][-1][1]
    failed = found[4][-1][1]
    assert (failed["error_class"], failed["masking_stage"]) == ("column_masking", "gate")


async def test_describe_table_tells_the_masks(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    with gatewayd(postgres.create_database(SHOP + VIEWS), tmp_path, free_port, POLICY, GATEWAY_MASK_SALT=SALT):
        async with Agent(free_port) as agent:

            async def masks(table: str) -> dict[str, str | None]:
                columns = (await agent.call("describe_table", table=table))["columns"]
                return {column["name"]: column.get("masked") for column in columns}

            assert await masks("customers") == {"id": None, "name": "full-redact", "email": "partial"}
            assert await masks("contacts") == {"id": None, "mail": "partial"}
            assert await masks("loud") == {"id": None, "shouted": "withheld"}
            assert await masks("found") == {"id": "withheld"}
            assert await masks("orders") == {"id": None, "customer": None, "amount": None, "tags": None}
