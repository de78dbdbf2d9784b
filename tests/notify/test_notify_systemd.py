"""Datagrams to a real socket, path and abstract, as the service manager would get them (sd_notify(3))."""

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from gatewayd.notify.systemd import ServiceManager, feed_watchdog

Received = Callable[[], list[str]]


@pytest.fixture(params=["path", "abstract"])
def manager_socket(request: pytest.FixtureRequest, short_folder: Callable[[], Path]) -> Iterator[tuple[str, Received]]:
    """$NOTIFY_SOCKET and what has come in there, each datagram's lines."""
    name = f"@gatewayd-test-{os.getpid()}" if request.param == "abstract" else str(short_folder() / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(name.replace("@", "\0", 1))
        receiver.setblocking(False)
        yield name, lambda: receiver.recv(4096).decode().split("\n")


def test_each_message_is_one_datagram(manager_socket: tuple[str, Received]) -> None:
    name, received = manager_socket
    manager = ServiceManager({"NOTIFY_SOCKET": name})
    manager.ready("enforcing, 2 databases")
    assert received() == ["READY=1", "STATUS=enforcing, 2 databases"]
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    manager.reloading()
    reloading, stamp = received()
    assert reloading == "RELOADING=1"
    assert before <= int(stamp.removeprefix("MONOTONIC_USEC=")) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    manager.status("one line\nREADY=1")
    assert received() == ["STATUS=one line READY=1"]
    manager.stopping()
    assert received() == ["STOPPING=1"]
    manager.stopping(1.5)
    assert received() == ["STOPPING=1", "EXTEND_TIMEOUT_USEC=1500000"]
    with pytest.raises(BlockingIOError):
        received()


@pytest.mark.parametrize("name", ["", "relative", "vsock:2:1", "/no/such/socket", "@gatewayd-nobody-listens"])
def test_without_a_manager_that_listens_nothing_happens(name: str) -> None:
    ServiceManager({"NOTIFY_SOCKET": name} if name else {}).ready("up")


def test_a_manager_that_is_stuck_does_not_hold_us(short_folder: Callable[[], Path]) -> None:
    name = str(short_folder() / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(name)
        sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sender.setblocking(False)
        with sender, contextlib.suppress(BlockingIOError):
            for _ in range(10_000):
                sender.sendto(b"x", name)
        ServiceManager({"NOTIFY_SOCKET": name}).stopping()


@pytest.mark.parametrize(
    ("environ", "watchdog_s"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_is_fed_only_when_it_watches_this_process(environ: dict[str, str], watchdog_s: float | None) -> None:
    assert ServiceManager(environ).watchdog_s == watchdog_s


async def test_the_watchdog_is_fed_twice_a_period_after_each_answer(
    manager_socket: tuple[str, Received], autojump_clock: trio.testing.MockClock
) -> None:
    name, received = manager_socket
    asked: list[float] = []

    async def answers() -> None:
        await trio.sleep(1)
        asked.append(trio.current_time())

    manager = ServiceManager({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "30000000"})
    with trio.move_on_after(32):
        async with trio.open_nursery() as nursery:
            began = trio.current_time()
            await nursery.start(feed_watchdog, manager, answers)
    assert [round(at - began) for at in asked] == [1, 16, 31]
    assert [received() for _ in asked] == [["WATCHDOG=1"]] * 3


async def test_a_writer_that_does_not_answer_starves_the_watchdog(
    manager_socket: tuple[str, Received], autojump_clock: trio.testing.MockClock
) -> None:
    name, received = manager_socket
    manager = ServiceManager({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "1000000"})
    with trio.move_on_after(60):
        await feed_watchdog(manager, trio.sleep_forever)
    with pytest.raises(BlockingIOError):
        received()


async def test_where_nobody_watches_the_service_ends_at_once() -> None:
    await feed_watchdog(ServiceManager({}), trio.sleep_forever)
