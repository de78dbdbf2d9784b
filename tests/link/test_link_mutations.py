"""No mutation of a document or of a cached file is taken for what was signed; a million of them in `make soak`."""

from collections import Counter

import pytest

from tests.link import mutations


@pytest.mark.parametrize("times", [4000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_no_mutation_of_a_document_or_of_a_cached_file_is_taken(times: int) -> None:
    counts: Counter[str] = mutations.run(times, seed=times)
    assert sum(counts.values()) == times
    for kind in mutations.readers():
        assert any(name.startswith(f"{kind}: ") for name in counts), kind
