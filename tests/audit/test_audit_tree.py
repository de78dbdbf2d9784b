"""The tree's arithmetic against RFC 6962's own recursive definitions and its published values."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.audit.tree import (
    EMPTY_ROOT,
    CompactRange,
    consistency_proof,
    inclusion_proof,
    is_consistent,
    range_before,
    range_from,
    root_from_inclusion,
)

# The inputs and roots of the reference implementation of RFC 6962 (certificate-transparency, merkletree test data).
HEX = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", bytes(range(0x60, 0x70)).hex()]
INPUTS = [
    b"",
    b"\x00",
    b"\x10",
    b"\x20\x21",
    b"\x30\x31",
    b"\x40\x41\x42\x43",
    bytes(range(0x50, 0x58)),
    bytes(range(0x60, 0x70)),
]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def leaf(number: int) -> bytes:
    return sha256(b"\x00" + number.to_bytes(8, "big")).digest()


def mth(leaves: list[bytes]) -> bytes:
    """RFC 6962 section 2.1, word for word."""
    if not leaves:
        return EMPTY_ROOT
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\x01" + mth(leaves[:split]) + mth(leaves[split:])).digest()


class Leaves:
    """All leaves of a tree, and the root of any complete part of it."""

    def __init__(self, size: int) -> None:
        self.leaves = [leaf(number) for number in range(size)]

    def subtree(self, level: int, index: int) -> bytes:
        part = self.leaves[index << level : (index + 1) << level]
        assert len(part) == 1 << level
        return mth(part)


def test_the_published_roots() -> None:
    tree = CompactRange()
    assert tree.root() == sha256(b"").digest()
    for given_, root in zip(INPUTS, ROOTS, strict=True):
        tree.append(sha256(b"\x00" + given_).digest())
        assert tree.root().hex() == root


@given(st.integers(0, 300))
def test_a_compact_range_is_the_whole_tree(size: int) -> None:
    whole, tree = Leaves(size), CompactRange()
    tree.extend(whole.leaves)
    assert tree.root() == mth(whole.leaves)
    assert CompactRange.decode(size, tree.encode()).root() == tree.root()
    assert range_from(size, whole.subtree).nodes == tree.nodes
    assert all(whole.subtree(level, index) == each for level, index, each in tree.places())
    copied = tree.copy()
    copied.append(leaf(size))
    assert tree.root() == mth(whole.leaves)


@given(st.integers(1, 300), st.data())
def test_inclusion_holds_at_its_place_and_nowhere_else(size: int, data: st.DataObject) -> None:
    whole = Leaves(size)
    root = mth(whole.leaves)
    index = data.draw(st.integers(0, size - 1))
    proof = inclusion_proof(index, size, whole.subtree)
    assert root_from_inclusion(whole.leaves[index], index, size, proof) == root
    other = data.draw(st.integers(0, size - 1))
    if other != index:
        assert root_from_inclusion(whole.leaves[other], index, size, proof) != root
        assert root_from_inclusion(whole.leaves[index], other, size, proof) != root
    assert root_from_inclusion(whole.leaves[index], index, size, [*proof, root]) is None
    assert range_before(index, size, proof).nodes == range_from(index, whole.subtree).nodes
    if proof:
        assert root_from_inclusion(whole.leaves[index], index, size, proof[:-1]) is None
        place = data.draw(st.integers(0, len(proof) - 1))
        changed = [*proof[:place], leaf(999), *proof[place + 1 :]]
        assert root_from_inclusion(whole.leaves[index], index, size, changed) != root
    assert root_from_inclusion(whole.leaves[index], size, size, proof) is None
    assert root_from_inclusion(whole.leaves[index], -1, size, proof) is None


@given(st.integers(1, 300), st.data())
def test_consistency_holds_for_a_beginning_and_for_nothing_else(second: int, data: st.DataObject) -> None:
    whole = Leaves(second)
    first = data.draw(st.integers(1, second))
    old, new = mth(whole.leaves[:first]), mth(whole.leaves)
    proof = consistency_proof(first, second, whole.subtree)
    assert is_consistent(first, second, proof, old, new)
    assert not is_consistent(first, second, proof, leaf(999), new)
    assert not is_consistent(first, second, proof, old, leaf(999))
    assert not is_consistent(first, second, [*proof, leaf(999)], old, new)
    if proof:
        assert not is_consistent(first, second, proof[:-1], old, new)
        place = data.draw(st.integers(0, len(proof) - 1))
        assert not is_consistent(first, second, [*proof[:place], leaf(999), *proof[place + 1 :]], old, new)
    assert not is_consistent(0, second, proof, old, new)
    assert not is_consistent(second + 1, second, proof, old, new)


@pytest.mark.parametrize(("index", "size"), [(0, 0), (5, 5), (-1, 5)])
def test_a_place_outside_of_the_tree_has_no_proof(index: int, size: int) -> None:
    with pytest.raises(ValueError, match="in a tree of size"):
        inclusion_proof(index, size, Leaves(8).subtree)


@pytest.mark.parametrize(("size", "data"), [(3, bytes(32)), (1, bytes(31)), (0, bytes(32)), (-1, b"")])
def test_a_range_that_does_not_fit_its_size_is_refused(size: int, data: bytes) -> None:
    with pytest.raises(ValueError, match="hashes of 32 bytes"):
        CompactRange.decode(size, data)
