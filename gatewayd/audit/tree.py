"""Merkle trees over audit rows (RFC 6962 section 2.1; proofs are checked as RFC 9162 section 2.1 says). Pure.

A leaf is 32 bytes (`leaf.py` makes them). A tree that only grows is kept as its compact range: the roots of its largest complete
subtrees, one for each set bit of its size, largest first. Proofs read other nodes by position: `subtree(level, index)` is the
root over the leaves `index << level` up to `(index + 1) << level`.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Final, final

HASH_BYTES: Final = 32
EMPTY_ROOT: Final = sha256(b"").digest()

Subtree = Callable[[int, int], bytes]


def node(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node, 32 bytes (RFC 6962 section 2.1)."""
    return sha256(b"\x01" + left + right).digest()


@final
class CompactRange:
    """A tree of `size` leaves without its leaves. `nodes` has one hash for each set bit of `size`, highest first."""

    __slots__ = ("nodes", "size")

    def __init__(self, size: int = 0, nodes: Iterable[bytes] = ()) -> None:
        self.size = size
        self.nodes = list(nodes)
        if size < 0 or len(self.nodes) != size.bit_count() or any(len(each) != HASH_BYTES for each in self.nodes):
            raise ValueError(f"expected {max(size, 0).bit_count()} hashes of {HASH_BYTES} bytes for a tree of size {size}")

    def append(self, leaf: bytes) -> None:
        nodes = self.nodes
        size = self.size
        self.size = size + 1
        while size & 1:
            leaf = sha256(b"\x01" + nodes.pop() + leaf).digest()
            size >>= 1
        nodes.append(leaf)

    def extend(self, leaves: Iterable[bytes]) -> None:
        for leaf in leaves:
            self.append(leaf)

    def root(self) -> bytes:
        return root_of(self.nodes)

    def copy(self) -> "CompactRange":
        copied = CompactRange.__new__(CompactRange)  # without the checks: the original was checked
        copied.size, copied.nodes = self.size, self.nodes.copy()
        return copied

    def encode(self) -> bytes:
        """The concatenated hashes, to be stored with the size."""
        return b"".join(self.nodes)

    @classmethod
    def decode(cls, size: int, data: bytes) -> "CompactRange":
        """The range that `encode` gave. Raises ValueError if `data` has not the length of a range of that size."""
        if len(data) % HASH_BYTES:
            raise ValueError(f"expected hashes of {HASH_BYTES} bytes")
        return cls(size, [data[start : start + HASH_BYTES] for start in range(0, len(data), HASH_BYTES)])

    def places(self) -> list[tuple[int, int, bytes]]:
        """(level, index, hash) of each node."""
        return [(level, index, each) for (level, index), each in zip(_complete(0, self.size), self.nodes, strict=True)]


def root_of(nodes: Sequence[bytes]) -> bytes:
    """The root of a tree from its compact range."""
    if not nodes:
        return EMPTY_ROOT
    root = nodes[-1]
    for left in reversed(nodes[:-1]):
        root = sha256(b"\x01" + left + root).digest()
    return root


def inclusion_proof(index: int, size: int, subtree: Subtree) -> list[bytes]:
    """The hashes that lead from the leaf at `index` to the root of the tree of `size` leaves (RFC 6962 section 2.1.1)."""
    if not 0 <= index < size:
        raise ValueError(f"found index {index} in a tree of size {size}")
    proof: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _largest_power_below(end - start)
        if index < middle:
            proof.append(_range_root(middle, end, subtree))
            end = middle
        else:
            proof.append(_range_root(start, middle, subtree))
            start = middle
    return proof[::-1]


def consistency_proof(first: int, second: int, subtree: Subtree) -> list[bytes]:
    """The hashes that prove that the tree of `first` leaves is the beginning of that of `second` (RFC 6962 section 2.1.2)."""
    if not 0 < first <= second:
        raise ValueError(f"found sizes {first} and {second}, expected them rising from 1")
    proof: list[bytes] = []
    start, end = 0, second
    is_whole = True  # whether the older tree is still the beginning of the rest
    while first != end:
        middle = start + _largest_power_below(end - start)
        if first <= middle:
            proof.append(_range_root(middle, end, subtree))
            end = middle
        else:
            proof.append(_range_root(start, middle, subtree))
            start = middle
            is_whole = False
    if not is_whole:
        proof.append(_range_root(start, end, subtree))
    return proof[::-1]


def root_from_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes | None:
    """The root that the proof leads to (RFC 9162 section 2.1.3.2); None if it has not the length that the position requires."""
    if not 0 <= index < size:
        return None
    number, last, root = index, size - 1, leaf
    for each in proof:
        if last == 0:
            return None
        if number & 1 or number == last:
            root = node(each, root)
            while not number & 1 and number:
                number >>= 1
                last >>= 1
        else:
            root = node(root, each)
        number >>= 1
        last >>= 1
    return root if last == 0 else None


def range_before(index: int, size: int, proof: Sequence[bytes]) -> CompactRange:
    """The tree of the leaves before the one at `index`, out of a proof that `root_from_inclusion` has verified: what stands to
    the left of the leaf's path is what that tree is made of."""
    number, last = index, size - 1
    left: list[bytes] = []
    for each in proof:
        if number & 1 or number == last:
            left.append(each)
            while not number & 1 and number:
                number >>= 1
                last >>= 1
        number >>= 1
        last >>= 1
    return CompactRange(index, reversed(left))


def is_consistent(first: int, second: int, proof: Sequence[bytes], first_root: bytes, second_root: bytes) -> bool:
    """Whether the proof shows that the tree of `first` leaves is the beginning of that of `second` (RFC 9162 2.1.4.2)."""
    if not 0 < first <= second:
        return False
    if first == second:
        return not proof and first_root == second_root
    hashes = list(proof) if first & (first - 1) else [first_root, *proof]
    if not hashes:
        return False
    number, last = first - 1, second - 1
    while number & 1:
        number >>= 1
        last >>= 1
    old = new = hashes[0]
    for each in hashes[1:]:
        if last == 0:
            return False
        if number & 1 or number == last:
            old, new = node(each, old), node(each, new)
            while not number & 1 and number:
                number >>= 1
                last >>= 1
        else:
            new = node(new, each)
        number >>= 1
        last >>= 1
    return last == 0 and old == first_root and new == second_root


def range_from(size: int, subtree: Subtree) -> CompactRange:
    """The compact range of the tree of `size` leaves."""
    return CompactRange(size, [subtree(level, index) for level, index in _complete(0, size)])


def _range_root(start: int, end: int, subtree: Subtree) -> bytes:
    return root_of([subtree(level, index) for level, index in _complete(start, end)])


def _complete(start: int, end: int) -> list[tuple[int, int]]:
    """The complete subtrees (level, index) that cover the leaves `start` to `end`; RFC 6962 splits at `start`."""
    found: list[tuple[int, int]] = []
    while start < end:
        level = (end - start).bit_length() - 1
        found.append((level, start >> level))
        start += 1 << level
    return found


def _largest_power_below(count: int) -> int:
    """The largest power of two that is smaller than `count`, which is at least 2."""
    return 1 << ((count - 1).bit_length() - 1)
