"""`gatewayd policy …` as people and CI start it: real files, a real PostgreSQL, exit codes, and JSON lines in a pipe."""

import json
from pathlib import Path
from typing import Any

import pytest

from gatewayd.policy.file.json_schema import policy_schema_text
from tests.cli.gatewayd_process import run
from tests.conftest import Postgres

SHOP = """
CREATE TABLE customers (id integer PRIMARY KEY, name text, email text, note text);
COMMENT ON COLUMN customers.note IS 'sensitive';
CREATE TABLE orders (id integer PRIMARY KEY, amount numeric);
CREATE TABLE secrets (word text);
CREATE VIEW words AS SELECT word FROM secrets;
"""
POLICY = "table_access: {default: read, tables: {secrets: deny, orders: read_write}}\n"
SEVERAL = """
databases:
- {name: shop, url: '${SHOP_URL}', table_access: {default: deny}}
- {name: books, url: 'postgresql://u:${BOOKS_PASSWORD}@h:${BOOKS_PORT}/d'}
"""


@pytest.fixture
def shop(postgres: Postgres) -> dict[str, str]:
    return {"DATABASE_URL": postgres.create_database(SHOP)}


@pytest.fixture
def policy(tmp_path: Path) -> str:
    return written(tmp_path, POLICY)


def written(folder: Path, text: str, name: str = "policy.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_init_writes_a_policy_that_all_others_take(shop: dict[str, str], tmp_path: Path) -> None:
    drafted = run(["policy", "init"], shop)
    assert drafted.returncode == 0
    file = written(tmp_path, drafted.stdout)
    assert run(["policy", "validate", file]).returncode == 0
    assert run(["policy", "lint", file, "--connect"], shop).returncode == 0
    for sql, code in (("SELECT * FROM customers", 0), ("INSERT INTO orders VALUES (1)", 1), ("SELECT * FROM later", 1)):
        assert run(["policy", "test", file, "--connect", "--sql", sql], shop).returncode == code, sql


def test_init_from_another_variable(shop: dict[str, str]) -> None:
    drafted = run(["policy", "init", "--default", "read", "--url-from", "SHOP_URL"], {"SHOP_URL": shop["DATABASE_URL"]})
    assert drafted.returncode == 0
    assert "default: read" in drafted.stdout
    assert '# "public.secrets": deny' in drafted.stdout


def test_a_database_that_does_not_answer(postgres: Postgres) -> None:
    shown = run(["policy", "init"], {"DATABASE_URL": postgres.dsn("there is none")})
    assert (shown.returncode, shown.stdout) == (69, "")
    assert "3D000" in shown.stderr


def test_validate_tells_every_problem(tmp_path: Path) -> None:
    file = written(tmp_path, "table_access: {defualt: deny}\nlimits:\n  max_rows: 0\n")
    shown = run(["policy", "validate", file])
    assert shown.returncode == 78
    found = lines(shown.stdout)
    assert [(each["line"], each["path"]) for each in found] == [(1, "table_access.defualt"), (3, "limits.max_rows")]
    assert {each["file"] for each in found} == {file}
    assert "2 problems" in shown.stderr


def test_validate_needs_no_environment(tmp_path: Path) -> None:
    file = written(tmp_path, SEVERAL)
    assert run(["policy", "validate", file]).returncode == 0
    broken = run(["policy", "validate", written(tmp_path, SEVERAL.replace("postgresql:", "mysql:"))])
    assert broken.returncode == 78
    assert lines(broken.stdout)[0]["path"] == "databases[1].url"


def test_the_file_of_the_environment_is_meant(policy: str) -> None:
    shown = run(["policy", "validate"], {"GATEWAY_POLICY_FILE": policy})
    assert shown.returncode == 0
    assert policy in shown.stderr


def test_lint_finds_by_names_and_by_catalog(shop: dict[str, str], tmp_path: Path) -> None:
    file = written(tmp_path, "table_access:\n  default: read\n  tables:\n    Secrets: deny\n    words: read\n")
    alone = run(["policy", "lint", file])
    assert alone.returncode == 0
    assert [each["line"] for each in lines(alone.stdout) if "capital letters" in each["found"]] == [4]
    connected = run(["policy", "lint", file, "--connect"], shop)
    assert connected.returncode == 1
    (gravest,) = [each for each in lines(connected.stdout) if each["severity"] == "high"]
    assert (gravest["line"], gravest["remedy"]) == (4, 'write "public.secrets" if that is meant')
    assert run(["policy", "lint", file, "--connect", "--fail-on", "never"], shop).returncode == 0
    assert run(["policy", "lint", file, "--fail-on", "medium"]).returncode == 1


def test_lint_of_several_databases_names_them(tmp_path: Path) -> None:
    file = written(tmp_path, SEVERAL)
    found = lines(run(["policy", "lint", file]).stdout)
    assert {each["database"] for each in found} == {"shop", "books"}
    assert {each["line"] for each in found if each["database"] == "books"} == {None}
    assert {each["database"] for each in lines(run(["policy", "lint", file, "--database", "books"]).stdout)} == {"books"}
    wrong = run(["policy", "lint", file, "--database", "bocks"])
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "shop, books" in wrong.stderr


@pytest.mark.parametrize(
    ("sql", "expect", "code"),
    [
        ("SELECT * FROM customers", None, 0),
        ("SELECT * FROM secrets", None, 1),
        ("SELECT * FROM secrets", "deny", 0),
        ("SELECT * FROM secrets", "table_access", 0),
        ("SELECT * FROM secrets", "dangerous_statement", 1),
        ("DELETE FROM orders", "dangerous_statement", 0),
    ],
)
def test_one_statement(policy: str, sql: str, expect: str | None, code: int) -> None:
    shown = run(["policy", "test", policy, "--sql", sql, *(["--expect", expect] if expect else [])])
    assert shown.returncode == code
    (verdict,) = lines(shown.stdout)
    assert verdict["decision"] == ("allow" if "customers" in sql else "deny")


def test_cases_of_a_file(policy: str, tmp_path: Path) -> None:
    cases = written(
        tmp_path, "- {sql: SELECT * FROM customers, expect: allow}\n- {sql: DROP TABLE orders, expect: deny}\n", "cases.yaml"
    )
    good = run(["policy", "test", policy, "--cases", cases])
    assert good.returncode == 0
    assert [each["outcome"] for each in lines(good.stdout)] == ["passed", "passed"]
    bad = run(["policy", "test", policy, "--cases", written(tmp_path, "SELECT * FROM secrets: allow", "bad.yaml")])
    assert bad.returncode == 1
    (failed,) = lines(bad.stdout)
    assert (failed["outcome"], failed["decision"], failed["rule"]) == ("failed", "deny", "table_access")
    broken = run(["policy", "test", policy, "--cases", written(tmp_path, "- {sql: SELECT 1}", "broken.yaml")])
    assert broken.returncode == 2
    assert "line 1" in broken.stderr


def test_the_catalog_sees_what_names_hide(shop: dict[str, str], policy: str) -> None:
    statement = ["policy", "test", policy, "--sql", "SELECT * FROM words"]
    assert run(statement).returncode == 0
    shown = run([*statement, "--connect"], shop)
    assert shown.returncode == 1
    assert "reaches public.secrets" in lines(shown.stdout)[0]["reason"]


def test_a_policy_of_several_asks_which_database(tmp_path: Path) -> None:
    file = written(tmp_path, SEVERAL)
    shown = run(["policy", "test", file, "--sql", "SELECT 1"])
    assert shown.returncode == 2
    assert "shop, books" in shown.stderr
    assert run(["policy", "test", file, "--sql", "SELECT * FROM t", "--database", "books"]).returncode == 0
    assert run(["policy", "test", file, "--sql", "SELECT * FROM t", "--database", "shop"]).returncode == 1


def test_a_statement_cannot_drive_the_terminal(policy: str) -> None:
    shown = run(["policy", "test", policy, "--sql", "SELECT '\x1b]0;owned\x07\u202e\x9b31m'"])
    assert not set("\x1b\x07\u202e\x9b") & set(shown.stdout + shown.stderr)


def test_schema_is_the_file_beside_the_samples() -> None:
    shown = run(["policy", "schema"])
    assert (shown.returncode, shown.stdout) == (0, policy_schema_text())


def test_suggest_masks(shop: dict[str, str], tmp_path: Path) -> None:
    found = lines(run(["policy", "suggest-masks"], shop).stdout)
    assert [(each["column"], each["mask"]) for each in found] == [
        ("name", {"t": "pseudonymize", "kind": "name"}),
        ("email", {"t": "pseudonymize", "kind": "email"}),
        ("note", "full-redact"),
    ]
    pasted = run(["policy", "suggest-masks", "--yaml"], shop).stdout
    assert '  "public.customers":\n    name: {t: pseudonymize, kind: name}  # ' in pasted
    closed = written(tmp_path, "table_access: {tables: {customers: deny}}")
    shown = run(["policy", "suggest-masks", closed], shop)
    assert (shown.returncode, shown.stdout) == (0, "")


MASKED = """
table_access: {default: read}
column_masks: {customers: {email: {t: pseudonymize, kind: email}, note: null-out}}
mask_source_rewrite: false
"""


@pytest.mark.parametrize(
    ("sql", "expect"),
    [
        ("SELECT id, email FROM customers", "allow"),
        ("SELECT id FROM customers WHERE email = 'a@b.c'", "column_masking"),
        ("SELECT count(*) FROM customers", "allow"),
        ("SELECT max(amount) FROM orders", "allow"),
    ],
)
def test_masks_decide_where_there_is_a_catalog(shop: dict[str, str], tmp_path: Path, sql: str, expect: str) -> None:
    file = written(tmp_path, MASKED)
    shown = run(["policy", "test", file, "--connect", "--sql", sql, "--expect", expect], shop)
    assert shown.returncode == 0, shown.stdout
    assert run(["policy", "test", file, "--sql", sql, "--expect", "allow"]).returncode == 0


def test_the_environment_says_how_masks_are_applied(shop: dict[str, str], tmp_path: Path) -> None:
    file = written(tmp_path, MASKED.replace("mask_source_rewrite: false", ""))
    words = ["policy", "test", file, "--connect", "--sql", "SELECT id FROM customers WHERE email = 'a@b.c'"]
    assert run(words, shop).returncode == 1
    assert run(words, {**shop, "GATEWAY_MASK_SOURCE_REWRITE": "1"}).returncode == 0


def test_lint_tells_masks_that_do_not_fit(shop: dict[str, str], tmp_path: Path) -> None:
    file = written(tmp_path, MASKED.replace("note: null-out", "id: {t: pseudonymize, kind: name}, gone: null-out"))
    found = lines(run(["policy", "lint", file, "--connect"], shop).stdout)
    high = [each for each in found if each["severity"] == "high"]
    assert ['customers".id: ' in each["found"] or 'customers".gone: ' in each["found"] for each in high] == [True, True]
    assert {each["line"] for each in high} == {3}


def test_suggested_masks_load_and_fit(shop: dict[str, str], tmp_path: Path) -> None:
    pasted = run(["policy", "suggest-masks", "--yaml"], shop).stdout
    found = lines(run(["policy", "lint", written(tmp_path, pasted), "--connect"], shop).stdout)
    assert not [each for each in found if each["severity"] == "high" or "look like" in each["found"]]
