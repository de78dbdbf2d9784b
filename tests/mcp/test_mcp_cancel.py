"""Who may end a call, and what the others see: cancelled, deleted, gone, stopping, overloaded."""

import json
from typing import Any

import httpx
import pytest
import trio

from gatewayd.fairness.admission import CallLimits
from gatewayd.mcp import messages
from tests.mcp.mcp_rig import META, PATIENCE_S, Client, Rig, body_of, client_of, serving, text_of


async def call_into(answers: list[httpx.Response], client: Client, request: dict[str, Any]) -> None:
    answers.append(await client.post(request))


def cancelled(id_: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_, "reason": "enough"}}


async def test_a_cancelled_call_ends_and_its_post_is_answered(client: Client) -> None:
    await client.initialize()
    answers: list[httpx.Response] = []
    async with trio.open_nursery() as nursery:
        request = client.request("tools/call", {"name": "hang"})
        nursery.start_soon(call_into, answers, client, request)
        await client.rig.until(started=1)
        assert (await client.post(cancelled(str(request["id"])))).status_code == 202  # "2" is not 2
        assert (await client.post(cancelled(12345))).status_code == 202
        assert client.rig.cancelled == 0
        assert (await client.post(cancelled(request["id"]))).status_code == 202
    (answer,) = answers
    assert answer.status_code == 200
    assert body_of(answer)["error"]["code"] == messages.REQUEST_CANCELLED
    assert body_of(answer)["id"] == request["id"]
    assert client.rig.cancelled == 1
    assert (await client.post(cancelled(request["id"]))).status_code == 202
    assert text_of(await client.call("echo")) == "{}"


async def test_another_session_cannot_cancel(client: Client) -> None:
    async with client_of(client.rig) as other:
        await client.initialize()
        await other.initialize()
        answers: list[httpx.Response] = []
        async with trio.open_nursery() as nursery:
            request = client.request("tools/call", {"name": "hang"})
            nursery.start_soon(call_into, answers, client, request)
            await client.rig.until(started=1)
            await other.post(cancelled(request["id"]))
            assert text_of(await other.call("echo")) == "{}"
            assert client.rig.cancelled == 0
            await client.post(cancelled(request["id"]))


async def test_an_id_in_flight_is_refused(client: Client) -> None:
    await client.initialize()
    answers: list[httpx.Response] = []
    async with trio.open_nursery() as nursery:
        request = client.request("tools/call", {"name": "wait"})
        nursery.start_soon(call_into, answers, client, request)
        await client.rig.until(started=1)
        twin = await client.post(request)
        assert (twin.status_code, body_of(twin)["error"]["code"]) == (200, messages.INVALID_REQUEST)
        assert client.rig.started == 1
        client.rig.release.set()
    assert text_of(answers[0]) == "released"
    assert text_of(await client.post(request)) == "released"  # free again


async def test_delete_cancels_the_calls_of_its_session(client: Client) -> None:
    await client.initialize()
    answers: list[httpx.Response] = []
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(call_into, answers, client, client.request("tools/call", {"name": "hang"}))
        await client.rig.until(started=3)
        await client.http.delete(client.rig.url, headers={"mcp-session-id": client.session or ""})
        await client.rig.until(cancelled=3)
    assert [body_of(answer)["error"]["code"] for answer in answers] == [messages.REQUEST_CANCELLED] * 3


def raw_call(client: Client, name: str, *, stateless: bool) -> bytes:
    params: dict[str, Any] = {"name": name, "arguments": {}, **({"_meta": META} if stateless else {})}
    body = json.dumps(client.request("tools/call", params)).encode()
    era = (
        f"mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {name}\r\n"
        if stateless
        else f"mcp-session-id: {client.session}\r\n"
    )
    head = f"POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: */*\r\ncontent-type: application/json\r\n{era}"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize("leave", ["close", "reset", "behind another request"])
async def test_client_gone_is_cancelled_in_the_stateless_era(client: Client, leave: str) -> None:
    stream = await trio.open_tcp_stream("127.0.0.1", client.rig.port)
    await stream.send_all(raw_call(client, "hang", stateless=True))
    await client.rig.until(started=1)
    if leave == "behind another request":
        await stream.send_all(raw_call(client, "echo", stateless=True))
    elif leave == "reset":
        stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    await stream.aclose()
    await client.rig.until(cancelled=1)


async def test_client_gone_is_not_cancelled_in_the_handshake_era(client: Client) -> None:
    """Decision 5: only the stateless era takes leaving for cancelling."""
    await client.initialize()
    stream = await trio.open_tcp_stream("127.0.0.1", client.rig.port)
    await stream.send_all(raw_call(client, "wait", stateless=False))
    await client.rig.until(started=1)
    await stream.aclose()
    assert text_of(await client.call("echo")) == "{}"
    client.rig.release.set()
    await client.rig.until(finished=1)


async def test_stopping_refuses_new_calls_and_finishes_the_others() -> None:
    async with serving(Rig()) as rig, client_of(rig) as client:
        await client.initialize()
        answers: list[httpx.Response] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call_into, answers, client, client.request("tools/call", {"name": "wait"}))
            await rig.until(started=1)
            rig.mcp.drain()
            refused = body_of(await client.call("echo"))["result"]
            assert refused["isError"]
            assert json.loads(text_of({"result": refused}))["error"] == "shutting_down"
            client.session = None
            assert (await client.initialize()).status_code == 503
            rig.release.set()
        assert text_of(answers[0]) == "released"


async def test_what_outlasts_the_grace_is_cancelled() -> None:
    rig = Rig()
    async with serving(rig, grace_s=0.1), client_of(rig) as client:
        await client.initialize()

        async def call() -> None:
            with pytest.raises(httpx.TransportError):
                await client.call("hang")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await rig.until(started=1)
            rig.stop.set()
            await rig.until(cancelled=1)


async def test_too_many_calls_are_told_when_to_return() -> None:
    limits = CallLimits(running=2, waiting=2, waiting_per_caller=1)  # of two, a session leaves one to the others
    async with serving(Rig(limits=limits)) as rig, client_of(rig) as client:
        await client.initialize()
        answers: list[httpx.Response] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call_into, answers, client, client.request("tools/call", {"name": "wait"}))
            await rig.until(started=1)
            nursery.start_soon(call_into, answers, client, client.request("tools/call", {"name": "wait"}))
            with trio.fail_after(PATIENCE_S):
                while rig.dispatch.statistics().calls.waiting != 1:
                    await trio.lowlevel.checkpoint()
            refused = body_of(await client.call("wait"))["result"]
            reason = json.loads(text_of({"result": refused}))
            assert refused["isError"]
            assert (reason["allowed"], reason["error"], reason["retry_after_s"]) == (False, "too_many_calls", 1)
            async with client_of(rig) as other:  # another session has its own place
                await other.initialize()
                assert text_of(await other.call("echo")) == "{}"
            rig.release.set()
        assert [text_of(answer) for answer in answers] == ["released", "released"]
