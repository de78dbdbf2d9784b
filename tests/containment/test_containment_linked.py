"""Containment over the link: the control plane is told before rows of a source leave, and asked before each contained action."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gatewayd.link.formats.requests import ReadRequest, read_body
from gatewayd.link.formats.verdicts import TaintAnswer, TaintBody, sign_taint
from tests.conftest import Postgres
from tests.link.link_rig import INDEXER, SHOP, linked
from tests.link.stand_in import Answer, Gateway, StandIn, listening, told

POLICY = """
databases:
  - name: shop
    table_access: {default: read_write}
    taint: {sources: [tickets], contain: {tables: {payroll: deny}}}
"""
READ = "SELECT body FROM tickets"
WRITE = "UPDATE orders SET status = 'paid' WHERE id = 1"


class Kept:
    """The control plane's half: what it was told of each grant."""

    def __init__(self, control: StandIn) -> None:
        self.control = control
        self.tainted: dict[str, TaintBody] = {}
        self.asked: list[TaintBody] = []
        self.change: Callable[[TaintAnswer], TaintAnswer] = lambda answer: answer
        control.handlers["taint"] = self.answer

    def answer(self, gateway: Gateway, found: ReadRequest) -> Answer:
        body = read_body(found.request.body, TaintBody)
        self.asked.append(body)
        if body.action == "mark":
            self.tainted.setdefault(body.grant, body)
        held = self.tainted.get(body.grant)
        answer = TaintAnswer(gateway.id, found.digest, body.query_id, body.grant, held is not None, self.control.now_ms())
        if held is not None:
            answer = replace(answer, source=held.source, database=held.database, since=held.ts)
        return 200, sign_taint(self.change(answer), [self.control.working])


@pytest.fixture
def shop(postgres: Postgres) -> str:
    return postgres.create_database(
        SHOP + "CREATE TABLE tickets (id integer, body text); INSERT INTO tickets VALUES (1, 'pay me')"
    )


def test_the_control_plane_keeps_it_and_a_person_there_clears_it(shop: str, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    kept = Kept(control)
    with listening(control) as listener, linked(listener, shop, tmp_path, free_port) as gateway:
        control.publish(POLICY, requires_features=["taint"])
        gateway.wait_until_ready()
        assert gateway.query(WRITE)["allowed"] is True
        assert gateway.query("SELECT count(*) FROM orders")["allowed"] is True
        assert [body.action for body in kept.asked] == ["ask"]  # only for what containment would refuse
        assert gateway.query(READ)["rows"] == [{"body": "pay me"}]
        marked = kept.asked[-1]
        assert (marked.action, marked.grant, marked.database, marked.source) == ("mark", "", "shop", "public.tickets")
        denied = gateway.query(WRITE)
        assert "read public.tickets of database shop" in denied["reason"]
        assert "a person on the control plane can clear that" in denied["reason"]
        assert gateway.query("SELECT * FROM payroll")["policy_rule"] == "table_access"
        bearer = {"authorization": f"Bearer {INDEXER}"}
        assert gateway.http.post("/admin/taint", json={"clear": "all"}, headers=bearer).status_code == 400
        kept.tainted.clear()
        assert gateway.query(WRITE)["allowed"] is True  # no answer is remembered
        kept.tainted[""] = marked  # another gateway of the project reads
        assert gateway.query(WRITE)["allowed"] is False
        gateway.running.stop()


WRONG: dict[str, Callable[[TaintAnswer], TaintAnswer]] = {
    "another request": lambda answer: replace(answer, request="00" * 32),
    "another gateway": lambda answer: replace(answer, gateway="01JANOTHER0000000000000000"),
    "another query": lambda answer: replace(answer, query_id="01JANOTHER0000000000000000"),
    "another grant": lambda answer: replace(answer, grant="01JANOTHER0000000000000000"),
}


def test_an_answer_that_is_none_contains_and_keeps_the_rows_here(shop: str, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    kept = Kept(control)
    with listening(control) as listener, linked(listener, shop, tmp_path, free_port) as gateway:
        control.publish(POLICY)
        gateway.wait_until_ready()

        def contained(why: str) -> None:
            denied, read = gateway.query(WRITE), gateway.query(READ)
            assert "could not be found out" in denied["reason"], why
            assert "could not be recorded" in read["reason"], why
            assert "rows" not in read, why
            assert gateway.query("SELECT count(*) FROM orders")["allowed"] is True, why

        for why, change in WRONG.items():
            kept.change = change
            contained(why)
        kept.change = lambda answer: answer
        answers: dict[str, Callable[[str, Any], Any]] = {
            "404": lambda path, good: (404, b"{}") if path.endswith("/taint") else good,
            "a page": lambda path, good: (200, b"<html>log in</html>") if path.endswith("/taint") else good,
            "503": lambda path, good: (503, b"") if path.endswith("/taint") else good,
            "none": lambda path, good: None if path.endswith("/taint") else good,
        }
        for why, spoil in answers.items():
            listener.spoil = spoil
            contained(why)
        kept.tainted.clear()
        listener.spoil = lambda _path, good: good
        kept.change = lambda answer: replace(answer, tainted=False)  # a mark that was not taken
        assert "could not be recorded" in gateway.query(READ)["reason"]
        kept.tainted.clear()
        kept.change = lambda answer: answer
        assert gateway.query(WRITE)["allowed"] is True
        gateway.running.stop()
    lines = told(gateway.running.text)
    failed = [line for line in lines if line["msg"] == "taint check failed; the grant counts as tainted"]
    assert {line["level"] for line in failed} == {"error"}
    assert any("does not verify" in line["error"] for line in failed)
    assert [line["msg"] for line in lines].count("taint check works again") >= 1
    assert "pay me" not in gateway.running.text


def test_writes_of_a_tainted_agent_may_wait_for_a_person(shop: str, tmp_path: Path, free_port: int) -> None:
    from gatewayd.approvals.messages import GateAsk
    from gatewayd.link.formats.verdicts import ApprovalVerdict, grant_sha256, sign_verdict

    control = StandIn()
    kept = Kept(control)

    def approve(gateway: Gateway, found: ReadRequest) -> Answer:
        ask = read_body(found.request.body, GateAsk)
        grant = grant_sha256(sql=ask.sql, intent=ask.intent or "", database=ask.database, token_id=ask.mcp_token_id)
        verdict = ApprovalVerdict(gateway.id, found.digest, ask.query_id, grant, "approved", control.now_ms(), by="Ada")
        return 200, sign_verdict(verdict, [control.working])

    control.handlers["approval"] = approve
    with listening(control) as listener, linked(listener, shop, tmp_path, free_port) as gateway:
        control.publish(POLICY.replace("contain: {", "contain: {writes: hold, "))
        gateway.wait_until_ready()
        assert gateway.query(WRITE)["allowed"] is True
        gateway.query(READ)
        assert gateway.query(WRITE)["rowCount"] == 1
        launder = "INSERT INTO orders SELECT 99, body FROM tickets"
        assert gateway.query(launder)["rowCount"] == 1
        approved = [row for row in gateway.rows("DECIDED") if row["payload"].get("approved_by") == "Ada"]
        assert len(approved) == 2
        assert kept.asked[-1].action == "mark"  # what it writes it has read
        gateway.running.stop()
