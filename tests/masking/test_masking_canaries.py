"""Raw values of masked columns leave a running gatewayd by no way: answers, errors, audit, logs, metrics, webhook, telemetry.

The hostile statements, the honest ones and a share of the corpus in `make test`; all of the corpus in `make soak`.
"""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
import yaml

from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests.conftest import Postgres
from tests.corpus.corpus import Row, allow_files, deny_files
from tests.corpus.server import SCHEMA, SCHEMA_HONEST
from tests.masking.canary_watch import CanaryWatch, watched
from tests.masking.masking_canaries import (
    HIDING,
    HOSTILE,
    NUMBER,
    PLACED,
    WORD,
    Values,
    corpus_policy,
    found,
    hostile_schema,
    seed_corpus,
)

PATHS = pytest.mark.parametrize("rewriting", [True, False], ids=["source_rewrite", "post_exec"])
COPIES = 6
"""Of each database of the corpus: a statement that takes a masked table away ends one's use."""
LARGE = 100_000


def masking(policy: dict[str, Any], *, rewriting: bool) -> dict[str, Any]:
    return {**policy, "mask_source_rewrite": rewriting}


@pytest.mark.timeout(600)
@PATHS
async def test_hostile_statements_carry_nothing_out(postgres: Postgres, tmp_path: Path, rewriting: bool) -> None:
    policy = masking(yaml.safe_load(HIDING), rewriting=rewriting)
    twins = {name: (postgres.create_database(hostile_schema(seed)), policy) for name, seed in (("one", 1), ("two", 2))}
    async with watched(twins, tmp_path) as watch:
        different = []
        for sql in HOSTILE.statements:
            one, two = [await watch.query(name, sql) for name in twins]
            if without_oids(one) != without_oids(two) and sql not in PLACED:
                different.append((sql, one, two))
        for table in ("people", "posts", "kept", "contacts", "loud"):
            await watch.call("describe_table", database="one", table=table)
    assert watch.leaks == []
    assert different == []
    assert watch.outcomes["answered"] > len(HOSTILE.statements) * (0.7 if rewriting else 0.2), watch.outcomes


@pytest.mark.timeout(300)
async def test_errors_from_within_tell_nothing_of_denied_tables(postgres: Postgres, tmp_path: Path) -> None:
    hidden: dict[str, Any] = {"table_access": {"default": "read_write", "tables": {"people": "deny", "posts": "deny"}}}
    open_: dict[str, Any] = {"table_access": {"default": "read_write"}}
    dsn = postgres.create_database(hostile_schema(1))
    async with watched({"hidden": (dsn, hidden), "open": (dsn, open_)}, tmp_path) as watch:
        asked = [*HOSTILE.writes["constraints elsewhere"], *HOSTILE.writes["triggers and rules"]]
        for sql in (*asked, "SELECT * FROM people"):
            await watch.query("hidden", sql)
        assert watch.leaks == []
        told = await watch.query("open", "INSERT INTO desks VALUES (101, 1)")
    assert told["error"]["message"].startswith("no desk for a")  # where nothing is hidden the server's words are the agent's
    assert {leak.split(" ")[0] for leak in watch.leaks[1:]} == {"audit"}


def without_oids(answer: dict[str, Any]) -> str:
    """The answer without OIDs of tables and types in rows of pg_attribute: the twins are two databases of one server."""
    return re.sub(r'"(attrelid|atttypid)": ?"\d+"', "", json.dumps(answer))


@pytest.mark.soak
async def test_most_hostile_statements_would_without_masks(postgres: Postgres, tmp_path: Path) -> None:
    policy = {key: value for key, value in yaml.safe_load(HIDING).items() if key != "column_masks"}
    twins = {name: (postgres.create_database(hostile_schema(seed)), policy) for name, seed in (("one", 1), ("two", 2))}
    async with watched(twins, tmp_path) as watch:
        answers = [[await watch.query(name, sql) for name in twins] for sql in HOSTILE.statements]
    dangers = sum(one != two or bool(found(json.dumps(one))) for one, two in answers)
    assert dangers > len(answers) * 0.6
    assert any(leak.startswith("audit ") for leak in watch.leaks)  # the texts of errors


@pytest.mark.timeout(0)
@pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.soak)], ids=["a share", "whole"])
@PATHS
async def test_the_corpus_carries_nothing_out(postgres: Postgres, tmp_path: Path, rewriting: bool, every: int) -> None:
    databases = {}
    for honest in (False, True):
        name = "honest" if honest else "sample"
        seeded = postgres.create_database(SCHEMA.read_text("utf-8") + (SCHEMA_HONEST.read_text("utf-8") if honest else ""))
        seed_corpus(postgres, seeded, honest=honest, seed=3)
        policy = masking(corpus_policy(honest=honest), rewriting=rewriting)
        for copy in range(COPIES if every == 1 else 1):
            databases[f"{name}_{copy}"] = postgres.copy_database(seeded), policy
    with trio.fail_after(3600):
        async with watched(databases, tmp_path) as watch:
            asked = 0
            for name, rows in corpus_rows():
                asked += await ask_all(watch, [key for key in databases if key.startswith(name)], rows[::every])
    assert watch.leaks == []
    print(f"{asked} statements of the corpus: {dict(watch.outcomes)}")
    assert watch.outcomes["answered"] > asked * 0.3, watch.outcomes


def corpus_rows() -> Iterator[tuple[str, list[str]]]:
    """The statements for each database, those that change things last."""
    denied: list[Row] = [row for file in deny_files().values() for row in file.rows]
    for name in ("sample", "honest"):
        allowed = [row for file in allow_files().values() if file.database == name for row in file.rows]
        texts = dict.fromkeys(row.sql for row in (*allowed, *(denied if name == "sample" else ())))
        yield name, sorted((sql for sql in texts if len(sql) < LARGE and sql.isprintable() | sql.isascii()), key=_changes)


def _changes(sql: str) -> int:
    """0 for what only reads, 1 for what changes rows, then what makes relations, last what changes them or takes them away."""
    statement = analyze(sql)
    if not isinstance(statement, Statement) or statement.category not in ("row write", "relation write"):
        return 0
    return 1 if statement.category == "row write" else 3 if statement.kind.startswith(("ALTER", "DROP", "TRUNCATE")) else 2


async def ask_all(watch: CanaryWatch, copies: list[str], statements: list[str]) -> int:
    """How many there were. A copy whose masks do not fit any more is left for the next one."""
    names = iter(copies)
    name = next(names)
    for sql in statements:
        if await _unmatched(watch, name, sql) and await _unmatched(watch, name, "SELECT count(*) FROM customers"):
            name = next(names)
            assert not await _unmatched(watch, name, "SELECT count(*) FROM customers")
            await watch.query(name, sql)
    return len(statements)


async def _unmatched(watch: CanaryWatch, name: str, sql: str) -> bool:
    return "masks of this database cannot be matched" in (await watch.query(name, sql)).get("reason", "")


def test_a_canary_is_found_in_each_spelling() -> None:
    word, number = Values(1).word(), Values(1).number()
    spelt = [
        word,
        word.upper(),
        word[::-1],
        word.encode().hex(),
        ",".join(word),
        f'"{word}"',
        number,
        number[::-1],
        f"${int(number):,}.00",
    ]
    spelt += [base64.b64encode(b"x" * before + word.encode()).decode() for before in range(3)]
    spelt += [f"{float(number):.8e}", Values(1).of("date"), Values(1).of("inet"), Values(1).of("uuid"), Values(1).of("bytea")]
    assert [text for text in spelt if not found(text)] == []
    assert not found(f"a•••{WORD[1:]} {NUMBER[:-1]} 2777-01-01 ***")
