"""When a head is due, by a clock of the test's own."""

from pathlib import Path

from gatewayd.audit.batch import Ticket
from gatewayd.audit.committer import Committer
from gatewayd.audit.events import Agent, Attempted, Event, Query, QueryId
from gatewayd.audit.last_head import LastHead
from gatewayd.audit.lock import OwnershipLock
from gatewayd.audit.pace import Pace
from gatewayd.audit.rows import row_of
from tests.audit.recorded import NOW_MS, Recorder

ASKED = Query(QueryId("01ARZ3NDEKTSV4RRFFQ69G5FAW"), "shop", Agent(), None)
A_ROW = row_of(Event(ASKED, NOW_MS, Attempted("SELECT 1", "0" * 16)))


def test_the_first_head_after_a_rest_waits_until_what_began_it_has_settled(tmp_path: Path) -> None:
    """So that it covers all rows of a query that comes alone; the next one waits its time."""
    recording, now = Recorder(tmp_path / "audit.db"), [1000.0]
    lock = OwnershipLock(str(recording.path))
    pace = Pace(head_s=60, settle_s=2)
    committer = Committer(recording.file, lock, lambda: recording.file, LastHead(str(tmp_path)), pace, lambda: now[0])

    def due(after_s: float, rows: int = 0) -> float | None:
        now[0] += after_s
        for _ in range(rows):
            committer.append(Ticket((A_ROW,)))
            committer.commit()
        return committer.head_due_s()

    def signed() -> None:
        drafted = committer.draft_head()
        assert drafted is not None
        assert committer.keep_head(*drafted) is not None

    assert due(3600) is None
    assert due(0, rows=1) == 2
    assert due(1.5, rows=2) == 0.5
    assert due(0.5) == 0
    signed()
    assert due(10) is None
    assert due(0, rows=1) == 50
    signed()
    committer.close()
    lock.release()
