"""Every tool through the official client, in both eras, over both transports, with one database and with two."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from mcp import Client

from tests.conftest import Postgres
from tests.daemon.daemon_rig import PATIENCE_S, POLICY, SHOP, ask, chains, gatewayd, kinds, stdio_agent, variables

# The SDK's HTTP transport leaves its response generators to the collector, which then warns; nothing of ours is in them.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]
TWO = """
databases:
  - {name: shop, url: "${SHOP_URL}", table_access: {default: read, tables: {secrets: deny}}}
  - {name: empty, url: "${EMPTY_URL}", guardrails: {block_dml: true}}
"""


@asynccontextmanager
async def connected(transport: str, era: str, dsn: str, folder: Path, port: int, **more: str) -> AsyncIterator[Client]:
    policy = more.pop("policy", POLICY)
    with trio.fail_after(PATIENCE_S):
        if transport == "stdio":
            async with stdio_agent({**variables(dsn, folder, policy), **more}, era) as client:
                yield client
        else:
            with gatewayd(dsn, folder, port, policy, **more):
                async with Client(f"http://127.0.0.1:{port}/mcp", mode=era) as client:
                    yield client


@pytest.mark.parametrize("era", ["auto", "legacy"])
@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_one_database(transport: str, era: str, postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    async with connected(transport, era, postgres.create_database(SHOP), tmp_path, free_port) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["query", "list_tables", "describe_table"]

        rows, is_error = await ask(client, "query", sql="SELECT id, name FROM customers WHERE id < 3 ORDER BY id;", intent="look")
        assert not is_error
        assert rows.pop("auditId")
        assert rows == {"allowed": True, "rows": [{"id": 1, "name": "name 1"}, {"id": 2, "name": "name 2"}], "rowCount": 2}

        written, is_error = await ask(client, "query", sql="INSERT INTO written VALUES ('x'), ('y')", intent="write")
        assert (is_error, written["rowCount"], written["rows"]) == (False, 2, [])

        denied, is_error = await ask(client, "query", sql="SELECT * FROM secrets", intent="pry")
        assert (is_error, denied["allowed"], denied["policy_rule"]) == (True, False, "table_access")
        assert "secrets" in denied["reason"]

        failed, is_error = await ask(client, "query", sql="SELECT 1 / 0", intent="break")
        assert (is_error, failed["allowed"], failed["error"]["sqlstate"]) == (True, True, "22012")

        invalid, is_error = await ask(client, "query", sql="SELECT 1", intent=" \t")
        assert (is_error, invalid["error"]) == (True, "invalid_arguments")

        listed, is_error = await ask(client, "list_tables")
        assert not is_error
        assert [table["name"] for table in listed["tables"]] == ["big_orders", "customers", "orders", "secrets", "written"]

        described, is_error = await ask(client, "describe_table", table="customers")
        assert not is_error
        assert described["columns"] == [
            {"name": "id", "type": "integer", "nullable": False, "default": None},
            {"name": "name", "type": "text", "nullable": False, "default": "'nobody'::text"},
            {"name": "email", "type": "character varying(80)", "nullable": True, "default": None},
        ]
    found = list(chains(tmp_path).values())
    assert [kinds(chain) for chain in found] == [
        "ATTEMPTED ALLOW EXECUTED",
        "ATTEMPTED ALLOW EXECUTED",
        "ATTEMPTED DENY",
        "ATTEMPTED ALLOW FAILED",
        "ATTEMPTED ALLOW EXECUTED",
        "ATTEMPTED ALLOW EXECUTED",
    ]
    assert found[0][1][1]["tables_touched"] == ["public.customers"]
    assert found[1][2][1]["rows_affected"] == 2
    assert found[3][2][1]["error_class"] == "22012"


async def test_a_description_has_keys_checks_indexes_and_comments_of_what_may_be_read(
    postgres: Postgres, tmp_path: Path, free_port: int
) -> None:
    dsn = postgres.create_database((Path(__file__).parents[1] / "shields" / "introspected.sql").read_text(encoding="utf-8"))
    policy = "table_access: {default: read, tables: {hidden: deny, vouched: read}}"
    async with connected("http", "auto", dsn, tmp_path, free_port, policy=policy) as client:
        people, is_error = await ask(client, "describe_table", table="people")
        assert not is_error
        assert people["primary_key"] == ["id"]
        assert people["unique"] == [["team_id", "name"]]
        assert people["foreign_keys"] == ["FOREIGN KEY (team_id) REFERENCES teams(id) ON DELETE CASCADE"]
        assert "CHECK (((age)::integer < 200))" in people["checks"]
        assert len(people["indexes"]) == 4
        assert people["estimated_rows"] == 50
        assert all(set(column) == {"name", "type", "nullable", "default"} for column in people["columns"])

        teams, _ = await ask(client, "describe_table", table="teams")
        assert teams["comment"] == "Who works with whom"
        assert [column.get("comment") for column in teams["columns"]] == [None, "As on the door", None]
        events, _ = await ask(client, "describe_table", table="events")
        assert events["partitioned_by"] == "RANGE (at)"
        partition, _ = await ask(client, "describe_table", table="events_2025")
        assert len(partition["columns"]) == 3
        view, _ = await ask(client, "describe_table", table="grown", schema="app")
        assert (len(view["columns"]), view["comment"]) == (2, "Over seventeen")
        nothing, is_error = await ask(client, "describe_table", table="people", schema="nowhere")
        assert (is_error, nothing["columns"]) == (False, [])

        hidden, is_error = await ask(client, "describe_table", table="hidden")
        assert not is_error
        assert set(hidden) == {"allowed", "columns", "auditId"}
        assert "secret" not in str(hidden)
    assert {kinds(chain) for chain in chains(tmp_path).values()} == {"ATTEMPTED ALLOW EXECUTED"}


async def test_a_description_needs_no_catalog(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    dsn = postgres.create_database(SHOP)
    async with connected("http", "auto", dsn, tmp_path, free_port, policy="table_access: {default: deny}") as client:
        described, is_error = await ask(client, "describe_table", table="customers")
        assert not is_error
        assert set(described) == {"allowed", "columns", "auditId"}
        assert len(described["columns"]) == 3


@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_two_databases(transport: str, postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    more = {"policy": TWO, "SHOP_URL": postgres.create_database(SHOP), "EMPTY_URL": postgres.create_database()}
    async with connected(transport, "auto", "", tmp_path, free_port, **more) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["query", "list_tables", "describe_table", "list_databases"]
        assert tools["query"].input_schema["properties"]["database"]["enum"] == ["shop", "empty"]

        listed, _ = await ask(client, "list_databases")
        assert listed["databases"][1] == {
            "name": "empty",
            "table_access_default": "read",
            "guardrails_block_unqualified_dml": True,
            "guardrails_block_ddl": True,
            "guardrails_block_dml": True,
        }
        everywhere, is_error = await ask(client, "list_tables")
        assert not is_error
        assert len(everywhere["databases"]["shop"]["tables"]) == 5
        assert everywhere["databases"]["empty"]["tables"] == []

        for wrong in ({}, {"database": "nosuch"}):
            invalid, is_error = await ask(client, "query", sql="SELECT 1", intent="choose", **wrong)
            assert is_error
            assert "`shop`, `empty`" in invalid["reason"]
        one, _ = await ask(client, "query", sql="SELECT count(*) FROM orders", intent="count", database="shop")
        assert one["rows"] == [{"count": 200}]


async def test_list_tables_goes_on_without_one_database(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    gone = postgres.dsn("no_such_database")
    more = {"policy": TWO, "SHOP_URL": postgres.create_database(SHOP), "EMPTY_URL": gone}
    async with connected("http", "auto", "", tmp_path, free_port, **more) as client:
        everywhere, is_error = await ask(client, "list_tables")
    assert not is_error
    assert everywhere["databases"]["shop"]["allowed"] is True
    assert everywhere["databases"]["empty"]["allowed"] is False
    assert "does not exist" in everywhere["databases"]["empty"]["error"]
