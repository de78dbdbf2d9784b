"""Webhooks and their deliveries as pages and the API show them: the host of an address, never the address; no secret."""

from typing import Final, Literal

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.control.notifications import channel as channels
from gatewayd.control.notifications import deliveries
from gatewayd.control.notifications.bodies import Shape
from gatewayd.control.notifications.channel import Channel
from gatewayd.control.notifications.deliveries import Delivery, State
from gatewayd.control.web.call import Call

_ROWS: Final = 50
_LAST: Final = "7" + "Z" * 25


class Webhook(msgspec.Struct, frozen=True):
    """`state`: `failing` since `failing_since_ms`, and still tried; `disabled`: nothing is sent, `why` says since what: `person`,
    `failing` for days, or `gone` (the receiver answered 410). `project` None: of all projects."""

    id: str
    name: str
    host: str
    shape: Shape
    project: str | None
    kinds: list[str]
    state: Literal["active", "failing", "disabled"]
    why: str | None
    failing_since_ms: int | None
    made_ms: int


class Webhooks(msgspec.Struct, frozen=True):
    webhooks: list[Webhook]


class Sent(msgspec.Struct, frozen=True):
    """`id` is the webhook-id of every try. `answer`: a status, or why there was none. `next_ms`: of the next try."""

    id: str
    kind: str
    state: State
    made_ms: int
    tries: int
    answer: str | None
    tried_ms: int | None
    next_ms: int | None


class Deliveries(msgspec.Struct, frozen=True):
    """The newest first; `next`: what `?before=` takes to go on, None at the end."""

    deliveries: list[Sent]
    next: str | None


async def webhooks(call: Call) -> list[Webhook]:
    return [shown(each) for each in await call.console.store.rows(Channel, channels.OF_ORGANISATION, call.org_id)]


async def sent(call: Call, channel_id: str) -> Deliveries:
    before = call.incoming.query.get("before", "")
    below = before if is_ulid(before) else _LAST
    rows = await call.console.store.rows(Delivery, deliveries.OF_CHANNEL, call.org_id, channel_id, below, _ROWS + 1)
    more = rows[_ROWS - 1].delivery_id if len(rows) > _ROWS else None
    return Deliveries([_sent(each) for each in rows[:_ROWS]], more)


def shown(channel: Channel) -> Webhook:
    state: Literal["active", "failing", "disabled"] = "active"
    if channel.disabled_ms is not None:
        state = "disabled"
    elif channel.failing_since_ms is not None:
        state = "failing"
    return Webhook(
        channel.channel_id, channel.name, channel.host_shown, channel.shape, channel.project_id, channel.kind_list, state,
        channel.disabled_why, channel.failing_since_ms, channel.made_ms,
    )  # fmt: skip


def _sent(each: Delivery) -> Sent:
    return Sent(
        each.message_id, each.kind, each.state, each.made_ms, each.tries, each.answer, each.tried_ms, each.next_ms
    )  # fmt: skip
