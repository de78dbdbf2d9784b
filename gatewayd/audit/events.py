"""Audit events as values (decision 4). The store gives them ids; nothing here reads a clock."""

from typing import Final, Literal, NewType

import msgspec

AuditId = NewType("AuditId", str)
QueryId = NewType("QueryId", str)

SCHEMA_VERSION: Final = 3
SELF_HOST_TENANT: Final = "__self_host__"
DEFAULT_DATABASE: Final = "__default__"

AGENT_NAME_CHARACTERS: Final = 128
AGENT_VERSION_CHARACTERS: Final = 64
INTENT_CHARACTERS: Final = 500
TABLES: Final = 64
COLUMNS_MASKED: Final = 64
MASKING_REASON_CHARACTERS: Final = 512
APPROVED_BY_CHARACTERS: Final = 128
ERROR_MESSAGE_CHARACTERS: Final = 4096
SQL_RAW_BYTES: Final = 1024 * 1024


class Agent(msgspec.Struct, frozen=True, gc=False):
    """The agent, as recorded: its name and version, cut to their limits, and the id of its token, a ULID or None."""

    name: str | None = None
    version: str | None = None
    token_id: str | None = None


class Attempted(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A statement arrived."""

    sql_raw: str
    sql_fingerprint: str
    preview_of: str | None = None
    """Set for the gateway's own statements, in all their payloads: the query whose rows this one counts."""


class Decided(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The statement was allowed or denied."""

    decision: Literal["ALLOW", "DENY"]
    statement_type: str | None = None
    tables_touched: tuple[str, ...] | None = None
    policy_rule: str | None = None
    reason: str | None = None
    dialect: str | None = None
    approved_by: str | None = None
    policy: str | None = None
    """SHA-256 of the policy in force, 64 hex digits."""
    bundle: int | None = None
    """The version of the policy's bundle, when linked."""
    preview_of: str | None = None


class Executed(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The closing row of a statement that ran. Times are in milliseconds."""

    exec_ms: int
    overhead_ms: int
    rows_affected: int | None = None
    rows_returned: int | None = None
    truncated: bool | None = None
    columns_masked: tuple[str, ...] | None = None
    masking_path: Literal["source_rewrite", "post_exec"] | None = None
    masking_rejected: bool | None = None
    masking_reason: str | None = None
    preview_of: str | None = None


class Failed(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The closing row of an allowed statement that failed or was cancelled. `error_class` is a SQLSTATE or `column_masking`."""

    exec_ms: int
    overhead_ms: int
    error_class: str
    error_message: str
    masking_stage: Literal["gate", "salt", "shadow", "rewrite"] | None = None
    preview_of: str | None = None


class PolicyReloaded(msgspec.Struct, frozen=True, omit_defaults=True):
    """A policy came into force, or an operator decided about a bundle or a taint."""

    source: str
    table_access: object
    sections_changed: tuple[str, ...]
    databases_changed: tuple[str, ...]
    guardrails: object
    diff: object
    bundle: int | None = None
    """The version of the policy's bundle, if the gateway is linked."""


class Erased(msgspec.Struct, frozen=True):
    """The details of rows were erased. `seqs` are ranges (first, last), at most 1000."""

    reason: str
    seqs: tuple[tuple[int, int], ...]


Payload = Attempted | Decided | Executed | Failed | PolicyReloaded | Erased
EVENT_TYPE: Final[dict[type, str]] = {
    Attempted: "ATTEMPTED",
    Decided: "DECIDED",
    Executed: "EXECUTED",
    Failed: "FAILED",
    PolicyReloaded: "POLICY_RELOADED",
    Erased: "ERASED",
}


class Query(msgspec.Struct, frozen=True, gc=False):
    """The columns that all events of one call share."""

    query_id: QueryId
    database: str
    agent: Agent
    intent: str | None
    tenant_id: str = SELF_HOST_TENANT
    preview_of: QueryId | None = None  # not a column: it is in each payload


class Event(msgspec.Struct, frozen=True, gc=False):
    """One audit row before it has an id. `ts_ms` is milliseconds since the epoch."""

    query: Query
    ts_ms: int
    payload: Payload
