"""Bundles: policy, state, agents and terms of a project in one signed document, each version after the one before.

A bundle is issued when any part of it changes: a policy is published, the project is paused, a token made or revoked. Gateways
that wait at their poll find the new version in the store.
"""

from hashlib import sha256
from typing import Final

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.policies.checked import CheckedPolicy, check_policy
from gatewayd.control.projects.find import FIND as FIND_PROJECT
from gatewayd.control.projects.find import Project
from gatewayd.control.projects.terms import terms_of
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.tokens.token import agents_of
from gatewayd.control.trust.documents import ensure_trust
from gatewayd.control.trust.signing import signers
from gatewayd.keys.envelope import parse
from gatewayd.link.formats.bundle import FORMAT, AuditTerms, Bundle, bundle_sha256, sign_bundle

HEAD: Final = Statement("SELECT version FROM bundle_heads WHERE project_id = $1 FOR UPDATE")
BEGIN: Final = Statement("INSERT INTO bundle_heads (project_id, version) VALUES ($1, 0) ON CONFLICT (project_id) DO NOTHING")
MOVE: Final = Statement("UPDATE bundle_heads SET version = $2 WHERE project_id = $1 AND version < $2")
ADD: Final = Statement(
    "INSERT INTO bundles (project_id, version, policy_version, envelope, sha256, reason, issued_ms)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7)"
)
DIGEST: Final = Statement("SELECT sha256 FROM bundles WHERE project_id = $1 AND version = $2")
NEWEST: Final = Statement(
    "SELECT version, policy_version, envelope, sha256, reason, issued_ms FROM bundles WHERE project_id = $1"
    " ORDER BY version DESC LIMIT 1"
)
NEWEST_POLICY: Final = Statement(
    "SELECT version, yaml, sha256, note, source, person_id, seconded_by, published_ms FROM policy_versions WHERE project_id = $1"
    " ORDER BY version DESC LIMIT 1"
)


class BundleRow(msgspec.Struct, frozen=True):
    version: int
    policy_version: int | None
    envelope: bytes
    sha256: bytes
    reason: str
    issued_ms: int

    @property
    def payload(self) -> bytes:
        return parse(self.envelope).payload


class PolicyVersion(msgspec.Struct, frozen=True):
    version: int
    yaml: str
    sha256: bytes
    note: str
    source: str
    person_id: str | None
    seconded_by: str | None
    published_ms: int


async def issue_bundle(
    tx: Transaction, console: Console, org_id: str, project_id: str, reason: str, *, now_ms: int, issuer: str
) -> int | None:
    """Sign and store the project's next bundle; its version, or None while no policy is published.

    `now_ms`, and `issuer` (a fresh id, for the control plane's very first trust document) are made before the transaction,
    which may run again. Raises TokenKeyLost and TrustProblem: nothing is issued then.
    """
    await tx.run(BEGIN, project_id)
    head = int(await tx.value(HEAD, project_id))
    project = await tx.row(Project, FIND_PROJECT, org_id, project_id)
    policy = await tx.row(PolicyVersion, NEWEST_POLICY, project_id)
    if project is None or policy is None:
        return None
    checked = check_policy(policy.yaml)
    assert isinstance(checked, CheckedPolicy), "only what was checked is published"
    trust = await ensure_trust(tx, console.secrets.signing, now_ms, issuer)
    terms = terms_of(project.settings)
    previous = await tx.value(DIGEST, project_id, head)
    version = head + 1
    bundle = Bundle(
        format=FORMAT,
        issuer=trust.trust.issuer,
        project=project_id,
        tenant_id=org_id,
        version=version,
        issued_at=now_ms,
        policy=policy.yaml,
        previous_sha256=bytes(previous).hex() if previous is not None else None,
        fresh_for_s=terms.fresh_for_s,
        on_stale=terms.on_stale,
        state="paused" if project.state == "paused" else "enforced",
        tests=terms.tests,
        agents=await agents_of(tx, console, project_id, now_ms),
        public_urls=terms.public_urls,
        audit=terms.audit,
        view_definitions=terms.view_definitions,
    )
    bundle = msgspec.structs.replace(bundle, requires_features=_features(bundle, checked))
    envelope = sign_bundle(bundle, signers(console.secrets.signing))
    await tx.run(ADD, project_id, version, policy.version, envelope, bytes.fromhex(bundle_sha256(bundle)), reason, now_ms)
    await tx.run(MOVE, project_id, version)
    return version


def policy_digest(text: str) -> bytes:
    return sha256(text.encode()).digest()


def _features(bundle: Bundle, checked: CheckedPolicy) -> tuple[str, ...]:
    """What a gateway must know to enforce all of it: an older one halts instead of enforcing half."""
    own = {"agents"} if bundle.agents is not None else set()
    own |= {"bundle_tests"} if bundle.tests is not None else set()
    own |= {"public_urls"} if bundle.public_urls else set()
    own |= {"audit_projection"} if bundle.audit.statements != AuditTerms().statements else set()
    if bundle.agents is not None and any(token.used_up_until is not None for token in bundle.agents.tokens):
        own.add("token_budgets")
    own |= set() if bundle.view_definitions else {"view_definitions"}
    return tuple(sorted(own | set(checked.requires_features)))
