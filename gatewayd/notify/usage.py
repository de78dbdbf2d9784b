"""What telemetry may say: a closed payload type, and the counting of calls into it (decision 9). Pure.

Every text in it comes from the lists below or from this program; any other word is counted as `other`.
"""

from typing import Final, Literal, TypeVar, get_args

import msgspec

from gatewayd.config.settings import McpTransport
from gatewayd.policy.decide.outcomes import PolicyRule

CountedTool = Literal["query", "list_tables", "describe_table"]
CallDecision = Literal["ALLOW", "DENY", "HELD", "UNAUDITED"]

StatementWord = Literal[
    "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "EXPLAIN", "SHOW", "CREATE", "ALTER", "DROP", "TRUNCATE", "COMMENT",
    "GRANT", "REVOKE", "REFRESH", "other",
]  # fmt: skip
_STATEMENT_WORDS: Final = frozenset(get_args(StatementWord))

# PostgreSQL's Appendix A, and column_masking (decision 4)
SQLSTATE_CLASSES: Final = (
    "00", "01", "02", "03", "08", "09", "0A", "0B", "0F", "0L", "0P", "0Z", "10", "20", "21", "22", "23", "24", "25", "26", "27",
    "28", "2B", "2D", "2F", "34", "38", "39", "3B", "3D", "3F", "40", "42", "44", "53", "54", "55", "57", "58", "72", "F0", "HV",
    "P0", "XX", "column_masking", "other",
)  # fmt: skip

_LATENCY_MS: Final = (1, 2, 3, 5, 8, 13, 20, 30, 50, 80, 130, 200, 300, 500, 800, 1300, 2000, 3000, 5000, 10000, 30000, 60000)


class CountedCall(msgspec.Struct, frozen=True, gc=False):
    """One finished call. `statement_type` and `error_class` may be any text: only listed words of them are counted."""

    tool: CountedTool
    decision: CallDecision
    rule: PolicyRule | None
    statement_type: str | None
    error_class: str | None
    overhead_s: float


class Latency(msgspec.Struct, frozen=True):
    """Upper bounds in ms of what gatewayd added to a call; null when there was none."""

    p50: int | None = None
    p90: int | None = None
    p99: int | None = None


class Usage(msgspec.Struct, frozen=True):
    """Counts since the report before."""

    tools: dict[CountedTool, int]
    decisions: dict[CallDecision, int]
    rules: dict[PolicyRule, int]
    statement_types: dict[StatementWord, int]
    sqlstate_classes: dict[str, int]
    overhead_ms: Latency


class Report(msgspec.Struct, frozen=True):
    """One report: what is sent, and nothing besides."""

    event: Literal["startup", "heartbeat"]
    install_id: str
    version: str
    python: str
    os: str
    arch: str
    transport: McpTransport
    uptime_s: int
    usage: Usage
    uncounted: int  # calls that were not counted because they came too fast


class Counts:
    """Counts calls until they are taken."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._tools: dict[CountedTool, int] = {}
        self._decisions: dict[CallDecision, int] = {}
        self._rules: dict[PolicyRule, int] = {}
        self._statement_types: dict[StatementWord, int] = {}
        self._sqlstate_classes: dict[str, int] = {}
        self._latencies = [0] * (len(_LATENCY_MS) + 1)

    def add(self, call: CountedCall) -> None:
        """Counts one call."""
        _count(self._tools, call.tool)
        _count(self._decisions, call.decision)
        if call.rule is not None:
            _count(self._rules, call.rule)
        if call.statement_type is not None:
            _count(self._statement_types, _statement_word(call.statement_type))
        if call.error_class is not None:
            _count(self._sqlstate_classes, sqlstate_class(call.error_class))
        self._latencies[_bucket(call.overhead_s * 1000)] += 1

    def taken(self) -> Usage:
        """The counts so far; counting starts again at zero."""
        usage = Usage(
            self._tools,
            self._decisions,
            self._rules,
            self._statement_types,
            self._sqlstate_classes,
            Latency(*(_percentile(self._latencies, part) for part in (0.5, 0.9, 0.99))),
        )
        self._clear()
        return usage


_Word = TypeVar("_Word")


def _count(counts: dict[_Word, int], key: _Word) -> None:
    counts[key] = counts.get(key, 0) + 1


def _statement_word(statement_type: str) -> StatementWord:
    word = statement_type.partition(" ")[0]
    return word if word in _STATEMENT_WORDS else "other"  # type: ignore[return-value]  # it is in the Literal's own list


def sqlstate_class(error_class: str) -> str:
    """A word of SQLSTATE_CLASSES; `other` for an SQLSTATE that is not listed, since a function may raise any."""
    if error_class == "column_masking":
        return error_class
    return error_class[:2] if error_class[:2] in SQLSTATE_CLASSES else "other"


def _bucket(latency_ms: float) -> int:
    return next((index for index, bound in enumerate(_LATENCY_MS) if latency_ms <= bound), len(_LATENCY_MS))


def _percentile(latencies: list[int], part: float) -> int | None:
    wanted = sum(latencies) * part
    if not wanted:
        return None
    seen = 0
    for index, count in enumerate(latencies):
        seen += count
        if seen >= wanted:
            return _LATENCY_MS[min(index, len(_LATENCY_MS) - 1)]
    raise AssertionError("the counts sum to what was wanted")
