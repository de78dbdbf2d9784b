"""Approvals and containment over the link: signed answers, bound to what was asked (docs/link-protocol.md, Approvals)."""

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

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


class TaintBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`mark`: a grant reads a source and is tainted from now on. `ask`: is it tainted? `grant` is the token's id, or "" for the
    whole gateway where agents have no tokens."""

    action: Literal["mark", "ask"]
    grant: str
    query_id: str
    database: str = ""
    source: str = ""
    ts: int = 0


class TaintAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`source`, `database`, `since` say which read it was, where the grant is tainted."""

    gateway: str
    request: str
    query_id: str
    grant: str
    tainted: bool
    ts: int
    source: str | None = None
    database: str | None = None
    since: int | None = None


class CatalogBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The catalog of one database for simulation; `catalog` as `link/formats/catalogs.py` makes it."""

    database: str
    revision: int
    withheld: int
    catalog: dict[str, Any]


def grant_sha256(*, sql: str, intent: str, database: str, token_id: str | None) -> str:
    """The name of a grant key: the exact text and intent, the database and the token, each with its length before it."""
    whole = hashlib.sha256(b"gatewayd grant 1\n")
    for part in (sql, intent, database, token_id or ""):
        data = part.encode("utf-8", "surrogatepass")
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()


def sign_verdict(verdict: ApprovalVerdict, keys: Sequence[SigningKey]) -> bytes:
    """The signed envelope of a verdict."""
    return seal("verdict", verdict, keys)


def sign_taint(answer: TaintAnswer, keys: Sequence[SigningKey]) -> bytes:
    """The signed envelope of an answer about a taint."""
    return seal("taint", answer, keys)


def read_verdict(
    data: bytes, trust: Trust, now_ms: int, *, gateway: str, request: str, query_id: str, grant: str
) -> ApprovalVerdict:
    """The verdict about exactly this question. Raises DocumentRefused for any mismatch: it is no answer then, never a denial."""
    verdict = read(opened("verdict", data, trust.keys_for("verdict", now_ms)), ApprovalVerdict)
    if (verdict.gateway, verdict.request, verdict.query_id, verdict.grant) != (gateway, request, query_id, grant):
        raise DocumentRefused("project", "it answers another question")
    return verdict


def read_taint(data: bytes, trust: Trust, now_ms: int, *, gateway: str, request: str, query_id: str, grant: str) -> TaintAnswer:
    """Raises DocumentRefused for any mismatch."""
    answer = read(opened("taint", data, trust.keys_for("taint", now_ms)), TaintAnswer)
    if (answer.gateway, answer.request, answer.query_id, answer.grant) != (gateway, request, query_id, grant):
        raise DocumentRefused("project", "it answers another question")
    return answer
