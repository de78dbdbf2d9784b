"""Leaf hashes of an instance in tiles of 256, and above them tiles of their roots, so that a proof over any number
of events reads a
handful of rows. A tile's number has its level in the top byte. Pure, but for the statements.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from gatewayd.audit.tree import HASH_BYTES, Subtree, inclusion_proof, node, range_from
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction

TILE_BITS: Final = 8
TILE: Final = 1 << TILE_BITS
_LEVEL_SHIFT: Final = 56

READ: Final = Statement(
    "SELECT tile, leaves FROM audit_tiles WHERE project_id = $1 AND gateway_id = $2 AND instance = $3 AND tile = ANY($4)"
)
WRITE: Final = Statement(
    "INSERT INTO audit_tiles (project_id, gateway_id, instance, tile, leaves) SELECT $1::uuid, $2::uuid, $3::uuid, t, l"
    " FROM unnest($4::bigint[], $5::bytea[]) AS new (t, l)"
    " ON CONFLICT (project_id, gateway_id, instance, tile) DO UPDATE SET leaves = audit_tiles.leaves || excluded.leaves"
)

Instance = tuple[str, str, str]
"""project, gateway, instance"""


class TileMissing(Exception):
    """A tile that the head says is there is not."""


class _Tile(msgspec.Struct, frozen=True):
    tile: int
    leaves: bytes


def number(level: int, index: int) -> int:
    return level << _LEVEL_SHIFT | index


def added(size: int, last: Mapping[int, bytes], leaves: Iterable[bytes]) -> dict[int, bytes]:
    """What to append to which tile for `leaves` after the first `size`. `last`: by number, the tiles of `edge(size)`."""
    found: dict[int, bytearray] = {}
    whole = {at: bytearray(data) for at, data in last.items()}

    def append(level: int, index: int, each: bytes) -> None:
        at = number(level, index >> TILE_BITS)
        found.setdefault(at, bytearray()).extend(each)
        tile = whole.setdefault(at, bytearray())
        tile.extend(each)
        if (index + 1) % TILE == 0:
            append(level + 1, index >> TILE_BITS, _root(bytes(tile)))
            del whole[at]

    for offset, leaf in enumerate(leaves):
        append(0, size + offset, leaf)
    return {at: bytes(data) for at, data in found.items()}


def edge(size: int) -> list[int]:
    """The tiles that are not full in a tree of `size` leaves."""
    found, level = [], 0
    while size:
        if size % TILE:
            found.append(number(level, size >> TILE_BITS))
        size >>= TILE_BITS
        level += 1
    return found


async def read(tx: Transaction, instance: Instance, numbers: Iterable[int]) -> dict[int, bytes]:
    wanted = sorted(set(numbers))
    return {each.tile: each.leaves for each in await tx.rows(_Tile, READ, *instance, wanted)} if wanted else {}


async def write(tx: Transaction, instance: Instance, new: Mapping[int, bytes]) -> None:
    numbers = sorted(new)
    await tx.run(WRITE, *instance, numbers, [new[each] for each in numbers])


async def leaves_between(tx: Transaction, instance: Instance, start: int, end: int) -> list[bytes]:
    """The leaves `start` to `end` (exclusive) that are held. Raises TileMissing."""
    tiles = await read(tx, instance, range(start >> TILE_BITS, ((end - 1) >> TILE_BITS) + 1))
    return [_hash(tiles, 0, index) for index in range(start, end)]


async def prove(tx: Transaction, instance: Instance, index: int, size: int) -> list[bytes]:
    """The inclusion proof of a leaf in the tree of the first `size`. Raises TileMissing."""
    wanted: set[int] = set()
    inclusion_proof(index, size, _noting(wanted))
    return inclusion_proof(index, size, over(await read(tx, instance, wanted)))


async def root_at(tx: Transaction, instance: Instance, size: int) -> bytes:
    """The root over the first `size` leaves. Raises TileMissing."""
    wanted: set[int] = set()
    range_from(size, _noting(wanted))
    return range_from(size, over(await read(tx, instance, wanted))).root()


def _noting(wanted: set[int]) -> Subtree:
    """Answers nothing of worth, and remembers which tiles would have been read."""

    def subtree(level: int, index: int) -> bytes:
        wanted.add(number(level // TILE_BITS, index << level % TILE_BITS >> TILE_BITS))
        return bytes(HASH_BYTES)

    return subtree


def over(tiles: Mapping[int, bytes]) -> Subtree:
    """The roots of whole subtrees, from the tiles that they lie in, by number."""

    def subtree(level: int, index: int) -> bytes:
        of, above = divmod(level, TILE_BITS)
        first = index << above
        return _fold([_hash(tiles, of, each) for each in range(first, first + (1 << above))])

    return subtree


def _hash(tiles: Mapping[int, bytes], level: int, index: int) -> bytes:
    at = index % TILE * HASH_BYTES
    found = tiles.get(number(level, index >> TILE_BITS), b"")[at : at + HASH_BYTES]
    if len(found) != HASH_BYTES:
        raise TileMissing(f"leaf hashes are missing at {level}:{index}")
    return found


def _root(tile: bytes) -> bytes:
    return _fold([tile[at : at + HASH_BYTES] for at in range(0, len(tile), HASH_BYTES)])


def _fold(hashes: list[bytes]) -> bytes:
    while len(hashes) > 1:
        hashes = [node(hashes[at], hashes[at + 1]) for at in range(0, len(hashes), 2)]
    return hashes[0]
