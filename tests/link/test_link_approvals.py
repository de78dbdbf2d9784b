"""Approvals over the link: a write waits for a signed verdict about exactly itself."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gatewayd.approvals.messages import GateAsk
from gatewayd.link.formats.requests import ReadRequest, read_body
from gatewayd.link.formats.verdicts import ApprovalVerdict, grant_sha256, sign_verdict
from tests.conftest import Postgres
from tests.link.link_rig import SHOP, linked
from tests.link.stand_in import Answer, Gateway, StandIn, listening

HELD = """
databases:
  - name: shop
    table_access: {default: read_write}
    approvals: {writes: true, hold_s: 5, preview: false}
"""


@pytest.fixture
def shop(postgres: Postgres) -> str:
    return postgres.create_database(SHOP)


def answering(control: StandIn, change: Callable[[ApprovalVerdict], ApprovalVerdict]) -> Callable[[Gateway, ReadRequest], Answer]:
    def handle(gateway: Gateway, found: ReadRequest) -> Answer:
        ask = read_body(found.request.body, GateAsk)
        grant = grant_sha256(sql=ask.sql, intent=ask.intent or "", database=ask.database, token_id=ask.mcp_token_id)
        verdict = ApprovalVerdict(gateway.id, found.digest, ask.query_id, grant, "approved", control.now_ms(), by="Ada")
        return 200, sign_verdict(change(verdict), [control.working])

    return handle


def test_a_write_runs_on_a_verdict_about_itself_and_on_no_other(shop: str, tmp_path: Path, free_port: int) -> None:
    from msgspec.structs import replace

    control = StandIn()
    with listening(control) as listener, linked(listener, shop, tmp_path, free_port) as gateway:
        control.publish(HELD)
        gateway.wait_until_ready()
        delete = "DELETE FROM orders WHERE id = {}"
        wrong: list[Callable[[ApprovalVerdict], ApprovalVerdict]] = [
            lambda verdict: replace(verdict, grant="00" * 32),
            lambda verdict: replace(verdict, query_id="another"),
            lambda verdict: replace(verdict, request="00" * 32),
            lambda verdict: replace(verdict, gateway="another"),
            lambda verdict: replace(verdict, status="executed"),
        ]
        for change in wrong:
            control.handlers["approval"] = answering(control, change)
            answer = gateway.query(delete.format(1))
            assert answer["status"] == "approval_unavailable"
        control.handlers["approval"] = answering(control, lambda verdict: replace(verdict, status="denied", note="not today"))
        denied = gateway.query(delete.format(1))
        assert denied["policy_rule"] == "approval_denied"
        assert "not today" in denied["reason"]
        assert gateway.query("SELECT count(*) FROM orders")["rows"] == [{"count": 20}]
        control.handlers["approval"] = answering(control, lambda verdict: verdict)
        assert gateway.query(delete.format(2))["rowCount"] == 1
        assert gateway.query("SELECT count(*) FROM orders")["rows"] == [{"count": 19}]
        gateway.running.stop()
