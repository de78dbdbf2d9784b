"""Anonymous usage telemetry: what is counted, and when it is sent (decision 9).

The payload is the closed type in `usage.py`: it has no place for SQL, names, hosts or values. `settings.py` decides whether
telemetry is on at all."""

import os
import platform
import time
from pathlib import Path
from typing import Final, Literal

import trio

from gatewayd import log
from gatewayd.audit.ids import is_ulid, new_ulid
from gatewayd.audit.rows import json_of
from gatewayd.config.settings import McpTransport
from gatewayd.notify.post import Poster, PostFailed
from gatewayd.notify.usage import CountedCall, Counts, Report

_QUEUE: Final = 256
_SENT: Final = (
    "version, python, os, arch, transport, uptime, counts by tool, decision, rule, statement type and SQLSTATE class, latency"
)


class Telemetry:
    """Make it, start `run`, call `called`. `endpoint` None: nothing is sent anywhere. `debug`: payloads go to stderr instead."""

    def __init__(
        self,
        audit_path: str,
        endpoint: str | None,
        heartbeat_ms: int,
        transport: McpTransport,
        version: str,
        *,
        debug: bool = False,
    ) -> None:
        self._id_path = Path(audit_path).parent / "install-id"
        self._endpoint = endpoint
        self._heartbeat_s = heartbeat_ms / 1000
        self._transport: McpTransport = transport
        self._version = version
        self._debug = debug
        self._began = trio.current_time()
        self._counts = Counts()
        # When it is full the call is not counted; how often that happens is.
        self._send, self._receive = trio.open_memory_channel[CountedCall](_QUEUE)
        self.dropped = 0

    def called(self, call: CountedCall) -> None:
        """Counts one call. Never waits and never fails."""
        try:
            self._send.send_nowait(call)
        except (trio.WouldBlock, trio.ClosedResourceError, trio.BrokenResourceError):
            self.dropped += 1

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """The service: one startup report, then a heartbeat each interval. Failures to send are logged at level debug only."""
        async with self._send, self._receive:
            try:
                install_id, is_first_start = self._install_id()
            except OSError as failure:
                log.debug(log.TELEMETRY_NOTICE, note="no install id could be kept, nothing is sent", error=failure.strerror)
                task_status.started()
                return
            if is_first_start:
                log.info(log.TELEMETRY_NOTICE, sent=_SENT, switch_off="GATEWAY_TELEMETRY=0 or DO_NOT_TRACK=1")
            if self._endpoint is None and not self._debug:
                log.debug(log.TELEMETRY_NOTICE, note="no GATEWAY_TELEMETRY_ENDPOINT is set, nothing is sent")
                task_status.started()
                return
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._count)
                task_status.started()
                await self._report_always(install_id)

    async def _count(self) -> None:
        async for call in self._receive:
            self._counts.add(call)

    async def _report_always(self, install_id: str) -> None:
        event: Literal["startup", "heartbeat"] = "startup"
        while True:
            due = trio.current_time() + self._heartbeat_s
            await self._deliver(json_of(self._report(event, install_id)))
            event = "heartbeat"
            await trio.sleep_until(due)

    def _report(self, event: Literal["startup", "heartbeat"], install_id: str) -> Report:
        report = Report(
            event=event,
            install_id=install_id,
            version=self._version,
            python=platform.python_version(),
            os=platform.system(),
            arch=platform.machine(),
            transport=self._transport,
            uptime_s=int(trio.current_time() - self._began),
            usage=self._counts.taken(),
            uncounted=self.dropped,
        )
        self.dropped = 0
        return report

    async def _deliver(self, payload: bytes) -> None:
        if self._debug:
            os.write(2, payload + b"\n")
            return
        assert self._endpoint is not None
        try:
            async with Poster(self._endpoint, self._version) as poster:
                await poster.post(payload)
        except PostFailed as failure:
            log.debug(log.TELEMETRY_NOTICE, note="report not delivered", error=failure.reason)

    def _install_id(self) -> tuple[str, bool]:
        """The id of this installation, and whether it was made just now."""
        try:
            kept = self._id_path.read_text(encoding="ascii").strip()
        except (FileNotFoundError, UnicodeDecodeError):
            kept = ""
        if is_ulid(kept):
            return kept, False
        made = new_ulid(time.time_ns() // 1_000_000, os.urandom)
        self._id_path.write_text(made + "\n", encoding="ascii")
        return made, True
