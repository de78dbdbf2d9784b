"""What the random run proves in the end, from the gateway's own audit files and from the control plane's store."""

from typing import Any

import msgspec

from gatewayd.audit.leaf import commitment_of, facts_of, leaf_of
from gatewayd.audit.rows import COLUMNS
from gatewayd.audit.tree import CompactRange
from gatewayd.control.audit.stored import StoredEvent
from gatewayd.control.store.days import DAYS, day_from
from gatewayd.control.store.statement import DayStatement, Statement
from gatewayd.control.store.store import Store

INSERT = "INSERT INTO written VALUES "
HEADS = Statement("SELECT instance, first_seq, size, root FROM audit_heads ORDER BY first_seq, instance")
IDS = DayStatement("SELECT id FROM {events}")
OF_INSTANCE = DayStatement(
    "SELECT e.gateway_id, e.instance, e.seq, e.id, e.query_id, e.ts, e.received_ms, e.event_type, e.tenant_id, e.database_name,"
    " e.agent_name, e.agent_version, e.has_intent, e.token_id, e.payload, e.schema_version, e.commitment, e.unproved, d.details,"
    " d.salt FROM {events} AS e JOIN {details} AS d USING (project_id, gateway_id, instance, seq)"
    " WHERE instance = $1 AND seq >= $2 AND seq < $3"
)
_PIECE = 5000

Row = dict[str, Any]


class Head(msgspec.Struct):
    instance: str
    first_seq: int
    size: int
    root: bytes


class Id(msgspec.Struct):
    id: str


class Day(msgspec.Struct):
    day: int


class Timeline:
    """One audit file as it stood when it was last seen, of one agent that calls again and again. Raises AssertionError where a
    decision names a bundle that was not in force.

    The row of a swap is written before the swap: a call that comes in between is still decided by the bundle before. Once one
    was decided by the new bundle, no later one may be.
    """

    def __init__(self, rows: list[Row], levels: dict[int, str]) -> None:
        self.ids = {row["id"] for row in rows}
        self.allowed: dict[int, int] = {}
        """The bundle of each write that a row allows."""
        statements: dict[str, tuple[str, int]] = {}
        in_force: list[int] = []
        decided_by = 0
        for row in rows:
            payload = row["payload"]
            match row["event_type"]:
                case "POLICY_RELOADED":
                    in_force.append(payload["bundle"])
                case "ATTEMPTED":
                    statements[row["query_id"]] = payload["sql_raw"], max(decided_by, len(in_force) - 2)
                case "DECIDED":
                    (sql, since), bundle = statements[row["query_id"]], payload["bundle"]
                    assert bundle in in_force[since:], f"bundle {bundle} decided {sql}; in force were {in_force[since:]}"
                    decided_by = since + in_force[since:].index(bundle)
                    if sql.startswith(INSERT):
                        allows = payload["decision"] == "ALLOW"
                        assert allows == (levels[bundle] == "read_write"), f"bundle {bundle} does not decide so of {sql}"
                        if allows:
                            self.allowed[int(sql.removeprefix(INSERT).strip("()"))] = bundle


class Held:
    """What the control plane's store holds. `read` proves it: the rows of each instance are there once, in order, and lead to
    its root; nothing else is there."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.ids: set[str] = set()
        self.instances = 0

    async def read(self) -> "Held":
        days = [day_from(each.day) for each in await self._store.rows(Day, DAYS)]
        for head in await self._store.rows(Head, HEADS):
            tree = CompactRange()
            while tree.size < head.size:
                first = head.first_seq + tree.size
                given = head.instance, first, min(first + _PIECE, head.first_seq + head.size)
                found = [each for day in days for each in await self._store.rows(StoredEvent, OF_INSTANCE.on(day), *given)]
                found.sort(key=lambda event: event.seq)
                assert [event.seq for event in found] == list(range(*given[1:])), f"rows are missing from seq {first} on"
                for event in found:
                    assert event.id not in self.ids, f"event {event.id} is held twice"
                    self.ids.add(event.id)
                    tree.append(_leaf(event))
            assert tree.root() == head.root, "the rows do not lead to the root"
            self.instances += 1
        assert await ids_held(self._store) == self.ids, "rows are stored that no head covers"
        return self


async def ids_held(store: Store) -> set[str]:
    """Of all events, whether they are proved or not."""
    days = await store.rows(Day, DAYS)
    return {each.id for day in days for each in await store.rows(Id, IDS.on(day_from(day.day)))}


def _leaf(event: StoredEvent) -> bytes:
    row = event.row()
    facts = facts_of(tuple(row[name] for name in COLUMNS))
    assert event.salt is not None
    assert commitment_of(event.salt, facts.details) == event.commitment, f"the details of event {event.id} are others"
    return leaf_of(event.seq, facts.envelope, event.commitment)
