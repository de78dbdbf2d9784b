"""The danger of every refusal is real: each row's effect is shown on PostgreSQL, without us. And what may pass, runs there."""

from pathlib import Path

import pytest

from gatewayd.postgres.embedded import EmbeddedPostgres
from tests.corpus.corpus import HERE, allow_files, deny_file, deny_files
from tests.corpus.effects import Server, prove

WITHOUT = 40  # rows whose effect cannot be shown here; a bound, so that they stay few


@pytest.mark.parametrize("path", sorted((HERE / "deny").glob("*.yaml")), ids=lambda path: path.stem)
def test_each_refused_statement_does_harm_without_us(path: Path, corpus_server: EmbeddedPostgres) -> None:
    server = Server(corpus_server)
    wrong: list[str] = []
    for row in deny_file(path).rows:
        try:
            seen = prove(server, row.sql, row.effect)
        except AssertionError as failed:
            seen = str(failed)
        if seen:
            wrong.append(f"{row.statement[:300]!r}\n    has not the effect {row.effect}: {seen}")
    assert not wrong, "\n".join(wrong)


def test_few_effects_cannot_be_shown() -> None:
    without = [
        row for file in deny_files().values() for row in file.rows if isinstance(row.effect, dict) and "none" in row.effect
    ]
    assert len(without) <= WITHOUT


@pytest.mark.parametrize(
    "path", [path for path, file in allow_files().items() if file.database == "sample"], ids=lambda path: path.stem
)
def test_each_allowed_statement_runs(path: Path, corpus_server: EmbeddedPostgres) -> None:
    server = Server(corpus_server)
    wrong: list[str] = []
    for row in allow_files()[path].rows:
        if row.needs:
            continue
        seen = prove(server, row.sql, "runs")
        if seen:
            wrong.append(f"{row.statement[:300]!r}\n    {seen}")
    assert not wrong, "\n".join(wrong)
