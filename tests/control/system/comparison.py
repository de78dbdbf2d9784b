"""All compared, once the load is over and nothing is owed: audit files, store, proofs, decisions, rows of the databases.

Each check raises AssertionError with what differs.
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
import trio

from gatewayd.audit.proof import check_proof
from gatewayd.audit.reader import connect_for_reading
from gatewayd.audit.rows import COLUMNS
from gatewayd.audit.tree import CompactRange
from gatewayd.audit.verify import Verifier
from gatewayd.control.audit import tiles
from gatewayd.control.audit.findings import OPEN as OPEN_FINDINGS
from gatewayd.control.audit.findings import Finding
from gatewayd.control.audit.held import SPANS, Span
from gatewayd.control.audit.one_query import find_events
from gatewayd.control.audit.proof_text import prove
from gatewayd.control.audit.stored import OF_QUERIES, StoredEvent
from gatewayd.control.console import Console
from gatewayd.control.store.days import DAYS, day_from
from gatewayd.control.store.statement import Statement
from gatewayd.control.trail.record import HEAD as TRAIL_HEAD
from gatewayd.control.trail.record import Event, commitment_of, leaf_of
from gatewayd.keys.note import VerifierKey
from tests.control.system.load import INSERT, POLICIES, Heard

_GATEWAYS: Final = Statement("SELECT gateway_id, key_id, standing FROM gateways WHERE project_id = $1")
_APPROVALS: Final = Statement(
    "SELECT approval_id, ask, state, note, decided_by, claimed_by, outcome FROM approvals WHERE project_id = $1"
)
_PENDING: Final = Statement("SELECT approval_id FROM approvals_pending WHERE project_id = $1")
_POLICIES: Final = Statement("SELECT version, yaml, note FROM policy_versions WHERE project_id = $1 ORDER BY version")
_BUNDLES: Final = Statement("SELECT version, policy_version FROM bundles WHERE project_id = $1 ORDER BY version")
_TRAIL: Final = Statement(
    "SELECT seq, event_id, ts_ms, action, person_id, project_id, envelope, details, salt, leaf FROM org_events"
    " WHERE org_id = $1 ORDER BY seq"
)
_BATCH: Final = 500
_PROOFS: Final = 1500


class AuditFile(msgspec.Struct, frozen=True):
    """One gateway's. `rows`: by id, with `seq` and `leaf` beside the columns."""

    path: Path
    key: VerifierKey
    rows: dict[str, dict[str, Any]]
    leaves: dict[int, bytes]

    @property
    def key_id(self) -> str:
        return self.key.name.removeprefix("gatewayd/")


class _Gateway(msgspec.Struct, frozen=True):
    gateway_id: str
    key_id: str
    standing: str


class _Approval(msgspec.Struct, frozen=True):
    approval_id: str
    ask: str
    state: str
    note: str | None
    decided_by: str | None
    claimed_by: str | None
    outcome: str | None

    @property
    def sql(self) -> str:
        return str(msgspec.json.decode(self.ask)["sql"])


class _Id(msgspec.Struct, frozen=True):
    approval_id: str


class _Day(msgspec.Struct, frozen=True):
    day: int


class _Policy(msgspec.Struct, frozen=True):
    version: int
    yaml: str
    note: str


class _Bundle(msgspec.Struct, frozen=True):
    version: int
    policy_version: int | None


class _TrailHead(msgspec.Struct, frozen=True):
    size: int
    frontier: bytes


def read_file(path: Path, key: VerifierKey) -> AuditFile:
    connection = connect_for_reading(str(path))
    try:
        connection.row_factory = sqlite3.Row
        found = [
            dict(row) for row in connection.execute(f"SELECT {', '.join(COLUMNS)}, seq, leaf FROM audit_events ORDER BY seq")
        ]
    finally:
        connection.close()
    leaves = {int(row.pop("seq")): bytes(row.pop("leaf")) for row in found}
    return AuditFile(path, key, {row["id"]: row for row in found}, leaves)


class Comparison:
    """`ledgers`: what the databases hold, all together: number to how often."""

    def __init__(
        self, console: Console, org_id: str, project_id: str, files: Sequence[AuditFile], ledger: Mapping[int, int], heard: Heard
    ) -> None:
        self.counts: Final[Counter[str]] = Counter()
        self._console: Final = console
        self._org_id: Final = org_id
        self._project_id: Final = project_id
        self._files: Final = files
        self._ledger: Final = ledger
        self._heard: Final = heard

    async def run(self, witness: VerifierKey, dice: Random) -> None:
        for file in self._files:
            await self._file(file)
        await self._events()
        await self._gateways()
        await self._proofs(witness, dice)
        await self._trail()
        await self._publications()
        await self._writes()

    async def _file(self, file: AuditFile) -> None:
        connection = connect_for_reading(str(file.path))
        try:
            verdict = await trio.to_thread.run_sync(Verifier(connection, [file.key], []).run)
        finally:
            connection.close()
        assert not verdict.faults, f"{file.path}: {verdict.sentence} {verdict.findings}"
        self.counts["rows of audit files, verified"] += verdict.rows
        self.counts["rows under signed heads"] += verdict.signed

    async def _events(self) -> None:
        """The store has each row of each file once, with the same columns, and no other."""
        here = {id_: row for file in self._files for id_, row in file.rows.items()}
        queries = sorted({str(row["query_id"]) for row in here.values()})
        held: dict[str, StoredEvent] = {}
        for day in await self._console.store.rows(_Day, DAYS):
            of_day = OF_QUERIES.on(day_from(day.day))
            for start in range(0, len(queries), _BATCH):
                for event in await self._console.store.rows(
                    StoredEvent, of_day, self._project_id, queries[start : start + _BATCH]
                ):
                    assert event.id not in held, f"{event.id} is held twice"
                    held[event.id] = event
        assert not here.keys() - held.keys(), f"lost: {sorted(here.keys() - held.keys())[:5]}"
        assert not held.keys() - here.keys(), f"in no file: {sorted(held.keys() - here.keys())[:5]}"
        for id_, event in held.items():
            assert _comparable(event.row()) == _comparable(here[id_]), f"{id_} differs"
        self.counts["events of the store, the same as in the files"] = len(held)

    async def _gateways(self) -> None:
        """No gateway was taken for a copy, nothing was found wrong, and each tree is the file's own."""
        store = self._console.store
        assert await store.rows(Finding, OPEN_FINDINGS, self._project_id) == []
        by_key = {each.key_id: each for each in await store.rows(_Gateway, _GATEWAYS, self._project_id)}
        total = 0
        for file in self._files:
            gateway = by_key[file.key_id]
            assert gateway.standing == "active", f"{gateway.gateway_id} is {gateway.standing}"
            for span in await store.rows(Span, SPANS, self._project_id, gateway.gateway_id):
                tree = CompactRange()
                tree.extend([file.leaves[seq] for seq in range(span.first_seq, span.first_seq + span.size)])
                instance = (self._project_id, gateway.gateway_id, span.instance)
                of_tiles = await store.transaction(partial(tiles.root_at, instance=instance, size=span.size))
                assert span.root == tree.root() == of_tiles, f"instance {span.instance}: another root"
                total += span.size
        assert total == sum(len(file.rows) for file in self._files), "the heads cover another number of rows"
        self.counts["gateways"] = len(by_key)

    async def _proofs(self, witness: VerifierKey, dice: Random) -> None:
        queries = sorted({str(row["query_id"]) for file in self._files for row in file.rows.values()})
        keys = [*(file.key for file in self._files), witness]
        for query_id in dice.sample(queries, min(len(queries), _PROOFS)):
            events = await find_events(self._console.store, self._project_id, query_id)
            proof = await prove(self._console, self._project_id, events)
            rows = check_proof(proof.text, keys)
            assert {row.row["query_id"] for row in rows} == {query_id}
            self.counts["rows proved"] += len(rows)

    async def _trail(self) -> None:
        """What people did: no gap, the tree's root, and each decision and publication once."""
        events = await self._console.store.rows(Event, _TRAIL, self._org_id)
        head = await self._console.store.row(_TrailHead, TRAIL_HEAD, self._org_id)
        assert head is not None
        assert [each.seq for each in events] == list(range(1, head.size + 1)), "a gap in the organisation's record"
        tree = CompactRange()
        for each in events:
            assert each.leaf == leaf_of(each.seq, each.envelope, commitment_of(each.salt or b"", each.details or ""))
            tree.append(each.leaf)
        assert tree.root() == CompactRange.decode(head.size, head.frontier).root()
        decided = Counter(
            (msgspec.json.decode(each.envelope)["target"], each.action)
            for each in events
            if each.action in ("approval.approved", "approval.denied")
        )
        approvals = await self._approvals()
        of_store = Counter((each.approval_id, f"approval.{each.state}") for each in approvals if each.decided_by is not None)
        assert decided == of_store, f"decided twice or unrecorded: {list((decided - of_store) + (of_store - decided))[:5]}"
        self.counts["acts of people"] = head.size
        self.counts["decisions"] = decided.total()

    async def _publications(self) -> None:
        versions = await self._console.store.rows(_Policy, _POLICIES, self._project_id)
        assert [each.version for each in versions] == list(range(1, len(versions) + 1))
        bundles = await self._console.store.rows(_Bundle, _BUNDLES, self._project_id)
        assert [each.version for each in bundles] == list(range(1, len(bundles) + 1))
        notes = Counter(each.note for each in versions)
        by_bundle = {each.version: each.policy_version for each in bundles}
        for note, bundle in self._heard.published.items():
            assert notes[note] == 1, f"{note} was answered, and is held {notes[note]} times"
            assert versions[(by_bundle[bundle] or 0) - 1].note == note
        assert all(count == 1 for note, count in notes.items() if note.startswith("publication")), "published twice"
        self.counts["policies"] = len(versions)

    async def _approvals(self) -> list[_Approval]:
        return await self._console.store.rows(_Approval, _APPROVALS, self._project_id)

    async def _writes(self) -> None:
        """Each write ran under a policy that allows it, held ones with an approval of their own that a person gave."""
        approvals = await self._approvals()
        by_id = {each.approval_id: each for each in approvals}
        for decision in self._heard.decided:
            found = by_id[decision.approval]
            assert (found.state, found.note) == (decision.state, decision.note), f"{decision} was told, and {found} is held"
        for each in approvals:
            if each.decided_by is not None:
                tried = self._heard.tried[each.note or ""]
                assert (tried.approval, tried.state) == (each.approval_id, each.state), "nobody decided this"
        for pending in await self._console.store.rows(_Id, _PENDING, self._project_id):
            assert by_id[pending.approval_id].state == "pending", f"{pending.approval_id} waits and is decided"
        claims = Counter(each.claimed_by for each in approvals if each.claimed_by is not None)
        assert all(count == 1 for count in claims.values()), "one query spent two approvals"
        spent = {each.claimed_by: each for each in approvals if each.claimed_by is not None}
        executed, unclosed = await self._allowed(spent)
        for number in self._ledger.keys() | executed.keys():
            rows, least = self._ledger.get(number, 0), executed[number]
            assert least <= rows <= least + unclosed[number], (
                f"{number}: {rows} rows, {least} EXECUTED, {unclosed[number]} unclosed"
            )
        for sql, count in self._heard.executed.items():
            number = _number(sql)
            assert self._ledger.get(number, 0) >= count, f"an agent was told that {sql} ran"
        self.counts["approvals spent"] = len(spent)
        self.counts["writes in the databases"] = sum(self._ledger.values())
        self.counts["writes whose outcome is not recorded"] = unclosed.total()

    async def _allowed(self, spent: Mapping[str, _Approval]) -> tuple[Counter[int], Counter[int]]:
        """By number: writes that were EXECUTED, and allowed ones without an outcome."""
        kinds = await self._kinds()
        executed, unclosed = Counter[int](), Counter[int]()
        for file in self._files:
            of_query = defaultdict[str, dict[str, dict[str, Any]]](dict)
            for row in file.rows.values():
                of_query[row["query_id"]][row["event_type"]] = msgspec.json.decode(row["payload"])
            for query_id, events in of_query.items():
                sql = str(events.get("ATTEMPTED", {}).get("sql_raw", ""))
                decided = events.get("DECIDED", {})
                if not sql.startswith(INSERT.partition("{")[0]) or decided.get("decision") != "ALLOW":
                    continue
                kind, approval = kinds[decided["bundle"]], spent.get(query_id)
                assert kind != "denied", f"bundle {decided['bundle']} does not allow {sql}"
                if kind == "held":
                    assert approval is not None, f"{sql} ran under bundle {decided['bundle']} without an approval"
                if approval is not None:
                    assert (approval.sql, approval.state) == (sql, "approved"), f"{sql} spent {approval}"
                self.counts[f"writes allowed, {kind}"] += 1
                if "EXECUTED" in events:
                    executed[_number(sql)] += 1
                elif "FAILED" not in events:
                    unclosed[_number(sql)] += 1
        return executed, unclosed

    async def _kinds(self) -> dict[int, str]:
        versions = {each.version: each.yaml for each in await self._console.store.rows(_Policy, _POLICIES, self._project_id)}
        names = {text: name for name, text in POLICIES.items()}
        bundles = await self._console.store.rows(_Bundle, _BUNDLES, self._project_id)
        return {each.version: names.get(versions.get(each.policy_version or 0, ""), "before the load") for each in bundles}


def _comparable(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "payload": msgspec.json.decode(row["payload"])}


def _number(sql: str) -> int:
    return int(sql.partition("(")[2].rstrip(")"))
