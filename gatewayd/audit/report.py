"""The report about a period: whether the record is complete, and counts of what it contains. Reads only; the command formats
it."""

import sqlite3
from typing import Any, Final

import msgspec

from gatewayd.audit.open_chains import OpenChains
from gatewayd.audit.reader import instances
from gatewayd.audit.rows import COLUMNS

_PIECE: Final = 1000
_LISTED: Final = 20
_DAY_MS: Final = 86_400_000
_ROWS: Final = f"SELECT {', '.join(COLUMNS)}, seq FROM audit_events WHERE id >= ? AND id < ? ORDER BY id"


class Counted(msgspec.Struct):
    """The number of calls of one agent, table or rule, by name."""

    name: str
    allowed: int = 0
    denied: int = 0


class AuditChange(msgspec.Struct):
    """A row about a change of the policy, or about an erasure."""

    ts: int
    seq: int | None
    database: str
    what: str


class AuditReport(msgspec.Struct):
    """The report. `days` are (start of the day in UTC in milliseconds, allowed, denied). `unanchored_rows` are the rows after the
    last kept head."""

    from_ms: int
    to_ms: int
    rows: int = 0
    first_seq: int | None = None
    last_seq: int | None = None
    gaps: list[tuple[int, int]] = []
    instances: list[str] = []
    unproved_rows: int = 0
    undecided: int = 0
    unclosed: int = 0
    unanchored_rows: int = 0
    longest_unanchored_ms: int = 0
    calls: int = 0
    allowed: int = 0
    denied: int = 0
    executed: int = 0
    failed: int = 0
    policies: list[str] = []
    agents: list[Counted] = []
    tables: list[Counted] = []
    rules: list[Counted] = []
    days: list[tuple[int, int, int]] = []
    policy_changes: list[AuditChange] = []
    erasures: list[AuditChange] = []


class Reporter:
    """Goes through the rows of a period once."""

    def __init__(self, connection: sqlite3.Connection, from_ms: int, to_ms: int) -> None:
        self._connection = connection
        self._report = AuditReport(from_ms, to_ms)
        self._chains = OpenChains()
        self._agents: dict[str, Counted] = {}
        self._tables: dict[str, Counted] = {}
        self._rules: dict[str, Counted] = {}
        self._days: dict[int, list[int]] = {}
        self._policies: dict[str, None] = {}
        self._instances: dict[str, None] = {}

    def run(self, first_id: str, end_id: str) -> AuditReport:
        """The report over the rows with ids from `first_id` up to and without `end_id`. Raises sqlite3.Error, or ValueError for a
        row that gatewayd did not write."""
        report = self._report
        instance_of = instances(self._connection)
        last_seq: int | None = None
        for row in self._connection.execute(_ROWS, (first_id, end_id)):
            report.rows += 1
            seq = row[12]
            if seq is None:
                report.unproved_rows += 1
            else:
                report.first_seq = report.first_seq or seq
                if last_seq is not None and seq != last_seq + 1:
                    report.gaps.append((last_seq + 1, seq - 1))
                last_seq = seq
                self._instances[instance_of(seq) or "?"] = None
            self._chains.take(row)
            self._count(row, msgspec.json.decode(row[10], type=dict[str, Any]))
        report.last_seq = last_seq
        report.undecided, report.unclosed = self._chains.undecided, self._chains.unclosed
        report.instances, report.policies = list(self._instances), list(self._policies)
        report.agents, report.tables, report.rules = map(_largest, (self._agents, self._tables, self._rules))
        report.days = [(day, allowed, denied) for day, (allowed, denied) in sorted(self._days.items())]
        self._anchors(end_id)
        return report

    def _count(self, row: tuple[Any, ...], payload: dict[str, Any]) -> None:
        report, event, ts = self._report, row[9], row[8]
        match event:
            case "ATTEMPTED":
                report.calls += 1
            case "DECIDED":
                is_allowed = payload.get("decision") == "ALLOW"
                report.allowed += is_allowed
                report.denied += not is_allowed
                names = [(self._agents, row[4] or "(no agent)")]
                names += [(self._tables, str(table)) for table in payload.get("tables_touched") or ()]
                names += [] if is_allowed else [(self._rules, str(payload.get("policy_rule")))]
                for counts, name in names:
                    counted = counts.setdefault(name, Counted(name))
                    counted.allowed += is_allowed
                    counted.denied += not is_allowed
                self._days.setdefault(ts // _DAY_MS * _DAY_MS, [0, 0])[0 if is_allowed else 1] += 1
                if policy := payload.get("policy"):
                    self._policies[str(policy)] = None
            case "EXECUTED":
                report.executed += 1
            case "FAILED":
                report.failed += 1
            case "POLICY_RELOADED":
                changed = ", ".join(map(str, payload.get("sections_changed") or ())) or "nothing"
                report.policy_changes.append(AuditChange(ts, row[12], row[3], f"by {payload.get('source')}: {changed}"))
            case "ERASED":
                spans = ", ".join(f"{first}-{last}" for first, last in payload.get("seqs", ())[:_LISTED])
                report.erasures.append(AuditChange(ts, row[12], row[3], f"seq {spans}: {payload.get('reason')}"))

    def _anchors(self, end_id: str) -> None:
        """How long rows of the period waited for a signed head, according to the kept heads."""
        report = self._report
        first_seqs = dict(self._first_seqs())
        covered = 0
        for instance, size, ts in self._connection.execute("SELECT instance, size, ts FROM checkpoints ORDER BY ts, size"):
            if instance not in first_seqs:
                continue
            last = first_seqs[instance] + size - 1
            sql = "SELECT min(ts) FROM (SELECT ts FROM audit_events WHERE seq > ? AND seq <= ? AND id < ? ORDER BY seq LIMIT 1)"
            (first_ts,) = self._connection.execute(sql, (max(covered, (report.first_seq or 1) - 1), last, end_id)).fetchone()
            if first_ts is not None:
                report.longest_unanchored_ms = max(report.longest_unanchored_ms, ts - first_ts)
            covered = max(covered, last)
        if report.last_seq is not None:
            report.unanchored_rows = max(report.last_seq - max(covered, (report.first_seq or 1) - 1), 0)

    def _first_seqs(self) -> list[tuple[str, int]]:
        from gatewayd.audit.meta import read_meta

        meta = read_meta(dict(self._connection.execute("SELECT key, value FROM meta")))
        return [(instance, first) for instance, first, _ in meta.spans()]


def _largest(counts: dict[str, Counted]) -> list[Counted]:
    return sorted(counts.values(), key=lambda each: (-(each.allowed + each.denied), each.name))[:_LISTED]
