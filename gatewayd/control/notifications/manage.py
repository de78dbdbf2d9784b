"""What people and scripts do to webhooks: add, change, renew the secret, test, disable, enable, remove. Each is in the trail."""

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.control.keyring.sealing import Unsealable
from gatewayd.control.moment import Moment, moment
from gatewayd.control.notifications import channel as channels
from gatewayd.control.notifications import deliveries
from gatewayd.control.notifications.bodies import Shape
from gatewayd.control.notifications.channel import MOST, Channel, sealed_secrets, sealed_url, secrets_of
from gatewayd.control.notifications.kinds import CHOICES, is_kind
from gatewayd.control.notifications.outbox import WAKE, Notice, queue
from gatewayd.control.notifications.signing import SECRET_BYTES, WebhookSecret, new_secret, rotated
from gatewayd.control.outbound.ask import url_problem
from gatewayd.control.people.person import name_problem
from gatewayd.control.projects.find import FIND as FIND_PROJECT
from gatewayd.control.projects.find import Project
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Refusal
from gatewayd.control.web.call import Call

_NOTHING: Final = "there is nothing here"


class NewWebhook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`project` empty: of all projects, and of what belongs to none. `shape`: `standard` (Standard Webhooks) or `slack`."""

    name: str
    url: str
    kinds: list[str] = []
    shape: Shape = "standard"
    project: str = ""


class WebhookChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    kinds: list[str] = []


def problem_of(call: Call, new: NewWebhook) -> str | None:
    """What keeps it from being added, with the field's name."""
    wrong = url_problem(new.url)
    if wrong is None and urlsplit(new.url).scheme == "http" and not call.console.settings.outbound_networks:
        wrong = "expected https; http is for networks that CONTROL_OUTBOUND_NETWORKS names"
    return change_problem(WebhookChange(new.name, new.kinds)) or (f"url: {wrong}" if wrong is not None else None)


def change_problem(wanted: WebhookChange) -> str | None:
    wrong = name_problem(wanted.name)
    if wrong is not None:
        return f"name: {wrong}"
    if not wanted.kinds or not all(is_kind(each) for each in wanted.kinds):
        return f"kinds: expected at least one of {', '.join(CHOICES)}"
    return None


async def add(call: Call, new: NewWebhook) -> tuple[str, str]:
    """Its id, and its secret, which is shown once. Raises Refusal."""
    wrong = problem_of(call, new)
    if wrong is not None:
        raise Refusal(400, wrong)
    console, org_id, now = call.console, call.org_id, moment(call.console)
    channel_id, secret, project_id = now.fresh_id, new_secret(console.entropy(SECRET_BYTES)), new.project or None
    url = sealed_url(console, org_id, channel_id, new.url)
    secrets = sealed_secrets(console, org_id, channel_id, [secret])
    host, kinds = urlsplit(new.url).hostname or "", _kinds_text(new.kinds)

    async def work(tx: Transaction) -> None:
        if project_id is not None and (
            not is_ulid(project_id) or await tx.row(Project, FIND_PROJECT, org_id, project_id) is None
        ):
            raise Refusal(404, "project: expected the id of a project of this organisation, or nothing for all")
        if int(await tx.value(channels.COUNT, org_id, MOST)) >= MOST:
            raise Refusal(409, f"there are {MOST} webhooks, which is the most; remove one first")
        await tx.run(
            channels.ADD, org_id, channel_id, project_id, new.shape, new.name.strip(), host, url, secrets, kinds, now.now_ms,
            call.person.person_id,
        )  # fmt: skip
        await _record(tx, call, now, "notification.added", channel_id, project_id, name=new.name.strip(), host=host, kinds=kinds)

    await console.store.transaction(work)
    return channel_id, secret.text


async def change(call: Call, wanted: WebhookChange) -> None:
    wrong = change_problem(wanted)
    if wrong is not None:
        raise Refusal(400, wrong)
    kinds = _kinds_text(wanted.kinds)

    async def work(tx: Transaction, found: Channel, now: Moment) -> None:
        await tx.run(channels.SET_KINDS, call.org_id, found.channel_id, wanted.name.strip(), kinds)
        await _record(
            tx, call, now, "notification.changed", found.channel_id, found.project_id, name=wanted.name.strip(), kinds=kinds
        )  # fmt: skip

    await _change(call, work)


async def rotate(call: Call) -> str:
    """A new secret, shown once; the one before signs beside it for a day. Raises Refusal."""
    console = call.console
    secret = new_secret(console.entropy(SECRET_BYTES))

    async def work(tx: Transaction, found: Channel, now: Moment) -> None:
        try:
            before = secrets_of(console, call.org_id, found)
        except Unsealable:  # the key is gone: nobody can sign with the secret before, either
            before = [WebhookSecret(secret.text)]
        text = sealed_secrets(console, call.org_id, found.channel_id, rotated(before, secret, now.now_ms))
        await tx.run(channels.SET_SECRETS, call.org_id, found.channel_id, text)
        await _record(tx, call, now, "notification.secret_rotated", found.channel_id, found.project_id, name=found.name)

    await _change(call, work)
    return secret.text


async def test(call: Call) -> None:
    """Queue a delivery that says so, whatever kinds the webhook wants."""

    async def work(tx: Transaction, found: Channel, now: Moment) -> None:
        if found.disabled_ms is not None:
            raise Refusal(409, "this webhook is disabled; enable it first")
        notice = Notice("test", now.fresh_id, f"/notifications/webhooks/{found.channel_id}", found.project_id)
        await queue(tx, call.org_id, found.channel_id, notice, now.now_ms)
        await tx.run(WAKE, call.org_id, now.now_ms)
        await _record(tx, call, now, "notification.tested", found.channel_id, found.project_id, name=found.name)

    await _change(call, work)


async def enable(call: Call) -> None:
    async def work(tx: Transaction, found: Channel, now: Moment) -> None:
        if await tx.run(channels.ENABLE, call.org_id, found.channel_id):
            await _record(tx, call, now, "notification.changed", found.channel_id, found.project_id, name=found.name, state="on")

    await _change(call, work)


async def disable(call: Call) -> None:
    """What waits to be sent is given up."""

    async def work(tx: Transaction, found: Channel, now: Moment) -> None:
        if await tx.run(channels.DISABLE, call.org_id, found.channel_id, now.now_ms, "person"):
            await tx.run(deliveries.GIVE_UP, call.org_id, found.channel_id, deliveries.DISABLED)
            await _record(tx, call, now, "notification.changed", found.channel_id, found.project_id, name=found.name, state="off")

    await _change(call, work)


async def remove(call: Call) -> None:
    async def work(tx: Transaction, found: Channel, now: Moment) -> None:
        await tx.run(channels.REMOVE, call.org_id, found.channel_id)
        await tx.run(deliveries.REMOVE_OF, call.org_id, found.channel_id)
        await _record(tx, call, now, "notification.removed", found.channel_id, found.project_id, name=found.name)

    await _change(call, work)


async def find(call: Call, channel_id: str) -> Channel:
    """Raises Refusal."""
    found = await call.console.store.row(Channel, channels.FIND, call.org_id, channel_id) if is_ulid(channel_id) else None
    if found is None:
        raise Refusal(404, _NOTHING)
    return found


async def _change(call: Call, work: Callable[[Transaction, Channel, Moment], Awaitable[None]]) -> None:
    channel_id, now = call.args["channel"], moment(call.console)
    if not is_ulid(channel_id):
        raise Refusal(404, _NOTHING)

    async def locked(tx: Transaction) -> None:
        found = await tx.row(Channel, channels.FIND_LOCKED, call.org_id, channel_id)
        if found is None:
            raise Refusal(404, _NOTHING)
        await work(tx, found, now)

    await call.console.store.transaction(locked)


async def _record(
    tx: Transaction, call: Call, now: Moment, action: str, channel_id: str, project_id: str | None, **details: str
) -> None:
    await now.record(tx, call.org_id, Act(action, call.person.person_id, project_id, channel_id, details))


def _kinds_text(kinds: list[str]) -> str:
    return msgspec.json.encode([each for each in CHOICES if each in kinds]).decode()
