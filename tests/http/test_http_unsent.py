"""The budget of unread answers, on real sockets: who has taken nothing for longest goes, whoever reads gets all of it."""

import trio
import trio.testing

from gatewayd.config.bounds import HttpBounds
from gatewayd.fairness.unsent_budget import UnsentBudget
from tests.http.served import read_answer, served

LARGE = 30_000_000  # what its application answers on /large


async def test_the_one_that_took_nothing_for_longest_is_dropped() -> None:
    unsent = UnsentBudget(10)
    waits = [trio.CancelScope() for _ in range(4)]
    unsent.begin(waits[0], 4)
    unsent.begin(waits[1], 4)
    unsent.end(waits[0])  # it took something, and waits again
    unsent.begin(waits[0], 2)
    unsent.begin(waits[2], 8)
    assert [wait.cancel_called for wait in waits] == [False, True, False, False]
    unsent.end(waits[1])
    unsent.begin(waits[3], 11)  # more than there is for all of them
    assert [wait.cancel_called for wait in waits] == [True] * 4
    for wait in waits:
        unsent.end(wait)
    unsent.begin(trio.CancelScope(), 10)


async def test_a_client_that_reads_gets_its_answer_while_others_do_not_read() -> None:
    async with served(HttpBounds(unsent_bytes=2 * LARGE + 1)) as serving:

        def unsent_clients() -> int:
            return serving.server.statistics().unsent.clients

        streams = [await serving.connect() for _ in range(5)]
        for number, stream in enumerate(streams):
            await stream.send_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
            with trio.fail_after(30):
                while serving.app.paths.count("/large") <= number or unsent_clients() < min(number + 1, 2):
                    await trio.testing.wait_all_tasks_blocked(0.01)
        assert unsent_clients() == 2
        assert await read_answer(streams[4]) == (200, b"x" * LARGE)
        await streams[3].aclose()
        with trio.fail_after(30):
            while unsent_clients():
                await trio.testing.wait_all_tasks_blocked(0.01)
        for stream in streams:
            await stream.aclose()
        await serving.hello()
