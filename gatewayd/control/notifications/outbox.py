"""What is to be told is queued in the transaction of what happened: told if that is committed, never for what was rolled back.

A notice says where to look, by ids, names of database and token, and a link; never a statement, a table or a value. Whoever gets
it signs in to see the rest.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

import msgspec

from gatewayd.audit.ids import new_ulid
from gatewayd.control.notifications.kinds import Kind
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.web.shown_text import plain

_TEXT_CHARACTERS: Final = 200

LISTENING: Final = Statement(
    "SELECT channel_id, project_id, kinds FROM notification_channels WHERE org_id = $1 AND disabled_ms IS NULL LIMIT 100"
)
QUEUE: Final = Statement(
    "INSERT INTO notification_deliveries (org_id, delivery_id, channel_id, project_id, kind, body, made_ms, next_ms)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $7) ON CONFLICT (org_id, delivery_id) DO NOTHING"
)
WAKE: Final = Statement(
    "INSERT INTO notification_due (org_id, next_ms, version) VALUES ($1, $2, 1) ON CONFLICT (org_id) DO UPDATE"
    " SET next_ms = LEAST(notification_due.next_ms, excluded.next_ms), version = notification_due.version + 1"
)


class Notice(msgspec.Struct, frozen=True):
    """`facts`: ids and names. `path`: of the page that shows it. One event is told once, however often it is queued."""

    kind: Kind
    event_id: str
    path: str
    project_id: str | None = None
    facts: Mapping[str, str] = {}


class Told(msgspec.Struct, frozen=True):
    """What is stored of a notice until it is sent. Everything in `facts` is one short line without hidden characters."""

    type: Kind
    made_ms: int
    organisation: str
    project: str | None
    path: str
    facts: dict[str, str]


class _Listening(msgspec.Struct, frozen=True):
    channel_id: str
    project_id: str | None
    kinds: str


async def tell(tx: Transaction, org_id: str, notice: Notice, now_ms: int) -> None:
    """Queue the notice for every channel that wants it."""
    wanted = [each for each in await tx.rows(_Listening, LISTENING, org_id) if _wants(each, notice)]
    if not wanted:
        return
    for each in wanted:
        await queue(tx, org_id, each.channel_id, notice, now_ms)
    await tx.run(WAKE, org_id, now_ms)


async def queue(tx: Transaction, org_id: str, channel_id: str, notice: Notice, now_ms: int) -> str:
    """For one channel; the delivery's id. The caller wakes the sender."""
    named = f"{notice.event_id} {notice.kind} {channel_id}".encode()
    delivery_id = new_ulid(now_ms, lambda size: sha256(named).digest()[:size])
    facts = {name: plain(" ".join(text[:_TEXT_CHARACTERS].split())) for name, text in notice.facts.items()}
    told = Told(notice.kind, now_ms, org_id, notice.project_id, notice.path, facts)
    body = msgspec.json.encode(told).decode()
    await tx.run(QUEUE, org_id, delivery_id, channel_id, notice.project_id, notice.kind, body, now_ms)
    return delivery_id


def _wants(channel: _Listening, notice: Notice) -> bool:
    is_of_it = channel.project_id is None or channel.project_id == notice.project_id
    return is_of_it and notice.kind in msgspec.json.decode(channel.kinds, type=list[str])
