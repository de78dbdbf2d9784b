"""The audit of gateways: batches under the tree, what contradicts it, search, proofs that hold without us, erasure, retention."""

import csv
import io
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from gatewayd.audit.proof import ProofRefused, check_proof
from gatewayd.audit.tree import CompactRange, inclusion_proof, range_from, root_from_inclusion
from gatewayd.control.audit import findings, tiles
from gatewayd.control.audit.export import queries_as_csv
from gatewayd.control.audit.findings import Finding
from gatewayd.control.audit.one_query import find_events, shown
from gatewayd.control.audit.proof_text import prove
from gatewayd.control.audit.retention import forget
from gatewayd.control.audit.rollup import BY_DAY, DayCount
from gatewayd.control.audit.search import BadSearch, Filters, search
from gatewayd.control.audit.summary import QuerySummary
from gatewayd.control.store.store import Store
from gatewayd.keys.note import VerifierKey, verifier_key
from gatewayd.link.formats.answers import Ack, Conflict, read_answer
from tests.control.conftest import Plane
from tests.control.gateway_of_tests import Rows, TestGateway, now_ms
from tests.control.one_project import OneProject, freshness, make_one_project, refusal


@pytest.fixture
async def one_project(plane: Plane, store_url: str) -> AsyncIterator[OneProject]:
    store = Store(store_url)
    yield await make_one_project(plane, store)
    store.close()


async def acked(gateway: TestGateway, body: Any = None) -> Ack:
    answer, sent = await gateway.push(body)
    assert answer.status_code == 200, answer.text
    assert gateway.trust is not None
    return read_answer(answer.content, Ack, gateway.trust, now_ms(), gateway=gateway.id, request=sent.digest)


async def found(one_project: OneProject, **filters: Any) -> list[QuerySummary]:
    """All pages; a machine that is busy makes them short."""
    queries: list[QuerySummary] = []
    page = await search(one_project.console.store, one_project.project, Filters(**filters), now_ms())
    while page.next is not None:
        queries += page.queries
        page = await search(one_project.console.store, one_project.project, Filters(**filters), now_ms(), page.next)
    return queries + page.queries


async def open_findings(one_project: OneProject) -> list[str]:
    return sorted(each.kind for each in await one_project.console.store.rows(Finding, findings.OPEN, one_project.project))


async def test_batches_are_acknowledged_under_the_tree_and_again_when_the_answer_was_lost(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    for _ in range(150):
        gateway.rows.query()
    ack = await acked(gateway, gateway.rows.batch(0, 300))
    assert (ack.from_seq, ack.to_seq, ack.size) == (1, 300, 300)
    again = await acked(gateway, gateway.rows.batch(0, 300))
    assert again.root == ack.root
    assert (await acked(gateway, gateway.rows.batch(100, 200))).size == 200
    whole = await acked(gateway, gateway.rows.batch(250, 450))  # half of it is held
    tree = CompactRange()
    tree.extend(gateway.rows.leaves)
    assert (whole.size, whole.root) == (450, tree.root().hex())
    answer, sent = await gateway.poll()
    head = freshness(gateway, answer, sent).head
    assert head is not None
    assert (head.instance, head.size, head.root) == (gateway.rows.instance, 450, whole.root)
    (total,) = await one_project.console.store.rows(DayCount, BY_DAY, one_project.project, "all", 0, 1_000_000)
    assert (total.calls, total.denied, total.rows_read) == (150, 0, 450)
    assert await open_findings(one_project) == []


async def test_another_row_at_a_held_place_is_a_conflict_with_its_proof(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    for _ in range(100):
        gateway.rows.query()
    await acked(gateway)
    restored = Rows(seed=5, tenant=gateway.rows.tenant)
    restored.instance = gateway.rows.instance
    restored.rows, restored.salts = gateway.rows.rows[:270], gateway.rows.salts[:270]
    restored.leaves = gateway.rows.leaves[:270]
    for _ in range(20):
        restored.query("SELECT 2")
    answer, sent = await gateway.push(restored.batch(255, 330))
    assert answer.status_code == 409
    assert gateway.trust is not None
    conflict = read_answer(answer.content, Conflict, gateway.trust, now_ms(), gateway=gateway.id, request=sent.digest)
    leaf = gateway.rows.leaves[270]
    assert (conflict.seq, conflict.leaf) == (271, leaf.hex())
    root = root_from_inclusion(leaf, 270, conflict.head.size, [bytes.fromhex(each) for each in conflict.proof])
    assert root is not None
    assert root.hex() == conflict.head.root
    # the same row after another one: the leaf is the one that was sent, what the proof says of the rows before is not
    other = msgspec.structs.replace(gateway.rows.batch(200, 201), root="11" * 32)
    answer, sent = await gateway.push(other)
    conflict = read_answer(answer.content, Conflict, gateway.trust, now_ms(), gateway=gateway.id, request=sent.digest)
    assert (answer.status_code, conflict.seq, conflict.leaf) == (409, 201, gateway.rows.leaves[200].hex())
    # it goes on as a new instance from there
    restored.instance, restored.first_seq = restored.ulid(), 271
    assert (await acked(gateway, restored.batch(270, 330))).size == 60
    assert await open_findings(one_project) == ["conflict", "fork"]
    answer, sent = await gateway.poll()
    head = freshness(gateway, answer, sent).head
    assert head is not None
    assert (head.instance, head.size) == (restored.instance, 60)


async def test_rows_that_do_not_lead_to_their_leaf_or_the_root_are_refused_and_change_nothing(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    for _ in range(4):
        gateway.rows.query()
    good = gateway.rows.batch()
    rows = list(good.rows)
    changed = msgspec.structs.replace(rows[2], row=rows[2].row | {"agent_name": "somebody else"})
    other_salt = msgspec.structs.replace(rows[3], salt="00" * 32)
    for bad in (
        msgspec.structs.replace(good, rows=(*rows[:2], changed, *rows[3:])),
        msgspec.structs.replace(good, rows=(*rows[:3], other_salt, *rows[4:])),
        msgspec.structs.replace(good, rows=(rows[1], rows[0], *rows[2:])),
        msgspec.structs.replace(good, rows=tuple(rows[:-1])),
        msgspec.structs.replace(good, root="00" * 32),
        msgspec.structs.replace(good, size=3),
        msgspec.structs.replace(good, instance="no ulid"),
    ):
        answer, _ = await gateway.push(bad)
        assert answer.status_code == 422, answer.text
    assert await found(one_project) == []
    assert (await acked(gateway)).size == len(rows)


async def test_rows_behind_a_gap_wait_unless_both_sides_have_lost_what_was_before(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    for _ in range(200):
        gateway.rows.query()
    answer, sent = await gateway.push(gateway.rows.batch(300, 600))
    assert refusal(gateway, answer, sent).reason == "not_now"
    before = CompactRange()
    before.extend(gateway.rows.leaves[:300])
    assert (await acked(gateway, gateway.rows.batch(300, 550, gap=before.encode().hex()))).size == 550
    assert (await acked(gateway, gateway.rows.batch(550, 600))).size == 600
    assert await open_findings(one_project) == ["gap"]


async def test_every_filter_finds_its_queries_newest_first_in_pages(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    token = gateway.rows.ulid()
    start = now_ms() - 3_000_000
    for number in range(120):
        gateway.rows.query(ts=start + number * 1000)
    odd = gateway.rows.query(
        "DELETE FROM payroll WHERE id = 3", deny="table_access", table="public.payroll", agent_name="odd", mcp_token_id=token,
        database="books", ts=start + 60_500,
    )  # fmt: skip
    await acked(gateway)
    for filters in (
        {"agent": "odd"}, {"token": token}, {"database": "books"}, {"decision": "DENY"}, {"rule": "table_access"},
        {"table": "public.payroll"}, {"text": "from PAYROLL"}, {"since_ms": start + 60_400, "until_ms": start + 60_600},
    ):  # fmt: skip
        assert [each.query_id for each in await found(one_project, **filters)] == [odd], filters
    (one,) = await found(one_project, table="public.payroll", agent="odd")
    assert (one.outcome, one.rule, one.sql, one.reason) == (
        "denied", "table_access", "DELETE FROM payroll WHERE id = 3", "no public.payroll",
    )  # fmt: skip
    assert [each.query_id for each in await found(one_project, fingerprint=one.fingerprint)] == [odd]
    assert await found(one_project, text="payroll_x") == []
    assert await found(one_project, agent="nobody") == []
    seen: list[str] = []
    cursor, times = None, []
    while True:
        page = await search(one_project.console.store, one_project.project, Filters(), now_ms(), cursor, rows=50)
        seen += [each.query_id for each in page.queries]
        times += [each.ts for each in page.queries]
        if (cursor := page.next) is None:
            break
    assert len(seen) == len(set(seen)) == 121
    assert times == sorted(times, reverse=True)
    with pytest.raises(BadSearch, match="token"):
        await found(one_project, token="x")


async def test_the_proof_of_one_query_holds_offline_under_the_gateway_s_own_head(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    for _ in range(300):
        gateway.rows.query()
    query_id = gateway.rows.query("SELECT secret FROM t WHERE id = 'x'", deny="table_access")
    gateway.rows.query()
    await acked(gateway, gateway.rows.batch(0, 500))
    await acked(gateway, gateway.rows.batch(500))
    events = await find_events(one_project.console.store, one_project.project, query_id)
    assert [each.event_type for each in shown(events).events] == ["ATTEMPTED", "DECIDED"]
    witnessed = await prove(one_project.console, one_project.project, events)
    assert witnessed.is_witnessed
    under_witness = check_proof(witnessed.text, [verifier_key(each) for each in witnessed.keys])
    assert {each.signer.name.partition("/")[0] for each in under_witness} == {"gatewayd-control"}
    false = [VerifierKey("gatewayd/0", verifier_key(each).key) for each in witnessed.keys]
    with pytest.raises(ProofRefused):
        check_proof(witnessed.text, false)
    await gateway.poll(note=gateway.rows.note(gateway.identity))
    await gateway.poll(note=Rows(9).note(TestGateway("", 9).identity))  # of somebody else: left aside
    proof = await prove(one_project.console, one_project.project, events)
    assert not proof.is_witnessed
    proved = check_proof(proof.text, [verifier_key(each) for each in proof.keys])
    assert [each.row for each in proved] == [each for each in gateway.rows.rows if each["query_id"] == query_id]
    with pytest.raises(ProofRefused):
        check_proof(proof.text.replace("index 9", "index 8"), [verifier_key(each) for each in proof.keys])
    assert await open_findings(one_project) == []


async def test_each_signed_head_that_the_rows_do_not_lead_to_is_found(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    forged = Rows(3, gateway.rows.tenant)
    forged.instance = gateway.rows.instance
    for _ in range(2):
        gateway.rows.query()
        forged.query()
        await gateway.poll(note=forged.note(gateway.identity))
    await acked(gateway)
    assert await open_findings(one_project) == ["head", "head"]


async def test_projections_are_held_without_their_text_and_marked(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    query_id = gateway.rows.query("SELECT a FROM t WHERE b = 'secret'")
    bare = gateway.rows.pushed(0, "redacted", "SELECT a FROM t WHERE b = ?")
    rest = [gateway.rows.pushed(place, "none") for place in (1, 2)]
    await acked(gateway, gateway.rows.batch(rows=(bare, *rest)))
    (query,) = await found(one_project, text="from t where")
    assert (query.query_id, query.sql, query.is_redacted, query.unproved, query.intent) == (
        query_id, "SELECT a FROM t WHERE b = ?", True, True, None,
    )  # fmt: skip
    await gateway.poll(note=gateway.rows.note(gateway.identity))
    proof = await prove(
        one_project.console, one_project.project, await find_events(one_project.console.store, one_project.project, query_id)
    )
    assert len(check_proof(proof.text, [verifier_key(each) for each in proof.keys])) == 3


async def test_an_erased_row_erases_the_copy_and_every_proof_still_holds(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    query_id = gateway.rows.query("SELECT 'personal'")
    kept = gateway.rows.query("SELECT 'kept'")
    await acked(gateway)
    gateway.rows.add("ERASED", {"reason": "asked for", "seqs": [[1, 3]]}, agent_name=None, agent_intent=None)
    await acked(gateway, gateway.rows.batch(6))
    await gateway.poll(note=gateway.rows.note(gateway.identity))
    store = one_project.console.store
    events = await find_events(store, one_project.project, query_id)
    assert all(each.details is None and each.salt is None for each in events)
    proof = await prove(one_project.console, one_project.project, events)
    assert all(each.is_erased for each in check_proof(proof.text, [verifier_key(each) for each in proof.keys]))
    (whole,) = [each for each in await found(one_project) if each.query_id == kept]
    assert whole.sql == "SELECT 'kept'"


async def test_retention_deletes_events_and_keeps_the_leaves(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    gateway.rows.query()
    await acked(gateway)
    await forget(one_project.console)
    assert len(await found(one_project)) == 1
    later = msgspec.structs.replace(one_project, console=_console_in(one_project, days=91))
    await forget(later.console)
    assert await found(one_project) == []
    instance = (one_project.project, gateway.id, gateway.rows.instance)
    assert await one_project.console.store.transaction(lambda tx: tiles.leaves_between(tx, instance, 0, 3)) == gateway.rows.leaves


def _console_in(one_project: OneProject, days: int) -> Any:
    from gatewayd.control.console import Console

    return Console(one_project.plane.settings, one_project.console.store, clock=lambda: now_ms() + days * 86_400_000)


def test_no_cell_of_an_export_is_a_formula() -> None:
    nasty = "=HYPERLINK(1)", "+1", "-1", "@SUM(1)", " =1", "\t=1", "＝1"
    for text in nasty:
        query = QuerySummary(
            "q", "g", 1, text, "denied", text, None, None, text, text, False, None, None, None, None, text, [text], 1, 1,
            None, None, False,
        )  # fmt: skip
        head, row = csv.reader(io.StringIO(queries_as_csv([query]).decode()))
        assert len(head) == len(row)
        assert not [cell for cell in row if cell.lstrip(" ")[:1] in tuple("=+-@\t＝")]
        assert f"'{text}" in row


def test_tiles_give_the_roots_and_proofs_of_the_whole_tree() -> None:
    leaves = [sha256(str(number).encode()).digest() for number in range(70_000)]
    held: dict[int, bytes] = {}
    size = 0
    whole = CompactRange()
    for step in (1, 254, 1, 1, 999, 64_000, 500, 4244):
        new = leaves[size : size + step]
        last = {at: held[at] for at in tiles.edge(size) if at in held}
        for at, data in tiles.added(size, last, new).items():
            held[at] = held.get(at, b"") + data
        size += step
        whole.extend(new)
        for index in {0, size // 3, size - 1}:
            proof = inclusion_proof(index, size, tiles.over(held))
            assert root_from_inclusion(leaves[index], index, size, proof) == whole.root()
        assert range_from(size, tiles.over(held)).root() == whole.root()
