"""The deny webhook: one POST for each denial, without retries; no call ever waits for it (decision 8)."""

import time
from collections.abc import Callable, Collection
from typing import Final, Literal

import msgspec
import trio

from gatewayd import log
from gatewayd.audit.events import SCHEMA_VERSION, Query
from gatewayd.audit.rows import json_of
from gatewayd.config.bounds import SENDER_BOUNDS, SenderBounds
from gatewayd.notify.post import Poster, PostFailed
from gatewayd.policy.decide.outcomes import Denied

SQL_PREVIEW_CHARACTERS: Final = 1024


class Denial(msgspec.Struct, frozen=True, gc=False):
    """The payload, keys and order as specified; nothing is left out when null."""

    event: Literal["denial"]
    schema_version: int
    ts: int
    query_id: str
    audit_id: str
    tenant_id: str
    agent_name: str | None
    agent_version: str | None
    agent_intent: str | None
    mcp_token_id: str | None
    policy_rule: str
    reason: str
    statement_type: str | None
    tables_touched: tuple[str, ...]
    sql_preview: str
    sql_truncated: bool


class WebhookStatistics(msgspec.Struct, frozen=True):
    """Counts since the start, but `queued`, which is of now."""

    queued: int
    delivered: int  # answered 2xx
    failed: int  # anything else; not sent again
    dropped: int  # pushed out of a full queue


class DenyWebhook:
    """Make it, start `run`, call `denied`. `rules` None: every rule fires."""

    def __init__(
        self,
        url: str,
        rules: Collection[str] | None,
        version: str,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        bounds: SenderBounds = SENDER_BOUNDS,
    ) -> None:
        self._url = url
        self._rules = rules
        self._version = version
        self._clock_ms = clock_ms
        self._bounds = bounds
        # When it is full the oldest is dropped: the newest says more about what is happening now.
        self._send, self._receive = trio.open_memory_channel[Denial](bounds.queued)
        self._delivered = self._failed = self._dropped = self._dropped_logged = 0
        self._is_failing = False
        self._has_dropped = trio.Event()

    def denied(self, query: Query, audit_id: str, denied: Denied, sql: str) -> None:
        """Takes a denial whose DECIDED row is committed. Never waits and never fails; dropped after `run` has ended."""
        if self._rules is not None and denied.policy_rule not in self._rules:
            return
        denial = Denial(
            event="denial",
            schema_version=SCHEMA_VERSION,
            ts=self._clock_ms(),
            query_id=query.query_id,
            audit_id=audit_id,
            tenant_id=query.tenant_id,
            agent_name=query.agent.name,
            agent_version=query.agent.version,
            agent_intent=query.intent,
            mcp_token_id=query.agent.token_id,
            policy_rule=denied.policy_rule,
            reason=denied.reason,
            statement_type=denied.statement_type,
            tables_touched=denied.tables,
            sql_preview=sql[:SQL_PREVIEW_CHARACTERS],
            sql_truncated=len(sql) > SQL_PREVIEW_CHARACTERS,
        )
        try:
            self._send.send_nowait(denial)
        except trio.WouldBlock:
            self._receive.receive_nowait()
            self._send.send_nowait(denial)
            self._note_dropped()
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            self._note_dropped()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """The service. When cancelled it takes nothing more and sends what is queued for one last second."""
        async with trio.open_nursery() as nursery:
            senders = await nursery.start(self._send_all)
            nursery.start_soon(self._log_dropped)
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                self._send.close()
                senders.deadline = trio.current_time() + self._bounds.last_s

    def statistics(self) -> WebhookStatistics:
        """The counts now."""
        return WebhookStatistics(
            queued=self._receive.statistics().current_buffer_used,
            delivered=self._delivered,
            failed=self._failed,
            dropped=self._dropped,
        )

    async def _send_all(self, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
        with trio.CancelScope(shield=True) as scope:
            async with (
                self._receive,
                Poster(self._url, self._version, self._bounds.post_s) as poster,
                trio.open_nursery() as nursery,
            ):
                for _ in range(self._bounds.posts_in_flight):
                    nursery.start_soon(self._post_each, poster, self._receive.clone())
                task_status.started(scope)

    async def _post_each(self, poster: Poster, denials: trio.MemoryReceiveChannel[Denial]) -> None:
        async with denials:
            async for denial in denials:
                try:
                    await poster.post(json_of(denial))
                except PostFailed as failure:
                    self._failed += 1
                    if not self._is_failing:
                        self._is_failing = True
                        log.warning(log.DENY_WEBHOOK_FAILED, reason=failure.reason)
                else:
                    self._delivered += 1
                    if self._is_failing:
                        self._is_failing = False
                        log.info(log.DENY_WEBHOOK_DELIVERED)

    def _note_dropped(self) -> None:
        self._dropped += 1
        self._has_dropped.set()

    async def _log_dropped(self) -> None:
        while True:
            await self._has_dropped.wait()
            self._has_dropped = trio.Event()
            log.warning(log.DENY_WEBHOOK_DROPPED, count=self._dropped - self._dropped_logged)
            self._dropped_logged = self._dropped
            await trio.sleep(self._bounds.dropped_log_s)
