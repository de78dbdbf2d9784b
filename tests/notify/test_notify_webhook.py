"""The deny webhook against receivers that work, and ones that are down, slow, redirecting, failing or deaf (decision 8)."""

from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio
import trio.testing

from gatewayd.audit.events import Agent, Query, QueryId
from gatewayd.config.bounds import SenderBounds
from gatewayd.notify.webhook import DenyWebhook
from gatewayd.policy.decide.outcomes import Denied, PolicyRule
from tests.notify.receiver import Answer, endless_body, receiving, silence, status

OK = status("204 No Content")
PATIENT = SenderBounds(post_s=300)
"""No post fails because the machine is slow."""
QUERY = Query(QueryId("01ARYZ6S41TSV4RRFFQ69G5FAV"), "shop", Agent("claude", "1.2", "01ARYZ6S41TSV4RRFFQ69G5FAW"), "tidy up")


def deny(hook: DenyWebhook, sql: str = "DELETE FROM users", rule: PolicyRule = "table_access") -> None:
    hook.denied(QUERY, "01ARYZ6S41TSV4RRFFQ69G5FAX", Denied(rule, "no", "DELETE", ("public.users",)), sql)


@asynccontextmanager
async def running(
    url: str, rules: Collection[str] | None = None, bounds: SenderBounds = PATIENT
) -> AsyncGenerator[DenyWebhook, None]:
    hook = DenyWebhook(url, rules, "9.9.9", lambda: 1_700_000_000_000, bounds)
    async with trio.open_nursery() as nursery:
        await nursery.start(hook.run)
        yield hook
        nursery.cancel_scope.cancel()


async def until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(120):
        while not condition():
            await trio.lowlevel.checkpoint()


def messages(text: str) -> list[str]:
    return [msgspec.json.decode(line)["msg"] for line in text.splitlines()]


async def test_a_denial_arrives_as_specified() -> None:
    async with receiving(OK) as receiver, running(receiver.url) as hook:
        deny(hook)
        await receiver.received(1)
        await until(lambda: hook.statistics().delivered == 1)
    head, body = receiver.requests[0]
    assert body == {
        "event": "denial",
        "schema_version": 3,
        "ts": 1_700_000_000_000,
        "query_id": "01ARYZ6S41TSV4RRFFQ69G5FAV",
        "audit_id": "01ARYZ6S41TSV4RRFFQ69G5FAX",
        "tenant_id": "__self_host__",
        "agent_name": "claude",
        "agent_version": "1.2",
        "agent_intent": "tidy up",
        "mcp_token_id": "01ARYZ6S41TSV4RRFFQ69G5FAW",
        "policy_rule": "table_access",
        "reason": "no",
        "statement_type": "DELETE",
        "tables_touched": ["public.users"],
        "sql_preview": "DELETE FROM users",
        "sql_truncated": False,
    }
    assert head.method == b"POST"
    headers = dict(head.headers)
    assert (headers[b"content-type"], headers[b"user-agent"]) == (b"application/json", b"gatewayd/9.9.9")


async def test_what_is_unknown_is_null_and_not_left_out() -> None:
    async with receiving(OK) as receiver, running(receiver.url) as hook:
        hook.denied(Query(QueryId("Q"), "shop", Agent(), None), "A", Denied("parse_error", "\ud800"), "\udfff")
        await receiver.received(1)
    body = receiver.requests[0][1]
    assert [body[key] for key in ("agent_name", "agent_version", "agent_intent", "mcp_token_id", "statement_type")] == [None] * 5
    assert (body["tables_touched"], body["reason"], body["sql_preview"]) == ([], "\\ud800", "\\udfff")


@pytest.mark.parametrize(("length", "truncated"), [(1024, False), (1025, True)])
async def test_the_preview_is_cut_at_1024_characters(length: int, truncated: bool) -> None:
    async with receiving(OK) as receiver, running(receiver.url) as hook:
        deny(hook, "é" * length)
        await receiver.received(1)
    body = receiver.requests[0][1]
    assert (body["sql_preview"], body["sql_truncated"]) == ("é" * 1024, truncated)


async def test_only_listed_rules_fire() -> None:
    async with receiving(OK) as receiver, running(receiver.url, {"parse_error"}) as hook:
        deny(hook, rule="table_access")
        deny(hook, rule="parse_error")
        await receiver.received(1)
    assert [body["policy_rule"] for _, body in receiver.requests] == ["parse_error"]


@pytest.mark.parametrize("answer", [status("500 Oops"), status("404 Not Found"), status("302 Found", "Location: /elsewhere\r\n")])
async def test_an_unwelcome_answer_is_neither_retried_nor_followed(answer: Answer, capfd: pytest.CaptureFixture[str]) -> None:
    async with receiving(answer) as receiver, running(receiver.url) as hook:
        deny(hook)
        deny(hook)
        await until(lambda: hook.statistics().failed == 2)
        receiver.answer = OK
        deny(hook)
        await until(lambda: hook.statistics().delivered == 1)
    assert len(receiver.requests) == 3
    text = capfd.readouterr().err
    assert messages(text) == ["deny webhook failed", "deny webhook delivered again"]
    assert "canary" not in text


async def test_a_receiver_that_is_down_costs_nothing_but_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    async with running(f"http://127.0.0.1:{port}/path-canary") as hook:
        deny(hook)
        await until(lambda: hook.statistics().failed == 1)
    text = capfd.readouterr().err
    assert messages(text) == ["deny webhook failed"]
    assert "canary" not in text


async def test_at_most_four_posts_are_in_flight_and_the_oldest_waiting_is_dropped(capfd: pytest.CaptureFixture[str]) -> None:
    release = trio.Event()

    async def answer(stream: trio.SocketStream) -> None:
        await release.wait()
        await OK(stream)

    async with receiving(answer) as receiver, running(receiver.url) as hook:
        for number in range(4):
            deny(hook, f"in flight {number}")
        await receiver.received(4)
        for number in range(300):
            deny(hook, f"waiting {number}")
        assert hook.statistics().queued == 256
        assert hook.statistics().dropped == 44
        assert receiver.most_at_once == 4
        release.set()
        await until(lambda: hook.statistics().delivered == 4 + 256)
    sent = {str(body["sql_preview"]) for _, body in receiver.requests}
    assert sent == {f"in flight {number}" for number in range(4)} | {f"waiting {number}" for number in range(44, 300)}
    dropped = [msgspec.json.decode(line) for line in capfd.readouterr().err.splitlines()]
    assert [(line["msg"], line["count"]) for line in dropped] == [("deny webhook dropped", 44)]


async def test_a_receiver_that_does_not_answer_is_left_after_the_timeout() -> None:
    async with receiving(silence) as receiver, running(receiver.url, bounds=SenderBounds(post_s=0.05)) as hook:
        deny(hook)
        await until(lambda: hook.statistics().failed == 1)


async def test_a_status_counts_although_the_body_never_ends() -> None:
    async with receiving(endless_body) as receiver, running(receiver.url) as hook:
        deny(hook)
        await until(lambda: hook.statistics().delivered == 1)


async def test_what_is_queued_at_the_end_is_still_sent() -> None:
    async with receiving(OK) as receiver:
        async with running(receiver.url, bounds=SenderBounds(post_s=300, last_s=120)) as hook:
            for _ in range(50):
                deny(hook)
        assert len(receiver.requests) == 50
        deny(hook)  # after the end: counted, nothing raised
        assert hook.statistics().dropped == 1


async def test_the_end_waits_no_longer_than_its_last_second_for_a_receiver_that_does_not_answer() -> None:
    async with receiving(silence) as receiver:
        with trio.fail_after(120):  # a post would take 300 s
            async with running(receiver.url, bounds=SenderBounds(post_s=300, last_s=0.05)) as hook:
                for _ in range(10):
                    deny(hook)
                await receiver.received(4)
        assert len(receiver.requests) == 4


async def test_drops_are_logged_once_a_minute_with_their_count(
    mock_clock: trio.testing.MockClock, capfd: pytest.CaptureFixture[str]
) -> None:
    def counts() -> list[int]:
        return [msgspec.json.decode(line)["count"] for line in capfd.readouterr().err.splitlines()]

    async with receiving(silence) as receiver, running(receiver.url, bounds=SenderBounds(post_s=300, last_s=0)) as hook:
        for _ in range(4):
            deny(hook)
        await receiver.received(4)
        for _ in range(256 + 3):
            deny(hook)
        await trio.testing.wait_all_tasks_blocked()
        assert counts() == [3]
        for _ in range(5):
            deny(hook)
            mock_clock.jump(10)
            await trio.testing.wait_all_tasks_blocked()
        assert counts() == []
        mock_clock.jump(10)
        await trio.testing.wait_all_tasks_blocked()
        assert counts() == [5]
