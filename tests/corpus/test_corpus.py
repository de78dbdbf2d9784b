"""Every row of the corpus decides as it says, word for word; no row stands there twice; the names in it exist."""

import time
from collections import Counter

import pytest

from gatewayd.catalog import Catalog
from tests.corpus.corpus import Allow, Row, allow_files, deny_files, mismatch, policies
from tests.corpus.written import text_of


def test_every_row_decides_as_it_says(corpus_catalogs: dict[str, Catalog], figures: list[str]) -> None:
    started = time.perf_counter()
    denied = [(path, row, "sample") for path, file in deny_files().items() for row in file.rows]
    allowed = [(path, row, file.database) for path, file in allow_files().items() for row in file.rows]
    wrong: list[str] = []
    for path, row, database in [*denied, *allowed]:
        found = mismatch(row, corpus_catalogs[database])
        if found:
            wrong.append(f"{path.parent.name}/{path.name}: [{row.policy}] {row.statement[:300]!r}\n    {found}")
    spent = time.perf_counter() - started
    figures.append(
        f"corpus: {len(denied) + len(allowed)} cases ({len(denied)} denials, {len(allowed)} allowed statements), "
        f"{len(wrong)} mismatches, {spent:.2f} s for all decisions"
    )
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", ["deny", "allow"])
def test_rows_stand_there_once_and_name_a_policy(folder: str) -> None:
    rows: list[Row] = [row for file in (deny_files() if folder == "deny" else allow_files()).values() for row in file.rows]
    # Several tools may send the same statement: their rows differ in their source.
    keys = Counter((row.policy, row.catalog, row.tainted, row.sql, row.source if isinstance(row, Allow) else "") for row in rows)
    twice = [key for key, times in keys.items() if times > 1]
    assert not twice
    assert {row.policy for row in rows} <= set(policies())


def test_refusals_have_a_reason_a_danger_and_the_form_that_is_kept() -> None:
    for path, file in deny_files().items():
        for row in file.rows:
            assert all((row.why, row.reason, row.effect)), f"{path.name}: {row.statement[:200]}"
        assert text_of(file) == path.read_text(encoding="utf-8"), f"{path.name}: run `python -m tests.corpus --write`"
