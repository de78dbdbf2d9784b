"""Webhooks for scripts: /api/v1/webhooks."""

from typing import Final

import msgspec

from gatewayd.control.notifications import manage
from gatewayd.control.notifications.manage import NewWebhook, WebhookChange
from gatewayd.control.notifications.shown import Deliveries, Webhook, Webhooks, sent, shown, webhooks
from gatewayd.control.web.answer import Answer, json
from gatewayd.control.web.call import Call
from gatewayd.control.web.route import Route

_ALL: Final = "/api/v1/webhooks"
_ONE: Final = f"{_ALL}/<channel>"


class WebhookMade(msgspec.Struct, frozen=True):
    """`secret`: `whsec_…`, not shown again."""

    id: str
    secret: str


async def _list(call: Call) -> Answer:
    return json(Webhooks(await webhooks(call)))


async def _add(call: Call) -> Answer:
    return json(WebhookMade(*await manage.add(call, call.sent(NewWebhook))), 201)


async def _change(call: Call) -> Answer:
    await manage.change(call, call.sent(WebhookChange))
    return await _shown(call)


async def _rotate(call: Call) -> Answer:
    secret = await manage.rotate(call)
    return json(WebhookMade(call.args["channel"].upper(), secret))


async def _test(call: Call) -> Answer:
    await manage.test(call)
    return await _shown(call)


async def _enable(call: Call) -> Answer:
    await manage.enable(call)
    return await _shown(call)


async def _disable(call: Call) -> Answer:
    await manage.disable(call)
    return await _shown(call)


async def _remove(call: Call) -> Answer:
    await manage.remove(call)
    return json(Webhooks(await webhooks(call)))


async def _deliveries(call: Call) -> Answer:
    return json(await sent(call, (await manage.find(call, call.args["channel"])).channel_id))


async def _shown(call: Call) -> Answer:
    return json(shown(await manage.find(call, call.args["channel"])))


ROUTES: Final = (
    Route("GET", _ALL, _list, door="key", right="org.settings", answer=Webhooks, summary="webhooks and how they do"),
    Route(
        "POST", _ALL, _add, door="key", right="org.settings", body=NewWebhook, answer=WebhookMade,
        summary="add one; its secret is shown once",
    ),
    Route(
        "PUT", _ONE, _change, door="key", right="org.settings", body=WebhookChange, answer=Webhook,
        summary="another name, other kinds of events",
    ),
    Route(
        "POST", f"{_ONE}/secret", _rotate, door="key", right="org.settings", answer=WebhookMade,
        summary="a new secret; the one before signs beside it for a day",
    ),
    Route("POST", f"{_ONE}/test", _test, door="key", right="org.settings", answer=Webhook, summary="send it a test"),
    Route("POST", f"{_ONE}/enable", _enable, door="key", right="org.settings", answer=Webhook, summary="send to it again"),
    Route(
        "POST", f"{_ONE}/disable", _disable, door="key", right="org.settings", answer=Webhook,
        summary="send nothing to it; what waits is given up",
    ),
    Route("DELETE", _ONE, _remove, door="key", right="org.settings", answer=Webhooks, summary="remove it"),
    Route(
        "GET", f"{_ONE}/deliveries", _deliveries, door="key", right="org.settings", answer=Deliveries,
        summary="what was sent to it and what it answered, the newest first",
    ),
)  # fmt: skip
