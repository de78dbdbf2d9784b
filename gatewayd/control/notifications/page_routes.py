"""Webhooks for people: /notifications."""

from typing import Final

from gatewayd.control.notifications import manage
from gatewayd.control.notifications.kinds import CHOICES, WORDS
from gatewayd.control.notifications.manage import NewWebhook, WebhookChange
from gatewayd.control.notifications.shown import sent, shown, webhooks
from gatewayd.control.projects.visible import every_visible
from gatewayd.control.web.answer import Answer, Refusal, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said

_PAGE: Final = "notifications/pages/notifications.html"
_ONE_PAGE: Final = "notifications/pages/webhook.html"
_ALL: Final = "/notifications"
_ONE: Final = f"{_ALL}/webhooks/<channel>"
_KINDS: Final = tuple((kind, WORDS[kind]) for kind in CHOICES)
_USUAL: Final = ("approval.waiting", "gateway.halted", "gateway.duplicated", "gateway.forked", "gateway.silent", "audit.unproved")
"""Ticked at first: what somebody has to do something about."""


async def _list(call: Call) -> Answer:
    return await _page(call)


async def _add(call: Call) -> Answer:
    form = call.sent(NewWebhook)
    wrong = manage.problem_of(call, form)
    if wrong is not None:
        return await _page(call, form, wrong, 400)
    try:
        channel_id, secret = await manage.add(call, form)
    except Refusal as refused:
        return await _page(call, form, refused.text, refused.status)
    return await _one_page(call, channel_id, secret=secret)


async def _one(call: Call) -> Answer:
    return await _one_page(call, call.args["channel"])


async def _change(call: Call) -> Answer:
    form = call.sent(WebhookChange)
    wrong = manage.change_problem(form)
    if wrong is not None:
        return await _one_page(call, call.args["channel"], problem=wrong, status=400)
    await manage.change(call, form)
    return said(call, to(_path(call)), "saved")


async def _rotate(call: Call) -> Answer:
    return await _one_page(call, call.args["channel"], secret=await manage.rotate(call))


async def _test(call: Call) -> Answer:
    await manage.test(call)
    return said(call, to(_path(call)), "tested")


async def _enable(call: Call) -> Answer:
    await manage.enable(call)
    return said(call, to(_path(call)), "saved")


async def _disable(call: Call) -> Answer:
    await manage.disable(call)
    return said(call, to(_path(call)), "saved")


async def _remove(call: Call) -> Answer:
    await manage.remove(call)
    return said(call, to(_ALL), "removed")


async def _page(call: Call, form: NewWebhook | None = None, problem: str | None = None, status: int = 200) -> Answer:
    projects = {each.project_id: each.name for each in await every_visible(call)}
    return page(
        call, _PAGE, status, webhooks=await webhooks(call), projects=projects, kinds=_KINDS, words=dict(_KINDS), problem=problem,
        form=form or NewWebhook("", "", list(_USUAL)),
    )  # fmt: skip


async def _one_page(
    call: Call, channel_id: str, *, secret: str | None = None, problem: str | None = None, status: int = 200
) -> Answer:
    found = shown(await manage.find(call, channel_id))
    listed = await sent(call, found.id)
    projects = {each.project_id: each.name for each in await every_visible(call)}
    return page(
        call, _ONE_PAGE, status, webhook=found, secret=secret, problem=problem, kinds=_KINDS, words=WORDS, listed=listed,
        project=projects.get(found.project or "", found.project),
    )  # fmt: skip


def _path(call: Call) -> str:
    return f"{_ALL}/webhooks/{call.args['channel'].upper()}"


ROUTES: Final = (
    Route("GET", _ALL, _list, door="person", right="org.settings"),
    Route("POST", f"{_ALL}/webhooks", _add, door="person", right="org.settings", again=True, body=NewWebhook),
    Route("GET", _ONE, _one, door="person", right="org.settings"),
    Route("POST", f"{_ONE}/change", _change, door="person", right="org.settings", again=True, body=WebhookChange),
    Route("POST", f"{_ONE}/secret", _rotate, door="person", right="org.settings", again=True),
    Route("POST", f"{_ONE}/test", _test, door="person", right="org.settings"),
    Route("POST", f"{_ONE}/enable", _enable, door="person", right="org.settings"),
    Route("POST", f"{_ONE}/disable", _disable, door="person", right="org.settings"),
    Route("POST", f"{_ONE}/remove", _remove, door="person", right="org.settings", again=True),
)
