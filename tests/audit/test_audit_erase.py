"""What is erased is in no byte of the file any more, and everything that was proved before still is."""

import contextlib
import json
import random
import sqlite3
from pathlib import Path

import msgspec
import pytest
import trio

from gatewayd.audit.erasing import choice_of, reason_of_erasure
from gatewayd.audit.pace import Pace
from gatewayd.audit.proof import check_proof
from gatewayd.audit.service import AuditUnavailable, open_audit
from gatewayd.keys.identity import load_identity, verifier_of
from gatewayd.keys.note import VerifierKey
from gatewayd.operators.audit_pull import audit_routes
from gatewayd.operators.guard import Guard
from tests.audit.audit_calls import Calls, rows_of
from tests.audit.recorded import faults_of, verdict_of
from tests.http.operators_served import BEARER, TOKEN, serving

SECRET = "canary-4711"


def bytes_of(path: str) -> bytes:
    return b"".join(each.read_bytes() for each in sorted(Path(path).parent.iterdir()) if each.is_file())


def trusted(path: str) -> list[VerifierKey]:
    identity = load_identity(str(Path(path).parent))
    assert identity is not None
    return [verifier_of(identity)]


async def test_what_is_erased_is_in_no_byte_and_all_proofs_hold(path: str, calls: Calls) -> None:
    draw = random.Random(1)
    async with open_audit(path) as audit:
        secret: list[str] = []
        for number in range(120):
            is_secret = draw.random() < 0.4
            name = f"{SECRET}-{number}" if is_secret else f"person-{number}"
            long = "x" * draw.choice([0, 10, 3000, 9000])  # over several pages too
            permit = await calls.whole(audit, f"SELECT '{name}{long}'")
            secret += [permit.query_id] if is_secret else []
        first = (await audit.proof(secret[0]), await audit.head())
        page = [row async for row in audit.page("0", 40)]
        cursor = json.loads(b"".join(page))["rows"][-1]["id"]
        assert await audit.delete_before(cursor) == 40
        assert SECRET.encode() in bytes_of(path)
        for start in range(0, len(secret), 20):
            await audit.erase(choice_of(secret[start : start + 20], None, None), "asked for by the person")
        assert SECRET.encode() not in bytes_of(path)
        assert await audit.erase(choice_of(secret[:20], None, None), "again") == 0
        later = await audit.proof(secret[-1])
        kept = await calls.whole(audit, "SELECT 'kept'")
        await audit.proof(kept.query_id)
    keys = trusted(path)
    assert SECRET.encode() not in bytes_of(path)
    assert not faults_of(Path(path), keys, [(first[1] or "", "the journal")])
    assert any("erased" in finding.what for finding in verdict_of(Path(path), keys).findings)
    assert SECRET in str(check_proof(first[0], keys)[0].row)
    (attempted, *_) = check_proof(later, keys)
    assert attempted.is_erased
    assert json.loads(attempted.row["payload"])["sql_raw"] == ""


async def test_an_erasure_by_hand_is_found(path: str, calls: Calls) -> None:
    async with open_audit(path) as audit:
        permit = await calls.whole(audit)
        await audit.erase(choice_of([permit.query_id], None, None), "asked for")
    keys = trusted(path)
    assert not faults_of(Path(path), keys)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute('UPDATE audit_events SET payload = replace(payload, \'"sql_raw":""\', \'"sql_raw":"x"\')')
    assert any("not as an erasure leaves them" in found for found in faults_of(Path(path), keys))


async def test_by_agent_and_before_an_id(path: str, calls: Calls) -> None:
    async with open_audit(path) as audit:
        first = await calls.whole(audit, "SELECT 'a'")
        second = await calls.whole(audit, "SELECT 'b'")
        assert await audit.erase(choice_of([], "nobody", None), "asked for") == 0
        assert await audit.erase(choice_of([], "claude-code", second.audit_id), "old") == 4  # three of a, one of b
        assert await audit.erase(choice_of([], "claude-code", None), "all") == 2
        assert first.query_id != second.query_id
    assert b"SELECT 'a'" not in bytes_of(path)


async def test_a_reader_that_keeps_the_log_is_waited_for_and_then_told_of(path: str, calls: Calls) -> None:
    async with open_audit(path, pace=Pace(empty_log_s=0.3)) as audit:
        permit = await calls.whole(audit, f"SELECT '{SECRET}'")
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM audit_events").fetchone()
        with pytest.raises(AuditUnavailable, match="a reader keeps the write-ahead log"):
            await audit.erase(choice_of([permit.query_id], None, None), "asked for")
        reader.close()
        await calls.whole(audit)
    assert SECRET.encode() not in bytes_of(path)


async def test_cancelled_midway_what_was_erased_is_gone_and_recorded(path: str, calls: Calls) -> None:
    async with open_audit(path) as audit:
        for number in range(200):
            await calls.whole(audit, f"SELECT '{SECRET}-{number:03}'")
        for passes in (30, 45, 60):
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(audit.erase, choice_of([], "claude-code", None), "all")
                    for _ in range(passes):
                        await trio.lowlevel.checkpoint()
                    scope.cancel()
            kept = bytes_of(path)
            attempted = [msgspec.json.decode(row.payload) for row in rows_of(path) if row.event_type == "ATTEMPTED"]
            for number, payload in enumerate(attempted):
                assert (f"{SECRET}-{number:03}".encode() in kept) == bool(payload["sql_raw"])
    assert not faults_of(Path(path), trusted(path))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"reason": "r"}, "expected at least one"),
        ({"reason": "", "agent": "a"}, "reason: found 0 characters"),
        ({"reason": "r", "query_ids": ["x"]}, "query_ids: found 'x'"),
        ({"reason": "r", "before": "x"}, "before: found 'x'"),
        ({"agent": "a"}, "reason"),
        ({"reason": "r", "agent": "a", "all": True}, "all"),
    ],
)
async def test_the_route_says_what_is_wrong(path: str, body: object, said: str) -> None:
    async with open_audit(path) as audit, serving([audit_routes(audit, Guard(TOKEN), erasable=True)]) as client:
        answer = await client.post("/audit/erase", json=body, headers=BEARER)
        assert (answer.status_code, said in answer.json()["error"]) == (400, True)


async def test_the_routes_of_heads_proofs_and_erasing(path: str, calls: Calls) -> None:
    async with open_audit(path) as audit:
        async with serving([audit_routes(audit, Guard(TOKEN))]) as client:
            assert (await client.get("/audit/checkpoint", headers=BEARER)).status_code == 404
            permit = await calls.whole(audit, f"SELECT '{SECRET}'")
            head = await client.get("/audit/checkpoint", headers=BEARER)
            assert head.text == await audit.head()
            proof = await client.get(f"/audit/proof/{permit.audit_id.lower()}", headers=BEARER)
            assert proof.headers["content-type"].startswith("text/plain")
            assert [row.row["event_type"] for row in check_proof(proof.text, trusted(path))][:2] == ["ATTEMPTED", "DECIDED"]
            assert (await client.get("/audit/proof/7ZZZZZZZZZZZZZZZZZZZZZZZZZ", headers=BEARER)).status_code == 404
            assert (await client.get("/audit/proof/x", headers=BEARER)).status_code == 400
            for route in ("/audit/checkpoint", f"/audit/proof/{permit.audit_id}"):
                assert (await client.get(route)).status_code == 401
            refused = await client.post("/audit/erase", json={"reason": "r", "agent": "claude-code"}, headers=BEARER)
            assert (refused.status_code, "GATEWAY_AUDIT_ERASABLE=1" in refused.json()["error"]) == (403, True)
        async with serving([audit_routes(audit, Guard(TOKEN), erasable=True)]) as client:
            erased = await client.post("/audit/erase", json={"reason": "r", "query_ids": [permit.query_id]}, headers=BEARER)
            assert erased.json() == {"erased": 3}
            rows = (await client.get("/audit/since/0", headers=BEARER)).json()["rows"]
            assert rows[0]["payload"] == {"erased": True, "sql_fingerprint": "0123456789abcdef", "sql_raw": ""}
            assert rows[0]["agent_intent"] == ""
            assert (rows[-1]["event_type"], rows[-1]["payload"]) == ("ERASED", {"reason": "r", "seqs": [[1, 3]]})
            assert [row["seq"] for row in rows] == [1, 2, 3, 4]


def test_a_reason_is_one_line_of_some_length() -> None:
    assert reason_of_erasure("  asked\nfor ") == "asked for"
    for wrong in ("", " \n", "x" * 513, "\ud800"):
        with pytest.raises(ValueError, match="reason: found"):
            reason_of_erasure(wrong)
