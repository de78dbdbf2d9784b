"""One JSON object a line on stderr (decision 13): `time`, `level`, `msg`, then fields.

`msg` texts are the constants below: they are API, alerts match on them. A field never holds SQL, row values or secrets. A line
that cannot be written at once is dropped and counted: a full pipe, as of an agent that never reads stderr, must not stop the
gateway."""

import os
import select
import sys
import time
import traceback
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

LogLevel = Literal["debug", "info", "warning", "error"]
Field = str | int | float | bool | None | list[str]

# life of the daemon
STARTED: Final = "gatewayd started"
STOPPING: Final = "gatewayd stopping"
STOPPED: Final = "gatewayd stopped"
UNEXPECTED_FAILURE: Final = "unexpected failure"
CONFIGURATION_INVALID: Final = "configuration invalid"
CONFIGURATION_DOUBTFUL: Final = "configuration doubtful"
SERVICE_UNAVAILABLE: Final = "needed service unavailable"
LOG_LINES_DROPPED: Final = "log lines dropped"
# control plane
CONTROL_STARTED: Final = "control plane started"
CONTROL_STORE_MIGRATED: Final = "control plane store migrated"
TRAIL_HEAD: Final = "control plane trail checkpoint"
AUDIT_BATCH_REFUSED: Final = "audit batch of a gateway refused"
ENGINE_STARTED: Final = "engine started"
ENGINE_STOPPED: Final = "engine stopped"
ENGINE_ENDED: Final = "engine ended by itself"
ENGINE_FAILED: Final = "engine cannot be started"
# calls
DECISION_FAILED: Final = "decision failed; the statement was denied"
MCP_CLIENT: Final = "mcp client"
CONNECTION_FAILED: Final = "connection failed"
# audit
AUDIT_UNAVAILABLE: Final = "audit unavailable"
AUDIT_RECOVERED: Final = "audit recovered"
AUDIT_CHECKPOINT: Final = "audit checkpoint"
AUDIT_UNSIGNED_TAKEN: Final = "audit rows after the last signed head taken over"
AUDIT_BROKEN: Final = "audit file does not continue what was signed"
AUDIT_WRITE_AFTER_EXECUTION_FAILED: Final = "audit write after execution failed"
# approvals
APPROVAL_GATE_UNREACHABLE: Final = "approval gate unreachable"
APPROVAL_GATE_REACHABLE: Final = "approval gate reachable"
# databases
DATABASE_UNREACHABLE: Final = "database unreachable"
DATABASE_REACHABLE: Final = "database reachable"
CATALOG_LOADED: Final = "catalog loaded"
# policy
POLICY_RELOADED: Final = "policy reloaded"
POLICY_RELOAD_FAILED: Final = "policy reload failed"
# containment
TAINT_CHECK_FAILED: Final = "taint check failed; the grant counts as tainted"
TAINT_CHECK_WORKS: Final = "taint check works again"
TAINTS_UNREADABLE: Final = "taints unreadable; every grant counts as tainted"
TAINTS_READABLE: Final = "taints readable again"
GRANT_TAINTED: Final = "grant tainted"
TAINT_CLEARED: Final = "taint cleared"
# link
GATEWAY_WAITING: Final = "gateway waiting for a first bundle"
GATEWAY_ENFORCING: Final = "gateway enforcing"
GATEWAY_PAUSED: Final = "gateway paused"
GATEWAY_HALTED: Final = "gateway halted"
BUNDLE_REJECTED: Final = "bundle rejected"
TRUST_REJECTED: Final = "trust rejected"
ENROLMENT_FAILED: Final = "enrolment failed"
VERSION_ACCEPTED: Final = "bundle version accepted by hand"
LINKED: Final = "gateway linked"
LINK_CUT: Final = "link cut"
LINK_RESTORED: Final = "link restored"
IDENTITY_ELSEWHERE: Final = "gateway identity in use elsewhere"
STATUS_REFUSED: Final = "status refused"
STATUS_TAKEN: Final = "status taken again"
POLICY_STALE: Final = "policy stale"
POLICY_FRESH: Final = "policy fresh again"
AUDIT_PUSH_FAILED: Final = "audit push failed"
AUDIT_PUSH_WAITING: Final = "audit push waiting (control plane keeps answering 429)"
AUDIT_PUSH_RECOVERED: Final = "audit push recovered"
AUDIT_ANSWER_UNVERIFIED: Final = "control plane audit answer did not verify"
AUDIT_FORKED: Final = "audit file forked from what the control plane holds"
AUDIT_NEW_IDENTITY: Final = "audit goes on under a new identity"
AUDIT_FORK_CONFLICT: Final = "control plane holds another event for the new instance too"
AUDIT_LOST: Final = "control plane lost acknowledged audit events"
AUDIT_REFUSED: Final = "control plane refused audit events"
AUDIT_NOT_TAKEN: Final = "control plane does not take audit events yet"
AUDIT_DETAILS_LEFT_OUT: Final = "audit event sent without its details"
AUDIT_PRUNING_FAILED: Final = "audit pruning failed"
AUDIT_PRUNING_RECOVERED: Final = "audit pruning recovered"
AUDIT_NEVER_SENT: Final = "audit events recorded while linked never reached the control plane; local mode does not send them"
CONTROL_PLANE_UNREACHABLE: Final = "control plane unreachable"
CONTROL_PLANE_REACHABLE: Final = "control plane reachable"
VIEWS_WITHHELD: Final = "view definitions withheld from the cloud"
PUBLIC_URL_NOT_REGISTERED: Final = "public URL not registered"
# notifications
DENY_WEBHOOK_DROPPED: Final = "deny webhook dropped"
DENY_WEBHOOK_FAILED: Final = "deny webhook failed"
DENY_WEBHOOK_DELIVERED: Final = "deny webhook delivered again"
TELEMETRY_NOTICE: Final = "telemetry notice"

_RANK: Final[dict[LogLevel, int]] = {"debug": 0, "info": 1, "warning": 2, "error": 3}
_PRIORITY: Final[dict[LogLevel, str]] = {"debug": "<7>", "info": "<6>", "warning": "<4>", "error": "<3>"}
_FIELD_CHARACTERS: Final = 4096
_LINE_BYTES: Final = 32 * 1024 - 64
_ATOMIC_BYTES: Final = select.PIPE_BUF  # a pipe that is ready takes so many bytes at once

_threshold = _RANK["info"]
_dropped = 0
_is_midline = False


def set_level(level: LogLevel) -> None:
    """From now on lines below `level` are not written."""
    global _threshold
    _threshold = _RANK[level]


def debug(msg: str, **fields: Field) -> None:
    """Writes a line at level debug."""
    _write("debug", msg, fields)


def info(msg: str, **fields: Field) -> None:
    """Writes a line at level info."""
    _write("info", msg, fields)


def warning(msg: str, **fields: Field) -> None:
    """Writes a line at level warning."""
    _write("warning", msg, fields)


def error(msg: str, **fields: Field) -> None:
    """Writes a line at level error."""
    _write("error", msg, fields)


def first_of(failure: BaseException) -> BaseException:
    """The failure itself, or the first one in a group of them."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure


def places(bug: BaseException) -> dict[str, Field]:
    """The exception's class and the lines it passed through, as fields. Never its message, which may quote SQL or data."""
    frames = traceback.extract_tb(bug.__traceback__)
    trace = " ".join(f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno}" for frame in frames)
    return {"error_class": type(bug).__name__, "trace": trace}


def _write(level: LogLevel, msg: str, fields: dict[str, Field]) -> None:
    if _RANK[level] < _threshold:
        return
    now = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line: dict[str, Field] = {"time": now, "level": level, "msg": msg}
    for key, value in fields.items():
        line[key] = value[:_FIELD_CHARACTERS] if isinstance(value, str) else value
    text = _json(line)
    if len(text) > _LINE_BYTES:  # journald splits longer records in two, and neither half is JSON
        text = _json({"time": now, "level": level, "msg": msg, "fields_cut": True})
    global _dropped
    if _dropped:
        lost: dict[str, Field] = {"time": now, "level": "warning", "msg": LOG_LINES_DROPPED, "count": _dropped}
        if not _give("warning", _json(lost)):
            _dropped += 1
            return
        _dropped = 0
    if not _give(level, text):
        _dropped += 1


def _json(line: dict[str, Field]) -> bytes:
    try:
        return msgspec.json.encode(line)
    except UnicodeEncodeError:
        import json  # rarely needed: start-up time

        # lone surrogates: bytes of the environment or of a path that are not UTF-8
        return json.dumps(line).encode()


def _give(level: LogLevel, text: bytes) -> bool:
    """Writes one line in one piece, so that lines of several tasks never interleave. False when it cannot be written now."""
    global _is_midline
    prefix = _PRIORITY[level].encode() if _to_journal() else b""
    line = (b"\n" if _is_midline else b"") + prefix + text + b"\n"
    poll = select.poll()
    poll.register(2, select.POLLOUT)
    written = 0
    try:
        while written < len(line):
            if not poll.poll(0):
                _is_midline = _is_midline or written > 0  # the next line that is written starts on a new line
                return False
            written += os.write(2, line[written : written + _ATOMIC_BYTES])
    except OSError:  # stderr is closed, and there is no other place to report it
        return True
    _is_midline = False
    return True


def _to_journal() -> bool:
    """Whether stderr is the journal's socket; only then does `<N>` carry the priority (sd-daemon(3))."""
    named = os.environ.get("JOURNAL_STREAM", "")
    if not named:
        return False
    try:
        stat = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return False
    return named == f"{stat.st_dev}:{stat.st_ino}"
