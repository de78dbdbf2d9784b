"""What must not leave: addresses and passwords of databases, tokens, salts; neither in the log nor in a byte that is sent."""

import hashlib
import re
from pathlib import Path

import pytest

from gatewayd.link.formats.agent_tokens import token_mac
from tests.conftest import Postgres
from tests.link.link_rig import INDEXER, SHOP, linked
from tests.link.stand_in import StandIn, listening

POLICY = """
databases:
  - name: shop
    table_access: {default: read, tables: {orders: read_write, payroll: deny}}
    column_masks: {orders: {status: consistent-hash}}
    approvals: {writes: true, hold_s: 0, preview: true}
    taint: {sources: [notes], contain: {writes: hold}}
"""
PASSWORD, SALT, TOKEN = "canary-password", "canary-salt-of-the-masks", "canary-token-of-an-agent"
PROXY = "canary-secret-of-the-proxy"
KEY = "5a" * 32
WITH_CONSTANTS = "SELECT 'canary-constant', 8675309 /* canary-comment */ FROM orders WHERE id = 8675309"


@pytest.mark.parametrize("statements", ["full", "redacted", "none"])
def test_no_secret_is_logged_or_sent(statements: str, postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    role = f"canary_{statements}"
    postgres.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
    schema = SHOP + f"CREATE TABLE notes (body text); GRANT ALL ON ALL TABLES IN SCHEMA public TO {role};"
    dsn = postgres.create_database(schema, user=role, password=PASSWORD, tcp=True)
    control = StandIn()
    enrolment: list[str] = []
    made = control.token

    def token() -> str:
        enrolment.append(made())
        return enrolment[-1]

    control.token = token  # type: ignore[method-assign]
    agent = {"id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "mac": token_mac(bytes.fromhex(KEY), TOKEN), "name": "an agent", "person": "Ada"}
    more = {"GATEWAY_MASK_SALT": SALT, "GATEWAY_PROXY_SECRET": PROXY, "GATEWAY_LOG_LEVEL": "debug"}
    with listening(control) as listener, linked(listener, dsn, tmp_path, free_port, **more) as gateway:
        agents = {"token_key": KEY, "tokens": [agent]}
        control.publish(POLICY, audit={"statements": statements}, agents=agents)
        gateway.wait_until_ready()
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert gateway.initialize(authorization="Bearer canary-of-nobody").status_code == 401
        intent = "canary-intent"
        for sql in (
            WITH_CONSTANTS,
            "SELECT 'canary-broken' FROM",
            "SELECT 1/0 + 'canary-failed'::int",
            "SELECT * FROM payroll WHERE amount = 8675309",
            "SELECT status FROM orders",
            "SELECT body FROM notes",
            "DELETE FROM orders WHERE id = 3",
        ):
            gateway.query(sql, intent, **bearer)
        gateway.http.get("/metrics", headers={"authorization": f"Bearer {INDEXER}"})
        gateway.http.post("/admin/policy", content=b"x: 1", headers={"authorization": "Bearer canary-of-an-operator"})
        control.wait_for_rows(lambda rows: sum(row.row["event_type"] == "ATTEMPTED" for row in rows) >= 6)
        gateway.running.stop()
        sent = b"\n".join([*control.seen_bodies, *control.seen_payloads(), *listener.heads])
    logged = gateway.running.text.encode()
    assert enrolment
    secret = re.compile(rb"gw_enrol_([0-9a-f]{32})").match(enrolment[0].encode())
    assert secret is not None
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    for canary in (PASSWORD, dsn, SALT, TOKEN, PROXY, INDEXER, KEY, role, digest, "canary-of-nobody", "canary-of-an-operator"):
        assert canary.encode() not in sent, canary
        assert canary.encode() not in logged, canary
    assert secret[1] not in logged
    assert sum(secret[1] in body for body in control.seen_payloads()) == 1  # enrolment itself
    for canary in ("canary-constant", "canary-comment", "canary-broken", "canary-failed", "canary-intent", "8675309"):
        assert canary.encode() not in logged, canary
        if statements != "full":
            rows = b"\n".join(body for body in control.seen_payloads() if b'"kind":"audit"' in body)
            assert canary.encode() not in rows, canary
    assert control.held()
