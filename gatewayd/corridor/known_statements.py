"""KnownStatements: what is known of the texts that came before, so that a repeated statement is neither parsed nor decided again.

Analysis depends on the text alone; a decision on (text, policy revision, catalog revision). Bounded by bytes of text, the one
used least recently leaves first. Not shared between databases: their policies and catalogs differ.
"""

from collections import OrderedDict
from typing import Final

from gatewayd.masking.plan import Plan
from gatewayd.policy.decide.outcomes import Decision
from gatewayd.sql.facts.statement import Statement, Unparsed

_TEXT_BYTES: Final = 256 * 1024  # facts take about twenty times their text: some 5 MiB a database
_LONGEST: Final = 16 * 1024  # longer texts are rarely repeated and would push out many short ones


class Known:
    """One text's facts, the last decision on it, and what masks made of it then."""

    __slots__ = ("_decision", "_plan", "_planned_under", "_under", "statement")

    def __init__(self, statement: Statement | Unparsed) -> None:
        self.statement = statement
        self._decision: Decision | None = None
        self._under = (0, 0)
        self._plan: Plan | None = None
        self._planned_under = (0, 0)

    def decision(self, policy_revision: int, catalog_revision: int) -> Decision | None:
        return self._decision if self._under == (policy_revision, catalog_revision) else None

    def keep(self, decision: Decision, policy_revision: int, catalog_revision: int) -> None:
        self._decision = decision
        self._under = (policy_revision, catalog_revision)

    def plan(self, policy_revision: int, catalog_revision: int) -> Plan | None:
        return self._plan if self._planned_under == (policy_revision, catalog_revision) else None

    def keep_plan(self, plan: Plan, policy_revision: int, catalog_revision: int) -> None:
        self._plan = plan
        self._planned_under = (policy_revision, catalog_revision)


class KnownStatements:
    def __init__(self) -> None:
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._characters = 0

    def get(self, sql: str) -> Known | None:
        known = self._known.get(sql)
        if known is not None:
            self._known.move_to_end(sql)
        return known

    def add(self, sql: str, statement: Statement | Unparsed) -> Known:
        known = Known(statement)
        if len(sql) <= _LONGEST and sql not in self._known:
            self._known[sql] = known
            self._characters += len(sql)
            while self._characters > _TEXT_BYTES:
                dropped, _ = self._known.popitem(last=False)
                self._characters -= len(dropped)
        return known
