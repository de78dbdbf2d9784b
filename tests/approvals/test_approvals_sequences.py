"""A thousand generated lives of held writes; a hundred thousand in `make soak` (tests/approvals/sequences.py)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests import places
from tests.approvals.sequences import sequences

WHAT_MUST_HAVE_HAPPENED = {
    "pending", "approved", "denied", "expired", "too many", "lost twice", "runs", "engine is killed", "policy denies now",
    "fails", "outcome is lost", "person: approved", "person: denied", "gate and engine restarted",
    "deny by policy", "allow by policy",
    *(f"status {state}" for state in ("pending", "approved", "executed", "consumed", "denied", "expired", "not_found")),
}  # fmt: skip


@contextmanager
def in_memory() -> Iterator[Path]:
    """A place whose syncs cost nothing, where there is one."""
    with TemporaryDirectory(dir=places.ROOT) as folder:
        yield Path(folder) / "r.db"


async def test_a_thousand_sequences_keep_the_rules() -> None:
    with in_memory() as path:
        counts = await sequences(path, 14, 1000)
    assert set(counts) >= WHAT_MUST_HAVE_HAPPENED


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
async def test_a_hundred_thousand_sequences_keep_the_rules(seed: int) -> None:
    with in_memory() as path:
        counts = await sequences(path, 1000 + seed, 10_000)
    assert set(counts) >= WHAT_MUST_HAVE_HAPPENED
    print(dict(counts.most_common()))
