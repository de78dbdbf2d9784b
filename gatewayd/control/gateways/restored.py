"""A control plane that was restored from a backup is behind what it once signed. Its gateways bring that back: the
newest bundle and
the last acknowledgements, each with our own signature (docs/link-protocol.md, Poll)."""

from typing import Final

from gatewayd.control.audit.findings import find_out
from gatewayd.control.console import Console
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trust.documents import trust_in_force
from gatewayd.link.formats.answers import Ack
from gatewayd.link.formats.bundle import BundleHead
from gatewayd.link.formats.documents import NO_ENVELOPE, DocumentRefused, digest, opened, read
from gatewayd.link.formats.status import PollBody
from gatewayd.link.formats.trust import Trust

_ACKS: Final = 8

BEGIN: Final = Statement("INSERT INTO bundle_heads (project_id, version) VALUES ($1, 0) ON CONFLICT (project_id) DO NOTHING")
HEAD: Final = Statement("SELECT version FROM bundle_heads WHERE project_id = $1 FOR UPDATE")
ADD: Final = Statement(
    "INSERT INTO bundles (project_id, version, policy_version, envelope, sha256, reason, issued_ms) VALUES ($1, $2, NULL, $3, $4,"
    " 'brought back by a gateway', $5) ON CONFLICT (project_id, version) DO NOTHING"
)
MOVE: Final = Statement("UPDATE bundle_heads SET version = $2 WHERE project_id = $1 AND version < $2")
HELD: Final = Statement("SELECT size FROM audit_heads WHERE project_id = $1 AND gateway_id = $2 AND instance = $3")


async def go_on_above(console: Console, place: ProjectPlace, body: PollBody) -> None:
    trust = (await trust_in_force(console)).trust
    now_ms = console.now_ms()
    newest = None if bytes(body.newest) == bytes(NO_ENVELOPE) else _bundle(bytes(body.newest), trust, place, now_ms)
    acks = [ack for each in body.acks[:_ACKS] if (ack := _ack(bytes(each), trust, place, now_ms)) is not None]
    if newest is None and not acks:
        return
    finding_ids = [console.new_id() for _ in acks]

    async def work(tx: Transaction) -> None:
        if newest is not None:
            head, payload, envelope = newest
            await tx.run(BEGIN, place.project_id)
            if int(await tx.value(HEAD, place.project_id)) < head.version:
                await tx.run(ADD, place.project_id, head.version, envelope, bytes.fromhex(digest(payload)), now_ms)
                await tx.run(MOVE, place.project_id, head.version)
        for ack, finding_id in zip(acks, finding_ids, strict=True):
            held = int(await tx.value(HELD, place.project_id, place.id, ack.instance) or 0)
            if held < ack.size:
                found = {"instance": ack.instance, "acknowledged": ack.size, "held": held}
                await find_out(tx, place, "lost", found, finding_id, now_ms)

    await console.store.transaction(work)


def _bundle(data: bytes, trust: Trust, place: ProjectPlace, now_ms: int) -> tuple[BundleHead, bytes, bytes] | None:
    try:
        payload = opened("bundle", data, trust.keys_for("bundle", now_ms))
        head = read(payload, BundleHead)
    except DocumentRefused:
        return None
    is_ours = (head.issuer, head.project) == (trust.issuer, place.project_id) and 0 < head.version < 1 << 62
    return (head, payload, data) if is_ours else None


def _ack(data: bytes, trust: Trust, place: ProjectPlace, now_ms: int) -> Ack | None:
    try:
        ack = read(opened("ack", data, trust.keys_for("ack", now_ms)), Ack)
    except DocumentRefused:
        return None
    return ack if ack.gateway == place.id else None
