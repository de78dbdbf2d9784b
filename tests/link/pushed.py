"""The audit push before answers of a test's choice."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from gatewayd.audit.events import Agent, Event, PolicyReloaded, Query, QueryId
from gatewayd.audit.ids import new_ulid
from gatewayd.audit.service import Audit, open_audit
from gatewayd.keys.ed25519 import SigningKey
from gatewayd.link.client import ControlAnswer, LinkClock, Unreachable
from gatewayd.link.formats.answers import TreeHead
from gatewayd.link.formats.bundle import AuditTerms
from gatewayd.link.formats.documents import read
from gatewayd.link.formats.requests import LinkRequest, RequestKind, SentRequest, sign_request
from gatewayd.link.formats.trust import Trust
from gatewayd.link.push import Push
from tests.link.stand_in import Answer, Gateway, StandIn, told

IDENTITY = SigningKey(b"\7" * 32)
Change = Callable[[Answer], Answer]


class Between:
    """What stands in the place of the network: the stand-in answers, and `change` may answer something else."""

    def __init__(self) -> None:
        self.control = StandIn()
        self.clock = LinkClock()
        self.gateway = "01JGATEWAY0000000000000000"
        self.sent: list[LinkRequest] = []
        self.change: Change = lambda answer: answer
        self.terms = AuditTerms()
        self._n = 0
        self.control.gateways[self.gateway] = Gateway(self.gateway, IDENTITY.public, self.control.project)

    @property
    def trust(self) -> Trust:
        from gatewayd.keys.envelope import parse

        return read(parse(self.control.trusts[-1]).payload, Trust)

    def numbered(self, kind: RequestKind, body: msgspec.Struct) -> SentRequest:
        self._n += 1
        raw = msgspec.Raw(msgspec.json.encode(body))
        now_ms = self.clock.now_ms()
        return sign_request(LinkRequest("https://control.example.com", self.gateway, kind, "run", self._n, now_ms, raw), IDENTITY)

    async def send(self, sent: SentRequest, within_s: float, trust: Trust) -> ControlAnswer:
        await trio.lowlevel.checkpoint()
        self.sent.append(sent.request)
        status, data = self.change(self.control.handle("/link/v1/audit", sent.data))
        if status == 429 or status >= 500:
            raise Unreachable(f"answered status {status}", status=status, retry_after_s=5.0 if status == 429 else None)
        return ControlAnswer(status, data, sent)

    def push(self, audit: Audit) -> Push:
        return Push(self, audit, lambda: self.trust, lambda: self.terms)  # type: ignore[arg-type]  # all that it uses is here


async def record(audit: Audit, rows: int) -> None:
    for _ in range(rows):
        query = Query(QueryId(new_ulid(1, lambda size: bytes(size))), "shop", Agent(), None)
        await audit.reloaded([Event(query, 1, PolicyReloaded("bundle", None, (), ("shop",), {}, {}))])


@asynccontextmanager
async def pushing(between: Between, folder: Path, held: TreeHead | None = None) -> AsyncIterator[Audit]:
    async with open_audit(str(folder / "audit.db")) as audit, trio.open_nursery() as nursery:
        nursery.start_soon(between.push(audit).run, lambda: held)
        yield audit
        nursery.cancel_scope.cancel()


async def until(holds: Callable[[], bool]) -> None:
    with trio.fail_after(100_000):
        while not holds():  # noqa: ASYNC110 - the other side has no event
            await trio.sleep(30)  # of a clock that jumps


def messages(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [line for line in told(capfd.readouterr().err) if line["level"] != "debug" and line["msg"] != "audit checkpoint"]
