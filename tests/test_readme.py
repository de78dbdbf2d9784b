"""README is tested as written: its configurations connect, its policy decides as its table says, its role can do no more."""

import json
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import trio_asyncio
from mcp import Client, StdioServerParameters

from gatewayd.config.variables import VARIABLES
from gatewayd.policy.file.features import FEATURES
from gatewayd.policy.file.load import load_policies
from gatewayd.policy.file.model import Approvals
from tests.cli.gatewayd_process import serving
from tests.conftest import Postgres

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
HTTP_URL = "http://127.0.0.1:8080/mcp"

APP = """
CREATE TABLE customers (id integer PRIMARY KEY, name text);
CREATE TABLE orders (id integer PRIMARY KEY, status text);
CREATE SCHEMA billing;
CREATE TABLE billing.invoices (id integer);
CREATE TABLE billing.countries (code text);
INSERT INTO orders VALUES (7, 'open');
"""
MASKED = """
CREATE TABLE customers (id integer PRIMARY KEY, name text, city text, email text, phone text, tax_id text, birthday date,
                        contact text, income numeric);
CREATE TABLE orders (id integer, customer_id integer, note text);
INSERT INTO customers VALUES (1, 'Ada', 'Oslo', 'ada@example.com', '123', 'X-1', '1984-05-06', 'Ben', 1000);
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def section(title: str, page: str = README) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The cells of a table, its head left out."""
    lines = [line.strip("| \n") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"\s*\|\s*|\s*\|$", line)] for line in lines[2:]]


def configurations() -> list[dict[str, Any]]:
    """What each client would make of its block: an entry of `mcpServers`, or what `claude mcp add` stores."""
    entries = [json.loads(block)["mcpServers"]["gatewayd"] for block in blocks("json")]
    for block in blocks("sh"):
        if not block.startswith("claude mcp add"):
            continue
        words = shlex.split(block)[3:]
        if "--" not in words:
            assert words == ["--transport", "http", "gatewayd", HTTP_URL]
            entries.append({"url": words[-1]})
            continue
        options, command = words[: words.index("--")], words[words.index("--") + 1 :]
        assert options[-3:] == ["--transport", "stdio", "gatewayd"]
        given = dict(pair.split("=", 1) for pair in options[1:-3:2])
        assert set(options[0:-3:2]) == {"--env"}
        entries.append({"command": command[0], "args": command[1:], "env": given})
    return entries


STDIO = [entry for entry in configurations() if "serve" in entry.get("args", ())]
HTTP = [entry for entry in configurations() if "serve" not in entry.get("args", ())]


@contextmanager
def the_app(postgres: Postgres, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The database, role and policy of README; gives the environment of a gatewayd before it. The role is dropped at the end."""
    policy, _, _ = blocks("yaml")
    (role,) = blocks("sql")
    dsn = postgres.create_database(APP, user="agent", password="change me")
    database = dsn.rsplit("/", 1)[1]
    postgres.execute(role.replace("DATABASE app", f"DATABASE {database}"), database)
    (tmp_path / "policy.yaml").write_text(policy, encoding="utf-8")
    try:
        yield {"DATABASE_URL": dsn, "DB_PATH": str(tmp_path / "audit.db"), "GATEWAY_POLICY_FILE": str(tmp_path / "policy.yaml")}
    finally:
        postgres.execute("DROP OWNED BY agent; DROP ROLE agent", database)


def stdio(variables: dict[str, str], args: list[str] | None = None) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-m", "gatewayd", *(args or ["serve", "--stdio"])], env=variables)


def test_each_client_has_both() -> None:
    assert len(STDIO) == len(HTTP) == 3
    assert all(HTTP_URL in (entry.get("url"), *entry.get("args", ())) for entry in HTTP)


@pytest.mark.parametrize("entry", STDIO, ids=lambda entry: entry["env"]["DB_PATH"])
async def test_stdio_configurations_connect(entry: dict[str, Any], postgres: Postgres, tmp_path: Path) -> None:
    secret = tmp_path / "database-url"
    secret.write_text(postgres.create_database() + "\n", encoding="utf-8")
    there = {"DATABASE_URL_FILE": str(secret), "DB_PATH": str(tmp_path / "audit.db")}
    assert entry["env"].keys() == there.keys()
    assert entry["command"].endswith("/gatewayd")
    async with Client(stdio(there, entry["args"])) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["query", "list_tables", "describe_table"]


async def test_http_url_connects(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    (command,) = [block for block in blocks("sh") if block.startswith("DATABASE_URL=")]
    *given, program = shlex.split(command)
    variables = dict(pair.split("=", 1) for pair in given)
    assert program == ".venv/bin/gatewayd"
    variables |= {"DATABASE_URL": postgres.create_database(), "DB_PATH": str(tmp_path / "audit.db"), "PORT": str(free_port)}
    with serving([], variables) as gatewayd:
        gatewayd.wait_for("gatewayd started")
        async with Client(HTTP_URL.replace("8080", str(free_port))) as client:
            assert (await client.list_tools()).tools
        assert gatewayd.stop() == 0


async def test_policy_decides_as_the_table_says(postgres: Postgres, tmp_path: Path) -> None:
    with the_app(postgres, tmp_path) as variables:
        async with Client(stdio(variables)) as client:
            for statement, outcome, *rule in rows(section("Policy by example")):
                result = await client.call_tool("query", {"sql": statement.strip("`"), "intent": "compare with README"})
                (block,) = result.content
                assert block.type == "text"
                answer = json.loads(block.text)
                told = (answer["allowed"], answer.get("policy_rule", ""), "error" in answer)
                assert told == (outcome == "allowed", "".join(rule), False), (statement, answer)


@pytest.mark.parametrize("rewriting", [False, True])
async def test_masks_do_as_the_table_says(postgres: Postgres, tmp_path: Path, *, rewriting: bool) -> None:
    _, _, masks = blocks("yaml")
    (tmp_path / "policy.yaml").write_text(f"table_access: {{default: read_write}}\n{masks}", encoding="utf-8")
    variables = {
        "DATABASE_URL": postgres.create_database(MASKED),
        "DB_PATH": str(tmp_path / "audit.db"),
        "GATEWAY_POLICY_FILE": str(tmp_path / "policy.yaml"),
        "GATEWAY_MASK_SALT": "salt",
        "GATEWAY_MASK_SOURCE_REWRITE": str(int(rewriting)),
    }
    async with Client(stdio(variables)) as client:
        for statement, *outcomes in rows(section("Masks by example")):
            result = await client.call_tool("query", {"sql": statement.strip("`"), "intent": "compare with README"})
            (block,) = result.content
            assert block.type == "text"
            answer = json.loads(block.text)
            expected = outcomes[rewriting]
            assert (answer["allowed"], "error" in answer) == (expected == "allowed", False), (statement, answer)
            assert answer.get("policy_rule") == (None if expected == "allowed" else "column_masking")
        shown = await client.call_tool("query", {"sql": "SELECT * FROM customers", "intent": "compare with README"})
    (block,) = shown.content
    assert block.type == "text"
    (row,) = json.loads(block.text)["rows"]
    assert (row["name"], row["phone"], row["birthday"]) == ("***", None, "1984-01-01")
    assert row["email"].startswith("a•")
    assert re.fullmatch(r"[0-9a-f]{32}", row["tax_id"])
    assert 900 <= row["income"] <= 1100


async def test_role_can_do_no_more(postgres: Postgres, tmp_path: Path) -> None:
    refused = [
        "UPDATE customers SET name = 'x'",
        "SELECT * FROM billing.invoices",
        "CREATE TABLE made (id integer)",
        "CREATE TEMPORARY TABLE made (id integer)",
        "TRUNCATE orders",
        "DROP TABLE orders",
        "COPY customers TO PROGRAM 'cat'",
        "SELECT pg_read_file('/etc/passwd')",
    ]
    with the_app(postgres, tmp_path) as variables:
        async with trio_asyncio.open_loop():
            connection = await trio_asyncio.aio_as_trio(asyncpg.connect)(variables["DATABASE_URL"])
            try:
                await trio_asyncio.aio_as_trio(connection.execute)("UPDATE orders SET status = 'paid' WHERE id = 7")
                for statement in refused:
                    with pytest.raises(asyncpg.InsufficientPrivilegeError):
                        await trio_asyncio.aio_as_trio(connection.execute)(statement)
            finally:
                await trio_asyncio.aio_as_trio(connection.close)()


def test_approvals_of_the_page_are_a_policy() -> None:
    _, approvals, _ = blocks("yaml")
    single = load_policies(approvals, {}, approval_gate=True).single
    assert single is not None
    assert single.approvals == Approvals(writes=True)


def test_configuration_table_is_the_code_s() -> None:
    assert rows(section("Configuration", OPERATIONS)) == [[each.name, each.default_in_words, each.meaning] for each in VARIABLES]
    assert f"A secret ({', '.join(each.name for each in VARIABLES if each.secret)})" in OPERATIONS


def test_what_is_not_built_is_said() -> None:
    missing = {name for name, reason in FEATURES.items() if reason}
    assert ("are not built yet" in README) == bool(missing)
