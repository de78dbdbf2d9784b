"""Notifications: what is told to whom, in which words, signed, again and again until it arrives, and never twice at once."""

import base64
import hashlib
import hmac
from functools import partial

import h11
import msgspec
import pytest
import trio

from gatewayd.approvals.messages import Pending
from gatewayd.control.approvals.answer import answer
from gatewayd.control.approvals.decide import WriteDecision, decide
from gatewayd.control.approvals.sweep import sweep
from gatewayd.control.audit.findings import find_out
from gatewayd.control.console import Console
from gatewayd.control.gateways import gateway as gateways
from gatewayd.control.gateways.silence import look
from gatewayd.control.keyring.ring import Ring, key_of
from gatewayd.control.moment import moment
from gatewayd.control.notifications import deliveries, manage
from gatewayd.control.notifications.bodies import slack, tame
from gatewayd.control.notifications.channel import seal_webhooks_anew, secrets_of, url_of
from gatewayd.control.notifications.deliveries import CLAIM_MS, PAUSES_MS, claim
from gatewayd.control.notifications.kinds import CHOICES, OF_ACT, OF_FINDING
from gatewayd.control.notifications.manage import NewWebhook, WebhookChange
from gatewayd.control.notifications.outbox import Told
from gatewayd.control.notifications.send import FAILING_MS, Sender
from gatewayd.control.notifications.signing import OVERLAP_MS, WebhookSecret, headers, new_secret, rotated
from gatewayd.control.settings import ControlSettings
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store, Transaction
from gatewayd.control.trail.record import NEWEST, Act, Event
from gatewayd.control.web.answer import Refusal
from gatewayd.control.web.call import Call
from tests.control.notified import DAY_MS, Notified, notified
from tests.notify.receiver import receiving, status

SEEN = Statement("UPDATE gateways SET seen_ms = $3 WHERE project_id = $1 AND gateway_id = $2")
HOSTILE = "<!channel> <https://evil.example|click> *x* `y` @here https://evil.example/\u202e\n& more"
ALLOWED_FACTS = {"organisation", "project", "link", "approval", "database", "token", "agent_claims", "act", "person", "target",
                 "version", "gateway", "finding", "channel"}  # fmt: skip


@pytest.fixture
async def world(settings: ControlSettings, store: Store) -> Notified:
    return await notified(settings, store)


def test_the_signature_is_that_of_standard_webhooks() -> None:
    """The example that its libraries are tested with."""
    secret = WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    found = headers([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330_000, b'{"test": 2432232314}')
    assert found == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_two_secrets_sign_while_one_is_changed() -> None:
    old, new = new_secret(b"o" * 32), new_secret(b"n" * 32)
    both = rotated([old], new, 1000)
    during = headers(both, "m", 1000 + OVERLAP_MS - 1, b"{}")["webhook-signature"].split()
    after = headers(both, "m", 1000 + OVERLAP_MS, b"{}")["webhook-signature"].split()
    assert during == [headers([each], "m", 1000 + OVERLAP_MS - 1, b"{}")["webhook-signature"] for each in (new, old)]
    assert after == headers([new], "m", 1000 + OVERLAP_MS, b"{}")["webhook-signature"].split()
    assert len(rotated(both, old, 2000)) == 2


def checked(head: h11.Request, body: dict[str, object], secret: str) -> str:
    """The message's id, once its signature holds; written here from the specification."""
    found = {name.decode(): value.decode() for name, value in head.headers}
    text = msgspec.json.encode(body)
    signed = f"{found['webhook-id']}.{found['webhook-timestamp']}.".encode() + text
    mark = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), signed, hashlib.sha256).digest()
    assert f"v1,{base64.b64encode(mark).decode()}" in found["webhook-signature"].split()
    return found["webhook-id"]


async def test_a_write_that_waits_is_told_by_ids_and_names_alone(world: Notified) -> None:
    async with receiving(status("204 No Content")) as receiver:
        channel_id, secret = await world.add(receiver.url, "approval.waiting", "approval.decided")
        ask = world.world.ask(
            "UPDATE payroll SET amount = 4711 WHERE owner = 'canary'", agent_name=HOSTILE, intent="canary intent"
        )
        pending = await answer(world.console, world.world.asker, ask)
        assert isinstance(pending, Pending)
        await answer(world.console, world.world.asker, ask)  # joins: told once
        await world.send()
        await decide(await world.world.call("Ben"), pending.approval_id, WriteDecision("approve", "canary note"))
        await world.send()
    waiting, decided = (body for _, body in receiver.requests)
    assert [waiting["type"], decided["type"]] == ["approval.waiting", "approval.decided"]
    assert waiting["timestamp"] == "2025-11-22T08:26:40.000Z"
    data = waiting["data"]
    assert isinstance(data, dict)
    assert set(data) <= ALLOWED_FACTS
    assert (data["database"], data["token"], data["project"]) == ("shop", "claude's", world.world.project)
    assert data["link"] == pending.review_url
    assert "\u202e" not in data["agent_claims"]
    assert "\n" not in data["agent_claims"]
    for word in ("canary", "payroll", "4711", "UPDATE", "public.orders"):
        assert word not in str([waiting, decided])
    ids = [checked(head, body, secret) for head, body in receiver.requests]
    assert set(ids) == {each.message_id for each in await world.deliveries(channel_id)}
    assert [(each.state, each.answer, each.tries) for each in await world.deliveries(channel_id)] == [("delivered", "204", 1)] * 2


def test_slack_is_told_nothing_that_it_would_act_on() -> None:
    facts = {"approval": "01", "database": HOSTILE, "token": "a&b", "agent_claims": HOSTILE}
    told = Told("approval.waiting", 0, "O", "P", "/projects/P/approvals/01", facts)
    message = msgspec.json.decode(slack(told, "https://console.example.com"))
    first, link = message["text"].split("\n")
    assert link == "https://console.example.com/projects/P/approvals/01"
    assert not set(first) & set("<>@*`~/|\u202e&")
    assert "token a·b" in first
    assert tame("Größe 7_a-b") == "Größe 7_a-b"
    assert len(tame("x" * 1000)) < 100


async def test_slack_gets_its_shape(world: Notified) -> None:
    async with receiving(status("200 OK")) as receiver:
        await world.add(receiver.url, "approval.waiting", shape="slack")
        await answer(world.console, world.world.asker, world.world.ask(agent_name="<!channel>"))
        await world.send()
    (body,) = (body for _, body in receiver.requests)
    assert str(body["text"]).startswith(
        "gatewayd: a write waits for a person (database shop, token claude·s, the agent calls itself"
    )
    assert "<" not in str(body["text"])


async def test_what_fails_is_tried_again_with_the_same_id(world: Notified) -> None:
    async with receiving(status("500 Oops")) as receiver:
        channel_id, secret = await world.add(receiver.url, "policy.published")
        await probe(world, channel_id)
        await world.send()
        await world.send()
        assert len(receiver.requests) == 1, "before its time nothing is sent again"
        assert (await world.channel(channel_id)).failing_since_ms == world.clock.now_ms
        receiver.answer = status("200 OK")
        world.clock.now_ms += round(PAUSES_MS[0] * 1.2)
        await world.send()
    first, second = receiver.requests
    assert checked(*first, secret) == checked(*second, secret)
    assert dict(first[0].headers)[b"webhook-timestamp"] != dict(second[0].headers)[b"webhook-timestamp"]
    assert (await world.channel(channel_id)).failing_since_ms is None
    (delivery,) = await world.deliveries(channel_id)
    assert (delivery.state, delivery.answer, delivery.tries, delivery.next_ms) == ("delivered", "200", 2, None)


async def test_after_a_day_it_is_given_up_and_after_three_the_webhook_is_disabled(world: Notified) -> None:
    async with receiving(status("200 OK")) as watching, receiving(status("500 Oops")) as broken:
        await world.add(watching.url, "channel.disabled", name="Watching")
        channel_id, _ = await world.add(broken.url, "policy.published")
        begun_ms = world.clock.now_ms
        for day in range(4):
            await probe(world, channel_id)
            while (await world.deliveries(channel_id))[0].state == "waiting":
                world.clock.now_ms = (await world.deliveries(channel_id))[0].next_ms or 0
                await world.send()
            spent = world.clock.now_ms - begun_ms - day * DAY_MS
            assert 0.8 * DAY_MS < spent < 1.1 * DAY_MS, "about a day each"
            world.clock.now_ms = begun_ms + (day + 1) * DAY_MS
            if (await world.channel(channel_id)).disabled_ms is not None:
                break
        assert world.clock.now_ms - begun_ms >= FAILING_MS
        held = await world.channel(channel_id)
        assert held.disabled_why == "failing"
        assert {(each.state, each.tries) for each in await world.deliveries(channel_id)} == {("failed", len(PAUSES_MS) + 1)}
        await world.send()
        assert [body["type"] for _, body in watching.requests] == ["channel.disabled"]
        assert f"/notifications/webhooks/{channel_id}" in str(watching.requests[0][1])
        sent = len(broken.requests)
        with pytest.raises(Refusal, match="enable it first"):
            await probe(world, channel_id)
        call = await of(world, channel_id)
        await manage.enable(call)
        await manage.test(call)
        await world.send()
        assert len(broken.requests) == sent + 1
    newest = await world.console.store.rows(Event, NEWEST, world.world.org, 1 << 60, 20)
    assert "notification.disabled" in [each.action for each in newest]


async def test_a_receiver_that_answers_410_wants_nothing_more(world: Notified) -> None:
    async with receiving(status("410 Gone")) as receiver:
        channel_id, _ = await world.add(receiver.url, "policy.published")
        await probe(world, channel_id)
        await probe(world, channel_id)
        await world.send()
        world.clock.now_ms += CLAIM_MS
        await world.send()
    assert len(receiver.requests) == 1
    assert (await world.channel(channel_id)).disabled_why == "gone"
    assert {each.state for each in await world.deliveries(channel_id)} == {"failed"}


async def test_two_senders_send_once_and_what_a_dead_one_had_claimed_is_sent_later(world: Notified) -> None:
    async with receiving(status("200 OK")) as receiver:
        channel_id, _ = await world.add(receiver.url, "policy.published")
        for _ in range(3):
            await probe(world, channel_id)
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(Sender(world.console, world.outbound).send_due)
        assert len(receiver.requests) == 3
        await probe(world, channel_id)
        claims = partial(claim, org_id=world.world.org, channel_id=channel_id, now_ms=world.clock.now_ms)
        assert len(await world.console.store.transaction(claims)) == 1, "by one that dies now"
        await world.send()
        assert len(receiver.requests) == 3
        world.clock.now_ms += CLAIM_MS
        await world.send()
        assert len(receiver.requests) == 4


async def test_a_sender_that_was_away_settles_nothing(world: Notified) -> None:
    async with receiving(status("200 OK")) as receiver:
        channel_id, _ = await world.add(receiver.url, "policy.published")
        await probe(world, channel_id)
        store, org, now_ms = world.console.store, world.world.org, world.clock.now_ms
        (held,) = await store.transaction(partial(claim, org_id=org, channel_id=channel_id, now_ms=now_ms))
        world.clock.now_ms += CLAIM_MS
        await world.send()

        async def late(tx: Transaction) -> None:
            await deliveries.settle(tx, org, held, works=False, answer="late", now_ms=world.clock.now_ms, jitter=0)

        await store.transaction(late)
    assert [(each.state, each.answer) for each in await world.deliveries(channel_id)] == [("delivered", "200")]


async def test_a_slow_receiver_holds_up_nobody_else(world: Notified) -> None:
    stuck = trio.Event()

    async def wait(stream: trio.SocketStream) -> None:
        await stuck.wait()
        await status("200 OK")(stream)

    async with receiving(wait) as slow, receiving(status("200 OK")) as quick, trio.open_nursery() as nursery:
        stuck.set()
        await world.add(slow.url)
        await world.add(quick.url)
        done = len(slow.requests), len(quick.requests)
        stuck = trio.Event()
        sender = Sender(world.console, world.outbound)
        for number in range(3):
            await answer(world.console, world.world.asker, world.world.ask(f"DELETE FROM orders WHERE id = {number}"))
            await sender.start_due(nursery)
            with trio.fail_after(30):
                await quick.received(done[1] + number + 1)
        assert len(slow.requests) == done[0] + 1
        stuck.set()


async def test_each_kind_comes_from_what_happens(world: Notified) -> None:
    """All but those that the other tests see."""
    store, org, project = world.console.store, world.world.org, world.world.project
    names = {kind: world.console.new_id() for kind in ("fork", "lost", "duplicated")}
    silent, now = world.console.new_id(), moment(world.console)

    async def happens(tx: Transaction) -> None:
        for kind, finding_id in names.items():
            place = ProjectPlace(org, project, silent)
            await find_out(tx, place, kind, {"instance": kind}, finding_id, now.now_ms)  # type: ignore[arg-type]  # one of them
            await find_out(tx, place, kind, {"instance": kind}, world.console.new_id(), now.now_ms)  # type: ignore[arg-type]
        await tx.run(gateways.ADD, project, silent, "Dublin", b"k" * 32, "key", None, now.now_ms)
        await tx.run(SEEN, project, silent, now.now_ms)
        await now.record(tx, org, Act("role.changed", world.world.people["Ben"], target=world.world.people["Cleo"]))

    async with receiving(status("200 OK")) as receiver:
        await world.add(receiver.url)
        before = len(receiver.requests)
        await store.transaction(happens)
        await answer(world.console, world.world.asker, world.world.ask())
        await look(world.console)
        world.clock.now_ms += DAY_MS
        for _ in range(2):
            await look(world.console)
            await sweep(world.console)
        await world.send()
        await world.send()
        kinds = sorted(str(body["type"]) for _, body in receiver.requests[before:])
    assert kinds == sorted(
        ["gateway.forked", "audit.unproved", "gateway.duplicated", "people.changed", "approval.waiting", "gateway.silent",
         "approval.expired"]
    )  # fmt: skip


def test_every_act_and_finding_is_of_a_kind_that_one_can_choose() -> None:
    assert set(OF_ACT.values()) | set(OF_FINDING.values()) <= set(CHOICES)


async def test_a_webhook_of_a_project_is_told_of_that_alone(world: Notified) -> None:
    other = world.console.new_id()
    now = [moment(world.console) for _ in range(3)]

    async def happens(tx: Transaction) -> None:
        for each, project in zip(now, (world.world.project, other, None), strict=True):
            await each.record(tx, world.world.org, Act("token.revoked", None, project, each.fresh_id, {"name": "ci"}))

    async with receiving(status("200 OK")) as receiver:
        await world.add(receiver.url, "keys.changed", project=world.world.project)
        before = len(receiver.requests)
        await world.console.store.transaction(happens)
        await world.send()
    (body,) = [body for _, body in receiver.requests[before:]]
    assert body["data"]["target"] == now[0].fresh_id  # type: ignore[index]  # it is an object


async def test_what_was_rolled_back_is_not_told(world: Notified) -> None:
    async with receiving(status("200 OK")) as receiver:
        channel_id, _ = await world.add(receiver.url, "people.changed")
        now = moment(world.console)

        async def fails(tx: Transaction) -> None:
            await now.record(tx, world.world.org, Act("role.changed", None))
            raise Refusal(409, "no")

        with pytest.raises(Refusal):
            await world.console.store.transaction(fails)
        await world.send()
    assert receiver.requests == []
    assert await world.deliveries(channel_id) == []


async def test_a_disabled_or_removed_webhook_is_sent_nothing(world: Notified) -> None:
    async with receiving(status("200 OK")) as receiver:
        channel_id, _ = await world.add(receiver.url, "policy.published")
        await probe(world, channel_id)
        await manage.disable(await of(world, channel_id))
        await world.send()
        assert {each.state for each in await world.deliveries(channel_id)} == {"failed"}
        await manage.enable(await of(world, channel_id))
        await probe(world, channel_id)
        await manage.remove(await of(world, channel_id))
        await world.send()
        assert (
            await world.console.store.rows(deliveries.Delivery, deliveries.OF_CHANNEL, world.world.org, channel_id, "7" * 26, 9)
            == []
        )
    assert receiver.requests == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"url": "http://8.8.8.8/"}, None),  # told with each delivery: where a name leads changes
        ({"url": "ftp://hooks.example.com/"}, "url:"),
        ({"name": ""}, "name:"),
        ({"kinds": []}, "kinds:"),
        ({"kinds": ["test"]}, "kinds:"),
        ({"project": "01JDZZZZZZZZZZZZZZZZZZZZZZ"}, "project:"),
        ({"project": "not an id"}, "project:"),
    ],
)
async def test_what_cannot_be_added_is_told_by_its_field(world: Notified, changed: dict[str, object], words: str | None) -> None:
    fields = {"name": "Pager", "url": "https://hooks.example.com/", "kinds": ["policy.published"]} | changed
    adding = manage.add(await world.world.call("Agnes"), msgspec.convert(fields, NewWebhook))
    if words is None:
        assert await adding
        return
    with pytest.raises(Refusal, match=words):
        await adding


async def test_there_are_at_most_twenty(world: Notified) -> None:
    call, new = await world.world.call("Agnes"), NewWebhook("Pager", "https://hooks.example.com/", ["policy.published"])
    for _ in range(20):
        await manage.add(call, new)
    with pytest.raises(Refusal, match="20"):
        await manage.add(call, new)


async def test_an_address_leads_nowhere_in_this_network_unless_named(world: Notified, settings: ControlSettings) -> None:
    async with receiving(status("200 OK")) as receiver:
        channel_id, _ = await world.add(receiver.url, "policy.published")
        world.outbound = type(world.outbound)(settings.outbound_networks)
        await probe(world, channel_id)
        await world.send()
        (delivery,) = await world.deliveries(channel_id)
        assert (delivery.state, delivery.tries) == ("waiting", 1)
        assert "CONTROL_OUTBOUND_NETWORKS" in (delivery.answer or "")
        assert "canary" not in (delivery.answer or "")
        assert receiver.connections == 0


async def test_each_change_is_in_the_trail_without_address_or_secret(world: Notified) -> None:
    channel_id, secret = await world.add("https://hooks.example.com/canary-path", "policy.published")
    call = await of(world, channel_id)
    await manage.change(call, WebhookChange("Chat", ["people.changed"]))
    new = await manage.rotate(call)
    for each in (manage.disable, manage.enable, manage.remove):
        await each(call)
    events = await world.console.store.rows(Event, NEWEST, world.world.org, 1 << 60, 6)
    assert [each.action.removeprefix("notification.") for each in reversed(events)] == [
        "added", "changed", "secret_rotated", "changed", "changed", "removed"
    ]  # fmt: skip
    for text in ("canary-path", secret, new):
        assert text not in str(events)


async def test_a_changed_secret_leaves_no_webhook_behind(world: Notified, settings: ControlSettings) -> None:
    channel_id, secret = await world.add("https://hooks.example.com/path", "policy.published")
    assert settings.secrets is not None
    former, new = settings.secrets.kms, key_of(b"n" * 32)
    for keys in ((new, *former.keys), (new,)):
        secrets = msgspec.structs.replace(settings.secrets, kms=Ring(keys))
        console = Console(msgspec.structs.replace(settings, secrets=secrets), world.console.store)
        await seal_webhooks_anew(console)
        held = await world.channel(channel_id)
        assert url_of(console, world.world.org, held) == "https://hooks.example.com/path"
        assert [each.text for each in secrets_of(console, world.world.org, held)] == [secret]


async def of(world: Notified, channel_id: str) -> Call:
    call = await world.world.call("Agnes")
    return Call(
        world.console, call.incoming, {"channel": channel_id}, person=call.person, session=call.session,
        membership=call.membership, memberships=call.memberships,
    )  # fmt: skip


async def probe(world: Notified, channel_id: str) -> None:
    await manage.test(await of(world, channel_id))
