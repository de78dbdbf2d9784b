"""Grants for a shape of statement: more than one run on one decision, within limits. Off unless the project's terms allow them.

A stated deviation from "exact sql and intent" (docs/control-plane.md, Approvals). The shape is the whole statement without its
constants and what its names mean, hashed. A grant holds for one token at one database, for changes of rows alone, for so many
times, until a moment, while the policy is the one under which it was made, and always with a bound on rows; a write that was
counted above it asks a person.
"""

from hashlib import sha256
from typing import Final

import msgspec

from gatewayd.approvals.messages import Approved, GateAsk
from gatewayd.control.approvals import requests
from gatewayd.control.approvals.reviewer_rows import alone_approves
from gatewayd.control.projects.find import Project
from gatewayd.control.projects.terms import terms_of
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.sql.text.redact import redacted

SQL_BYTES: Final = 16 * 1024
"""A longer statement has no shape: it would have to be parsed off the loop, and nobody has read it."""
MINUTES_MOST: Final = 7 * 24 * 60
TIMES_MOST: Final = 1000
ROWS_MOST: Final = 10_000
LISTED: Final = 200

COVERING: Final = Statement(
    "SELECT shape_grant_id, database_name, asker, rows_at_most, times, used, ends_ms, made_by, made_name, made_ms, note,"
    " approval_id, policy_hash, revoked_ms FROM shape_grants WHERE project_id = $1 AND shape = $2 AND asker = $3"
    " AND database_name = $4 AND policy_hash = $5 AND ends_ms > $6 AND revoked_ms IS NULL AND used < times AND rows_at_most >= $7"
    " ORDER BY shape_grant_id LIMIT 20"
)
USE: Final = Statement(
    "UPDATE shape_grants SET used = used + 1 WHERE project_id = $1 AND shape_grant_id = $2 AND ends_ms > $3"
    " AND revoked_ms IS NULL AND used < times"
)
ADD: Final = Statement(
    "INSERT INTO shape_grants (project_id, shape_grant_id, shape, asker, database_name, policy_hash, approval_id, rows_at_most,"
    " times, ends_ms, made_by, made_name, made_ms, note)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
)
REVOKE: Final = Statement(
    "UPDATE shape_grants SET revoked_ms = $3, revoked_by = $4"
    " WHERE project_id = $1 AND shape_grant_id = $2 AND revoked_ms IS NULL"
)
OF_PROJECT: Final = Statement(
    "SELECT shape_grant_id, database_name, asker, rows_at_most, times, used, ends_ms, made_by, made_name, made_ms, note,"
    " approval_id, policy_hash, revoked_ms FROM shape_grants WHERE project_id = $1 ORDER BY shape_grant_id DESC LIMIT $2"
)


class GrantTerms(msgspec.Struct, frozen=True):
    """Beside the bound on rows: for how long, and for how many runs more than the one that was asked for."""

    minutes: int
    times: int


class ShapeGrant(msgspec.Struct, frozen=True):
    """`approval_id` is the request that it was made with, whose statement is the example; `made_name` decided."""

    shape_grant_id: str
    database_name: str
    asker: str
    rows_at_most: int
    times: int
    used: int
    ends_ms: int
    made_by: str
    made_name: str
    made_ms: int
    note: str | None
    approval_id: str
    policy_hash: str
    revoked_ms: int | None


def shape_of(ask: GateAsk) -> bytes | None:
    """The shape of a statement that a grant can be for; None where there can be none: what an agent that has read foreign text
    writes, each time a person looks at."""
    if ask.contained or ask.write_class != "row_changes" or len(ask.sql.encode("utf-8", "surrogatepass")) > SQL_BYTES:
        return None
    text = redacted(ask.sql)
    return None if text is None else sha256(f"gatewayd shape 1\n{ask.effect}\n{text}".encode()).digest()


def terms_problem(terms: GrantTerms, rows_at_most: int | None) -> str | None:
    """What is out of its range; None when nothing is."""
    if rows_at_most is None or not 1 <= rows_at_most <= ROWS_MOST:
        return f"rows_at_most: a grant for a shape has a bound of 1 to {ROWS_MOST} rows"
    if not 1 <= terms.minutes <= MINUTES_MOST:
        return f"minutes: found {terms.minutes}; expected 1 to {MINUTES_MOST}"
    if not 1 <= terms.times <= TIMES_MOST:
        return f"times: found {terms.times}; expected 1 to {TIMES_MOST}"
    return None


async def claim_grant(
    tx: Transaction, project: Project, asker: requests.Asker, ask: GateAsk, key: bytes, now_ms: int
) -> Approved | None:
    """The approval that a grant for this shape gives, counted and kept for the query; None where none covers it.

    A grant is its maker's word: it counts while the maker could approve the write alone. So it ends when that person leaves,
    may approve no more, or a rule asks for others.
    """
    shape, terms = shape_of(ask), terms_of(project.settings)
    if shape is None or not terms.shape_grants:
        return None
    rows = ask.preview.rows if ask.preview is not None and ask.preview.rows is not None else 0
    where = (asker.project_id, shape, asker.named(ask.mcp_token_id), ask.database, ask.policy_hash, now_ms, rows)
    grants = await tx.rows(ShapeGrant, COVERING, *where)
    requester = await requests.requester_of(tx, asker, ask) if grants else None
    for grant in grants:
        if not await alone_approves(tx, project, terms, ask, requester, grant.made_by):
            continue
        if await tx.run(USE, asker.project_id, grant.shape_grant_id, now_ms):
            answer = Approved(by=grant.made_name, note=grant.note, rows_at_most=grant.rows_at_most)
            kept = (key, None, grant.shape_grant_id, msgspec.json.encode(answer).decode(), now_ms)
            await tx.run(requests.KEEP_ANSWER, asker.project_id, ask.query_id, *kept)
            return answer
    return None
