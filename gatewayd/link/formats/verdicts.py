"""Approvals over the link: signed answers, bound to what was asked (docs/link-protocol.md, Approvals)."""

import hashlib
from collections.abc import Sequence
from typing import Literal

import msgspec

from gatewayd.keys.ed25519 import SigningKey
from gatewayd.link.formats.documents import DocumentRefused, opened, read, seal
from gatewayd.link.formats.trust import Trust

ApprovalStatus = Literal["approved", "denied", "expired", "pending", "executed", "consumed", "not_found", "unavailable", "noted"]


class ApprovalVerdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`grant` is the SHA-256 of the grant key (`grant_sha256`), "" where the question names an approval_id alone.

    `noted` answers an outcome. `unavailable` is told where there is no answer now, such as too many open requests.
    """

    gateway: str
    request: str
    query_id: str
    grant: str
    status: ApprovalStatus
    ts: int
    approval_id: str | None = None
    by: str | None = None
    note: str | None = None
    rows_at_most: int | None = None
    expires_at: int | None = None
    review_url: str | None = None


def grant_sha256(*, sql: str, intent: str, database: str, token_id: str | None) -> str:
    """The name of a grant key: the exact text and intent, the database and the token, each with its length before it."""
    whole = hashlib.sha256(b"gatewayd grant 1\n")
    for part in (sql, intent, database, token_id or ""):
        data = part.encode("utf-8", "surrogatepass")
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()


def sign_verdict(verdict: ApprovalVerdict, keys: Sequence[SigningKey]) -> bytes:
    return seal("verdict", verdict, keys)


def read_verdict(
    data: bytes, trust: Trust, now_ms: int, *, gateway: str, request: str, query_id: str, grant: str
) -> ApprovalVerdict:
    """The verdict about exactly this question. Raises DocumentRefused for any mismatch: it is no answer then, never a denial."""
    verdict = read(opened("verdict", data, trust.keys_for("verdict", now_ms)), ApprovalVerdict)
    if (verdict.gateway, verdict.request, verdict.query_id, verdict.grant) != (gateway, request, query_id, grant):
        raise DocumentRefused("project", "it answers another question")
    return verdict
