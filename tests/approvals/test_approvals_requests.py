"""The rules that a gate must keep, on the store of `gatewayd approve` (docs/approvals.md, Protocol)."""

from pathlib import Path

import msgspec
import pytest

from gatewayd.approvals.desk.requests import Requests
from gatewayd.approvals.messages import Approved, Expired, GateDenied, Outcome, Pending, Status, Wait
from gatewayd.approvals.rules import OPEN_OF_ONE, NotAsked, TooManyOpen
from tests.approvals.desks import an_ask, opened

EXPIRES = 1000


@pytest.fixture
def requests(tmp_path: Path) -> Requests:
    return opened(tmp_path / "requests.db", expires_ms=EXPIRES)


def pending_id(requests: Requests, query_id: str = "Q1", now_ms: int = 0, **more: str) -> str:
    answer = requests.answer(an_ask(query_id, **more), now_ms)
    assert isinstance(answer, Pending)
    return answer.approval_id


def test_one_approval_one_run(requests: Requests) -> None:
    first = pending_id(requests)
    assert requests.decide(first, "approved", 1, by="ann", note="fine", rows_at_most=3)
    assert requests.status(first, None, 2) == Status("approved", by="ann", note="fine")
    claimed = requests.answer(an_ask("Q2"), 2)
    assert claimed == Approved(by="ann", note="fine", rows_at_most=3, approval_id=first)
    assert requests.status(first, None, 3) == Status("consumed")
    assert pending_id(requests, "Q3", 3) != first


def test_an_answer_that_was_lost_is_given_again_and_nothing_is_spent_twice(requests: Requests) -> None:
    first = pending_id(requests)
    requests.decide(first, "approved", 1)
    assert requests.answer(an_ask("Q1"), 2) == requests.answer(an_ask("Q1"), 3) == requests.wait(Wait(first, "Q1"), 5000)
    with pytest.raises(NotAsked):
        requests.answer(an_ask("Q1", sql="DELETE FROM other"), 4)


@pytest.mark.parametrize(
    "other",
    [{"sql": "DELETE FROM  t"}, {"intent": "because."}, {"token_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, {"sql": "DELETE FROM t "}],
)
def test_a_grant_is_of_exactly_this_write(requests: Requests, other: dict[str, str]) -> None:
    first = pending_id(requests)
    requests.decide(first, "approved", 1)
    assert pending_id(requests, "Q2", 2, **other) != first
    assert isinstance(requests.answer(an_ask("Q3"), 3), Approved)


def test_a_grant_is_of_its_database(requests: Requests) -> None:
    requests.decide(pending_id(requests), "approved", 1)
    assert isinstance(requests.answer(msgspec.structs.replace(an_ask("Q2"), database="e"), 2), Pending)


def test_another_token_s_request_is_not_found(requests: Requests) -> None:
    first = pending_id(requests, token_id="T1")
    requests.decide(first, "approved", 1)
    assert requests.status(first, "T2", 2) == requests.status(first, None, 2) == Status("not_found")
    for token in ("T2", None):
        with pytest.raises(NotAsked):
            requests.wait(Wait(first, "Q2", token), 2)
    assert isinstance(requests.wait(Wait(first, "Q2", "T1"), 3), Approved)


def test_a_denial_repeats_until_it_expires(requests: Requests) -> None:
    first = pending_id(requests)
    assert requests.decide(first, "denied", 1, by="ben", note="no")
    for now_ms in (2, EXPIRES - 1):
        assert requests.answer(an_ask(f"Q{now_ms}"), now_ms) == GateDenied(by="ben", note="no", approval_id=first)
    assert pending_id(requests, "Q9", EXPIRES) != first
    assert requests.status(first, None, EXPIRES) == Status("denied", by="ben", note="no")


def test_an_expiry_is_said_once(requests: Requests) -> None:
    first = pending_id(requests)
    assert requests.status(first, None, EXPIRES) == Status("expired")
    assert requests.answer(an_ask("Q2"), EXPIRES) == Expired(approval_id=first)
    assert requests.answer(an_ask("Q2"), EXPIRES) == Expired(approval_id=first)  # the same query, asked once more
    assert pending_id(requests, "Q3", EXPIRES) != first


def test_an_approval_expires_too(requests: Requests) -> None:
    first = pending_id(requests)
    requests.decide(first, "approved", 1)
    assert requests.status(first, None, EXPIRES) == Status("expired")
    assert isinstance(requests.answer(an_ask("Q2"), EXPIRES), Expired)


def test_after_its_expiry_nothing_is_decided(requests: Requests) -> None:
    first = pending_id(requests)
    assert not requests.decide(first, "approved", EXPIRES)
    assert not requests.decide("nosuch", "approved", 1)


def test_decided_once_it_stays_so(requests: Requests) -> None:
    first = pending_id(requests)
    assert requests.decide(first, "denied", 1)
    assert not requests.decide(first, "approved", 2)


def test_one_open_request_for_one_write(requests: Requests) -> None:
    first = pending_id(requests)
    assert pending_id(requests, "Q2", 1) == first
    assert len(requests.open_requests(2)) == 1


def test_twenty_open_requests_of_one_token(requests: Requests) -> None:
    for number in range(OPEN_OF_ONE):
        pending_id(requests, f"Q{number}", number, sql=f"DELETE FROM t{number}", token_id="T1")
    with pytest.raises(TooManyOpen) as full:
        pending_id(requests, "Q99", 500, sql="DELETE FROM u", token_id="T1")
    assert full.value.retry_after_s == 1
    pending_id(requests, "Q98", 500, sql="DELETE FROM u", token_id="T2")
    pending_id(requests, "Q1000", EXPIRES, sql="DELETE FROM u", token_id="T1")


def test_outcomes(requests: Requests) -> None:
    first = pending_id(requests)
    requests.note_outcome(Outcome("Q1", "executed", 3))  # of a query that claimed nothing
    requests.decide(first, "approved", 1)
    requests.answer(an_ask("Q1"), 2)
    assert requests.status(first, None, 3) == Status("consumed")
    requests.note_outcome(Outcome("Q1", "executed", 3))
    requests.note_outcome(Outcome("Q1", "failed"))
    assert requests.status(first, None, 3) == Status("executed")


def test_it_survives_a_restart(tmp_path: Path) -> None:
    requests = opened(tmp_path / "r.db")
    first = pending_id(requests)
    requests.close()
    requests = opened(tmp_path / "r.db")
    [request] = requests.open_requests(1)
    assert (request.approval_id, request.ask) == (first, an_ask())
    requests.decide(first, "approved", 1)
    requests.answer(an_ask("Q2"), 2)
    requests.close()
    assert opened(tmp_path / "r.db").status(first, None, 3) == Status("consumed")
    assert (tmp_path / "r.db").stat().st_mode & 0o077 == 0


def test_old_ones_are_forgotten(requests: Requests) -> None:
    first = pending_id(requests)
    requests.forget_before(EXPIRES)
    assert requests.status(first, None, 1).status == "pending"
    requests.forget_before(EXPIRES + 1)
    assert requests.status(first, None, 1) == Status("not_found")
