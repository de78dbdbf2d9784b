"""The service manager's notification protocol, without a dependency: sd_notify(3), sd_watchdog_enabled(3).

One datagram to `$NOTIFY_SOCKET` per message. Without that variable every call does nothing, whatever the transport."""

import contextlib
import os
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import trio

STATUS_S: Final = 2.0
_SEND_S: Final = 0.2  # the manager's queue is deep; a manager that is stuck must not hold the loop


class ServiceManager:
    """`environ` is read once; what this process sends is for `NotifyAccess=main`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self.listens = self._address is not None
        self.watchdog_s = _watchdog_s(environ)
        """How often the manager wants to hear WATCHDOG=1; None: it does not watch this process."""

    def ready(self, status: str) -> None:
        """Started, or done reloading."""
        self._send("READY=1", f"STATUS={_line(status)}")

    def reloading(self) -> None:
        """A reload begins; `ready` must follow, whether it worked or not, or `systemctl reload` hangs."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self, within_s: float | None = None) -> None:
        """Stopping has begun; `within_s` asks for that much time where the unit's TimeoutStopSec= is shorter."""
        more = () if within_s is None else (f"EXTEND_TIMEOUT_USEC={round(within_s * 1_000_000)}",)
        self._send("STOPPING=1", *more)

    def status(self, status: str) -> None:
        """Sends the line that `systemctl status` shows."""
        self._send(f"STATUS={_line(status)}")

    def watchdog(self) -> None:
        """Feeds the watchdog once."""
        self._send("WATCHDOG=1")

    def _send(self, *assignments: str) -> None:
        if self._address is None:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notify:
            notify.settimeout(_SEND_S)
            with contextlib.suppress(OSError):  # gatewayd serves on when the manager does not listen
                notify.sendto("\n".join(assignments).encode(errors="backslashreplace"), self._address)


async def feed_watchdog(
    manager: ServiceManager,
    answers: Callable[[], Awaitable[None]],
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """The service: twice in each watchdog period it awaits `answers()` and then feeds the watchdog, so that a stuck audit writer
    or a stuck loop trips it. Ends at once without a watchdog."""
    task_status.started()
    if manager.watchdog_s is None:
        return
    while True:
        due = trio.current_time() + manager.watchdog_s / 2
        await answers()
        manager.watchdog()
        await trio.sleep_until(due)


async def keep_status(
    manager: ServiceManager,
    status: Callable[[], str],
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """The service: sends the status line after a change; checks every few seconds. Ends at once without a manager."""
    told = status()
    task_status.started()
    while manager.listens:
        await trio.sleep(STATUS_S)
        if (now := status()) != told:
            told = now
            manager.status(now)


def _address(named: str) -> str | None:
    if named.startswith("@"):
        return "\0" + named[1:]  # the abstract namespace
    return named if named.startswith("/") else None


def _watchdog_s(environ: Mapping[str, str]) -> float | None:
    pid = environ.get("WATCHDOG_PID", "")
    if pid and pid != str(os.getpid()):
        return None  # meant for the parent process
    period = environ.get("WATCHDOG_USEC", "")
    return int(period) / 1_000_000 if period.isascii() and period.isdigit() and int(period) > 0 else None


def _line(status: str) -> str:
    return " ".join(status.split())
