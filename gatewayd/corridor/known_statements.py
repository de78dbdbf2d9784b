"""KnownStatements: a cache of facts and verdicts by text, so that a repeated statement is neither parsed nor decided again.

Facts depend on the text alone; a verdict on (text, policy revision, catalog revision). The bound is in bytes, because 300 bytes
of SQL over a table with many masks can become 100 kB; the least recently used entry is dropped first. Databases do not share a
cache, because their policies and catalogs differ.
"""

from collections import OrderedDict
from typing import Final

from gatewayd.judge import Verdict
from gatewayd.masking.plan import Plan, Rewritten
from gatewayd.masking.results.post_exec import PostExec
from gatewayd.sql.facts.statement import Statement, Unparsed

HELD_BYTES: Final = 8 * 1024 * 1024  # for each database
_UNDER_TAINT: Final = 512
_LONGEST: Final = 16 * 1024  # longer texts are rarely repeated and would push out many short ones


class Known:
    """One text's facts and the last verdict on it."""

    __slots__ = ("_of", "_under", "_under_taint", "_verdict", "held", "statement")

    def __init__(self, statement: Statement | Unparsed, of: "KnownStatements") -> None:
        self.statement = statement
        self.held = _size(statement)
        """Approximate size in bytes."""
        self._of = of
        self._verdict: Verdict | None = None
        self._under = (0, 0)
        self._under_taint: Known | None = None

    def under_taint(self) -> "Known":
        """The entry for the same text from a tainted grant."""
        if self._under_taint is None:
            self._under_taint = Known(self.statement, self._of)
            self._of.grown(self, _UNDER_TAINT)
        return self._under_taint

    def is_or_has(self, other: "Known") -> bool:
        """Whether `other` is this entry, or its entry for tainted grants."""
        return other is self or other is self._under_taint

    def verdict(self, policy_revision: int, catalog_revision: int) -> Verdict | None:
        """The verdict that was kept for exactly these revisions."""
        return self._verdict if self._under == (policy_revision, catalog_revision) else None

    def keep(self, verdict: Verdict, policy_revision: int, catalog_revision: int) -> None:
        """Keeps the verdict in place of the last one."""
        before = _planned_size(self._verdict.plan) if self._verdict is not None else 0
        self._verdict = verdict
        self._under = (policy_revision, catalog_revision)
        self._of.grown(self, _planned_size(verdict.plan) - before)


class KnownStatements:
    """The cache of one database."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._held = 0

    @property
    def held(self) -> int:
        """Approximate size of the cache in bytes."""
        return self._held

    def get(self, sql: str) -> Known | None:
        """The entry of this text, which counts as used now."""
        known = self._known.get(sql)
        if known is not None:
            self._known.move_to_end(sql)
        return known

    def add(self, sql: str, statement: Statement | Unparsed) -> Known:
        """A new entry. One for a very long text is returned and not cached."""
        known = Known(statement, self)
        if len(sql) <= _LONGEST and sql not in self._known:
            self._known[sql] = known
            self._held += known.held
            self._trim()
        return known

    def grown(self, known: Known, size: int) -> None:
        """Notes that `known` has grown by `size` bytes."""
        known.held += size
        kept = self._known.get(known.statement.sql)
        if kept is not None and kept.is_or_has(known):
            if kept is not known:
                kept.held += size
            self._held += size
            self._trim()

    def _trim(self) -> None:
        while self._held > HELD_BYTES:
            _, dropped = self._known.popitem(last=False)
            self._held -= dropped.held


def _size(statement: Statement | Unparsed) -> int:
    """Bytes of the text and its facts: structs of about 200 bytes, and tuples of names that several of them may share."""
    size = 1024 + 2 * len(statement.sql)
    if isinstance(statement, Unparsed):
        return size
    facts = (statement.relations, statement.functions, statement.fields, statement.operators, statement.types, statement.sites)
    size += 200 * (sum(map(len, facts)) + len(statement.outputs))
    shared: dict[int, int] = {}
    for field in statement.fields:
        for names in (field.columns, field.outputs):
            if names:
                shared[id(names)] = len(names)
    for use in statement.relations:
        if use.columns:
            shared[id(use.columns)] = len(use.columns)
    return size + 100 * sum(shared.values())


def _planned_size(plan: Plan) -> int:
    """Bytes of a plan: the text that runs instead, and the same text with the wrapper around it (`composed`)."""
    match plan:
        case Rewritten():
            parameters = sum(64 + len(each) if isinstance(each, bytes) else 100 * len(each) for each in plan.parameters)
            return 1024 + 6 * len(plan.statement.sql) + parameters + 24 * len(plan.edits)
        case PostExec():
            return 1024 + 400 * len(plan.masked) + (4 * len(plan.instead.sql) if plan.instead is not None else 0)
        case _:
            return 0
