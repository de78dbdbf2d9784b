"""Signed heads of what people did: made while there is something new, kept, and told to the log, which is a witness then.

Whoever may change the store cannot sign. So a head that was copied from the log, or an export, shows later that an act was taken
out or changed.
"""

from typing import Final

import msgspec
import trio

from gatewayd import log
from gatewayd.audit.tree import CompactRange, inclusion_proof
from gatewayd.control.console import Console
from gatewayd.control.organisation.every import every_organisation
from gatewayd.control.store.lease import run_leased
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store
from gatewayd.control.trail.proof import TrailHead, sign_head
from gatewayd.control.trust.signing import signers

EVERY_S: Final = 60.0
_LEAVES: Final = 5000

HEAD: Final = Statement("SELECT instance, size, frontier FROM org_heads WHERE org_id = $1")
LEAVES: Final = Statement("SELECT seq, leaf FROM org_events WHERE org_id = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4")
KEEP: Final = Statement(
    "INSERT INTO org_checkpoints (org_id, size, note, made_ms) VALUES ($1, $2, $3, $4) ON CONFLICT (org_id, size) DO NOTHING"
)
KEPT: Final = Statement("SELECT size, note, made_ms FROM org_checkpoints WHERE org_id = $1 ORDER BY size DESC LIMIT $2")


class KeptHead(msgspec.Struct, frozen=True):
    size: int
    note: str
    made_ms: int


class _Held(msgspec.Struct, frozen=True):
    instance: str
    size: int
    frontier: bytes


class _Leaf(msgspec.Struct, frozen=True):
    seq: int
    leaf: bytes


async def keep_heads(console: Console) -> None:
    """The service."""

    async def work(_fence: int) -> None:
        await keep(console)
        await trio.sleep(EVERY_S)

    await run_leased(console.store, "trail heads", console.replica, work)


async def keep(console: Console) -> None:
    """One round: a head for each organisation in which something was done since its last one."""
    for org_id in await every_organisation(console.store):
        kept = await console.store.row(KeptHead, KEPT, org_id, 1)
        head = await head_of(console.store, org_id)
        if head is None or head.size == (kept.size if kept is not None else 0):
            continue
        note = sign_head(head, signers(console.secrets.signing)[0])
        if await console.store.run(KEEP, org_id, head.size, note, console.now_ms()):
            log.info(log.TRAIL_HEAD, organisation=org_id, size=head.size, note=note)


async def head_of(store: Store, org_id: str, size: int | None = None) -> TrailHead | None:
    """The head of the first `size` acts, of all where it is None; None where there are not so many."""
    held = await store.row(_Held, HEAD, org_id)
    if held is None or (size is not None and size > held.size):
        return None
    if size is None or size == held.size:
        return TrailHead(org_id, held.instance, held.size, CompactRange.decode(held.size, held.frontier).root())
    tree = CompactRange()
    tree.extend(await leaves(store, org_id, size))
    return TrailHead(org_id, held.instance, size, tree.root())


async def leaves(store: Store, org_id: str, size: int) -> list[bytes]:
    """The first `size` leaves. An organisation has thousands of acts, so 32 bytes of each are read anew for each proof."""
    found: list[bytes] = []
    while piece := await store.rows(_Leaf, LEAVES, org_id, len(found), size, _LEAVES):
        found += [each.leaf for each in piece]
    return found


def inclusion(found: list[bytes], index: int) -> list[bytes]:
    """The hashes from the leaf at `index` up to the root over all of `found`."""

    def subtree(level: int, place: int) -> bytes:
        tree = CompactRange()
        tree.extend(found[place << level : (place + 1) << level])
        return tree.root()

    return inclusion_proof(index, len(found), subtree)
