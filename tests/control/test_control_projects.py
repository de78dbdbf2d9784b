"""Projects, databases, policies and tokens over the API, and the bundles that come of them, as a gateway would take them."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import trio

from gatewayd.config.credentials import Secret
from gatewayd.control.console import Console
from gatewayd.control.databases.database import OF_PROJECT, Database
from gatewayd.control.keyring.ring import Ring, key_of
from gatewayd.control.keyring.sealing import Unsealable, unseal
from gatewayd.control.policies.issue import NEWEST, BundleRow
from gatewayd.control.policies.publish import NotPublished, publishable
from gatewayd.control.settings import ControlSettings
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store
from gatewayd.control.tokens.text import checksum, is_token, token_text
from gatewayd.control.tokens.token import find_token
from gatewayd.control.trail.record import NEWEST as NEWEST_ACTS
from gatewayd.control.trail.record import Event
from gatewayd.control.trust.documents import TrustProblem, next_document, trust_in_force
from gatewayd.control.trust.signing import root_keys
from gatewayd.keys.envelope import parse
from gatewayd.link.formats import checks
from gatewayd.link.formats.agent_tokens import AgentTable
from gatewayd.link.formats.bundle import Bundle, Seen
from gatewayd.link.formats.documents import digest, read
from gatewayd.link.formats.trust import Trust, fingerprint_of, first_trust, walked
from tests.conftest import Postgres
from tests.control.api import Api, api, console_of_plane, project
from tests.control.browser import Browser

__all__ = ["api", "console_of_plane"]

SEALED = "postgresql://agent:very-secret-word@db.example.com/shop"


ORG_OF = Statement("SELECT org_id FROM projects WHERE project_id = $1")


async def newest(console: Console, project_id: str) -> tuple[Bundle, BundleRow, Trust]:
    """The newest bundle through a gateway's own checks, from the trust that enrolment would bring."""
    row = await console.store.row(BundleRow, NEWEST, project_id)
    assert row is not None
    document = await trust_in_force(console)
    trust = first_trust(document.envelope, fingerprint_of(root_keys(console.secrets.signing)[0].public))
    authentic = checks.authentic(row.envelope, trust, Seen(trust.issuer, project_id), console.now_ms())
    bundle = checks.enforceable(authentic)
    assert digest(parse(row.envelope).payload) == row.sha256.hex()
    return bundle, row, trust


async def test_a_new_project_enforces_read_only_and_lets_no_agent_in(api: Api, console_of_plane: Console) -> None:
    project_id = await project(api, "shop", "billing")
    bundle, row, _ = await newest(console_of_plane, project_id)
    assert (bundle.version, bundle.state, row.policy_version) == (1, "enforced", 1)
    assert bundle.agents is not None
    assert bundle.agents.tokens == ()
    assert "name: billing" in bundle.policy
    assert (await api("POST", "/projects", {"name": " shop "})).status_code == 409
    org = await console_of_plane.store.value(ORG_OF, project_id)
    acts = await console_of_plane.store.rows(Event, NEWEST_ACTS, org, 1 << 40, 2)
    assert [act.action for act in acts] == ["policy.published", "project.created"]
    assert [act.details for act in acts][1] == '{"name":"Shop"}'


async def test_each_change_is_the_next_bundle_and_names_the_one_before(api: Api, console_of_plane: Console) -> None:
    project_id = await project(api)
    first, row, _ = await newest(console_of_plane, project_id)
    text = first.policy.replace("tables: {}", "tables: {orders: read_write}")
    sent = {"policy": text, "note": "orders may be written", "based_on": 1}
    published = await api("POST", f"/projects/{project_id}/policies", sent)
    assert (published.status_code, published.json()) == (201, {"version": 2, "bundle": 2})
    second, second_row, _ = await newest(console_of_plane, project_id)
    assert (second.policy, second.previous_sha256) == (text, row.sha256.hex())
    assert (await api("POST", f"/projects/{project_id}/policies", sent)).status_code == 409
    assert (await api("POST", f"/projects/{project_id}/pause", {"note": "an incident"})).json()["state"] == "paused"
    paused, _, _ = await newest(console_of_plane, project_id)
    assert (paused.state, paused.previous_sha256) == ("paused", second_row.sha256.hex())
    assert (await api("POST", f"/projects/{project_id}/pause", {})).json()["state"] == "paused"
    assert (await newest(console_of_plane, project_id))[0].version == 3
    assert (await api("POST", f"/projects/{project_id}/resume", {})).json()["state"] == "enforced"
    listed = (await api("GET", f"/projects/{project_id}/policies")).json()
    assert [each["version"] for each in listed["versions"]] == [2, 1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("databases:\n  - name: shop\n    table_acess: {default: read}\n", "table_access"),
        ("databases:\n  - name: other\n", "other"),
        ("databases:\n  - name: shop\n    url: postgresql://a@b/c\n", "url"),
        ("table_access: {default: read}\n", "databases"),
        ("", "empty"),
    ],
)
async def test_a_wrong_policy_is_told_and_not_published(api: Api, console_of_plane: Console, text: str, told: str) -> None:
    project_id = await project(api)
    checked = await api("POST", f"/projects/{project_id}/check-policy", {"policy": text})
    assert any(told in problem["message"] + problem["path"] for problem in checked.json()["problems"]), checked.text
    refused = await api("POST", f"/projects/{project_id}/policies", {"policy": text, "note": "x"})
    assert refused.status_code == 422
    assert (await newest(console_of_plane, project_id))[0].version == 1


def test_masks_need_the_master_salt(settings: ControlSettings, store_url: str) -> None:
    assert settings.secrets is not None
    text = "databases:\n  - name: shop\n    column_masks: {users: {ssn: full-redact}}\n"
    with_master = msgspec.structs.replace(settings.secrets, mask_salt_master=Secret("0" * 64))
    without = msgspec.structs.replace(settings.secrets, mask_salt_master=None)
    assert publishable(Console(msgspec.structs.replace(settings, secrets=with_master), Store(store_url)), text).has_masks
    with pytest.raises(NotPublished, match="GATEWAY_MASK_SALT_MASTER"):
        publishable(Console(msgspec.structs.replace(settings, secrets=without), Store(store_url)), text)


async def test_a_token_comes_in_until_it_is_revoked(api: Api, console_of_plane: Console) -> None:
    project_id = await project(api)
    made = (await api("POST", f"/projects/{project_id}/tokens", {"name": "claude"})).json()
    assert is_token(made["text"])
    bundle, _, _ = await newest(console_of_plane, project_id)
    assert bundle.agents is not None
    found = AgentTable(bundle.agents).find(made["text"], console_of_plane.now_ms())
    assert found is not None
    assert (found.id, found.name) == (made["id"], "claude")
    place = await found_token(console_of_plane, made["text"])
    assert place is not None
    assert place.project_id == project_id
    listed = (await api("GET", f"/projects/{project_id}/tokens")).text
    assert made["text"] not in listed
    assert made["text"].encode() not in (await newest(console_of_plane, project_id))[1].envelope
    await api("DELETE", f"/projects/{project_id}/tokens/{made['id']}")
    bundle, _, _ = await newest(console_of_plane, project_id)
    assert bundle.agents is not None
    assert AgentTable(bundle.agents).find(made["text"], console_of_plane.now_ms()) is None
    assert await found_token(console_of_plane, made["text"]) is None


async def found_token(console: Console, text: str) -> ProjectPlace | None:
    found = await console.store.transaction(lambda tx: find_token(tx, console, text, console.now_ms()))
    return found[0] if found is not None else None


async def test_an_address_is_sealed_and_opens_nowhere_else(api: Api, console_of_plane: Console, store_url: str) -> None:
    project_id = await project(api)
    (database,) = (await api("GET", f"/projects/{project_id}/databases")).json()["databases"]
    path = f"/projects/{project_id}/databases/{database['id']}"
    answered = await api("PUT", path, {"url": SEALED})
    assert answered.json()["host"] == "db.example.com/shop"
    assert "very-secret-word" not in answered.text
    (row,) = await console_of_plane.store.rows(Database, OF_PROJECT, project_id)
    assert row.sealed_url is not None
    assert b"very-secret-word" not in row.sealed_url
    ring = console_of_plane.secrets.kms
    assert unseal(ring, "database address", row.sealed_url, project_id, row.database_id).decode() == SEALED
    with pytest.raises(Unsealable):
        unseal(ring, "database address", row.sealed_url, console_of_plane.new_id(), row.database_id)
    assert (await api("PUT", path, {"url": "mysql://x"})).status_code == 400
    assert (await api("DELETE", path)).status_code == 409  # the policy in force names it


async def test_the_connection_test_speaks_doctor_s_words(api: Api, postgres: Postgres) -> None:
    project_id = await project(api)
    (database,) = (await api("GET", f"/projects/{project_id}/databases")).json()["databases"]
    path = f"/projects/{project_id}/databases/{database['id']}"
    assert (await api("POST", f"{path}/test", {})).status_code == 409
    await api("PUT", path, {"url": postgres.create_database()})
    findings = (await api("POST", f"{path}/test", {})).json()["findings"]
    assert any(finding["check"] == "login" and finding["outcome"] == "OK" for finding in findings), findings
    await api("PUT", path, {"url": "postgresql://a:b@127.0.0.1:1/x"})
    findings = (await api("POST", f"{path}/test", {})).json()["findings"]
    assert [finding["outcome"] for finding in findings] == ["FAIL"]
    assert findings[0]["remedy"]


async def test_terms_out_of_range_are_told_by_field(api: Api, console_of_plane: Console) -> None:
    project_id = await project(api)
    terms = (await api("GET", f"/projects/{project_id}/terms")).json()
    assert (await api("PUT", f"/projects/{project_id}/terms", terms | {"statements": "redacted"})).status_code == 200
    bundle, _, _ = await newest(console_of_plane, project_id)
    assert bundle.audit.statements == "redacted"
    assert "audit_projection" in bundle.requires_features
    refused = await api("PUT", f"/projects/{project_id}/terms", terms | {"approval_minutes": 0})
    assert (refused.status_code, "approval_minutes" in refused.text) == (400, True)


async def test_what_loosens_who_must_agree_needs_a_person_who_has_just_signed_in(
    api: Api, owner: Browser, console_of_plane: Console, postgres: Postgres, store_url: str
) -> None:
    project_id = await project(api)
    path = f"/projects/{project_id}/terms"
    terms = (await api("GET", path)).json()
    for field in ("self_approval", "shape_grants"):
        refused = await api("PUT", path, terms | {field: True})
        assert (refused.status_code, field in refused.text) == (403, True)
    assert (await api("PUT", path, terms | {"second_publisher": True})).status_code == 200  # stricter: anybody with the right
    assert (await api("PUT", path, terms)).status_code == 403
    assert (await api("GET", path)).json() == terms | {"second_publisher": True}
    form = {name: terms[name] for name in ("approval_minutes", "retention_h", "fresh_for_s", "on_stale", "statements")}
    form |= {"view_definitions": "1", "second_publisher": "1", "shape_grants": "1"}
    postgres.execute("UPDATE sessions SET proved_ms = 0", store_url)
    answer = await owner.post(f"/projects/{project_id}/settings", form)
    assert answer.headers["location"] == f"/again?next=/projects/{project_id}/settings"
    assert (await api("GET", path)).json()["shape_grants"] is False
    assert (await owner.post(f"/projects/{project_id}/settings", form | {"shape_grants": ""})).status_code == 303
    postgres.execute(f"UPDATE sessions SET proved_ms = {console_of_plane.now_ms()}", store_url)
    assert (await owner.post(f"/projects/{project_id}/settings", form)).headers["location"].endswith("/settings")
    assert (await api("GET", path)).json()["shape_grants"] is True
    assert (await api("PUT", path, terms | {"second_publisher": True, "shape_grants": True})).status_code == 200  # as it is


def test_a_token_s_checksum_finds_slips() -> None:
    text = token_text("live", bytes(range(16)))
    assert is_token(text)
    for wrong in (text[:-1], text + "0", text.upper(), text.replace("gw_live", "gw_test"), text[:20] + "f" + text[21:], ""):
        assert not is_token(wrong)
    assert len(checksum("x")) == 6


def test_a_new_signing_key_is_trusted_and_a_new_root_is_signed_by_both() -> None:
    old, new = key_of(b"1" * 32), key_of(b"2" * 32)
    made = next_document(None, Ring((old,)), 1_000, "issuer")
    assert made is not None
    pinned = first_trust(made[1], fingerprint_of(root_keys(Ring((old,)))[0].public))
    assert next_document(pinned, Ring((old,)), 2_000, "another") is None
    both = next_document(pinned, Ring((old, new)), 2_000, "another")
    assert both is not None
    moved = next_document(read(parse(both[1]).payload, Trust), Ring((new, old)), 3_000, "another")
    assert moved is not None
    alone = next_document(read(parse(moved[1]).payload, Trust), Ring((new,)), 4_000, "another")
    assert alone is not None
    trust, _ = walked([both[1], moved[1], alone[1]], pinned)
    assert (trust.version, trust.issuer, len(trust.keys)) == (4, "issuer", 1)
    with pytest.raises(TrustProblem, match="put the old value back"):
        next_document(pinned, Ring((new,)), 2_000, "another")


async def test_ci_checks_and_publishes_from_the_command_line(api: Api, console_of_plane: Console, tmp_path: Path) -> None:
    project_id = await project(api)
    policy, key = tmp_path / "policy.yaml", tmp_path / "key"
    key.write_text(api.key)
    asked = ["publish", str(policy), "--control", api.url, "--project", project_id]
    environment = {"GATEWAY_API_KEY_FILE": str(key)}

    async def publish(text: str, *words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
        policy.write_text(text)
        command = [sys.executable, "-m", "gatewayd", *asked, *words]
        whole = os.environ | (environment if env is None else env)
        return await trio.run_process(command, env=whole, capture_stdout=True, capture_stderr=True, check=False)

    good = "databases:\n  - name: shop\n    table_access: {default: deny}\n"
    checked = await publish(good, "--check")
    assert (checked.returncode, b"looked at 0 of 0 calls" in checked.stderr) == (0, True), checked.stderr
    assert (await newest(console_of_plane, project_id))[0].version == 1
    wrong = await publish(good.replace("deny", "denied"), "--check")
    assert wrong.returncode == 1
    assert b"table_access.default" in wrong.stdout
    assert (await publish(good, "--note", "closed", "--based-on", "7")).returncode == 1
    done = await publish(good, "--note", "closed", "--based-on", "1")
    assert (done.returncode, msgspec.json.decode(done.stdout)) == (0, {"version": 2, "bundle": 2}), done.stderr
    assert (await newest(console_of_plane, project_id))[0].policy == good
    assert (await publish(good)).returncode == 2
    assert (await publish(good, "--check", env={})).returncode == 78
    asked[3] = "http://127.0.0.1:1"
    assert (await publish(good, "--check")).returncode == 69
