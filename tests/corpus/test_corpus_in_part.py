"""Statements that show hidden things without us, and are answered here without those."""

import msgspec
import pytest

from gatewayd.catalog import Catalog
from gatewayd.masking.plan import Rewritten
from gatewayd.policy.decide.outcomes import Allowed, Permit
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.embedded import EmbeddedPostgres
from gatewayd.postgres.execute.run import execute
from gatewayd.postgres.pool import Pool
from gatewayd.shields.whole_plan import plan
from tests.corpus.corpus import Part, decided, part_files, policies
from tests.corpus.server import PLACES

ROWS = [row for file in part_files().values() for row in file.rows]


def test_there_are_some() -> None:
    assert len(ROWS) > 60
    assert all(row.effect for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row.statement[:60] for row in ROWS])
async def test_it_is_answered_and_what_is_hidden_is_left_out(
    row: Part, corpus_server: EmbeddedPostgres, corpus_catalog: Catalog
) -> None:
    decision = decided(row, corpus_catalog)
    assert isinstance(decision, Allowed), decision
    assert decision.needs_shield
    policy = policies()[row.policy]
    planned = plan(decision, policy, corpus_catalog, salt=None, rewriting=True)
    assert isinstance(planned, Rewritten), planned
    pool = Pool("sample", corpus_server.url(database=PLACES["sample"]), Limits(), 1)
    try:
        result = await execute(pool, Permit(decision, "query", "audit"), Limits(), corpus_catalog, planned)
    finally:
        await pool.aclose()
    shown = row.effect.get("shows") if isinstance(row.effect, dict) else None
    if shown is not None and not _is_named(row, shown):
        assert shown not in b"".join(result.rows).decode()
    for answer in result.rows:
        msgspec.json.decode(answer)


def _is_named(row: Part, shown: str) -> bool:
    """Whether the statement itself says it, or it is but the name of a relation, which may be known."""
    return shown in row.statement or shown in ("secrets", "v_secrets")
