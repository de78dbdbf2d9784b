"""Verifies that an audit file is what was recorded: recomputes every leaf and root, and checks every head and signature
(docs/audit-format.md, Verifying).

Reads only, in one transaction, row by row. Trusts the given keys and nothing in the file.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final

from gatewayd.audit import kept_heads, schema
from gatewayd.audit.heads import Head, head_in, head_in_or_none
from gatewayd.audit.ids import is_ulid
from gatewayd.audit.leaf import PayloadRefused, commitment_of, facts_of, leaf_of
from gatewayd.audit.meta import Meta, MetaDamaged, check_signature, read_meta
from gatewayd.audit.open_chains import OpenChains
from gatewayd.audit.row_types import STORED_COLUMNS, USUAL_TYPES, wrong_type
from gatewayd.audit.tree import HASH_BYTES, CompactRange, is_consistent
from gatewayd.audit.verdict import AuditFinding, FileVerdict
from gatewayd.keys.ed25519 import KeyRefused
from gatewayd.keys.note import NoteRefused, VerifierKey, open_note, verifier_key

_FAULTS_LISTED: Final = 50
_CLOCK_MS: Final = 1000
_PIECE: Final = 1000
_ROWS: Final = f"SELECT {', '.join(STORED_COLUMNS)} FROM audit_events ORDER BY rowid"
_EVENTS: Final = frozenset({"ATTEMPTED", "DECIDED", "EXECUTED", "FAILED", "POLICY_RELOADED", "ERASED"})

CHANGED: Final = "the row was changed, or its leaf was, after it was recorded"
CUT: Final = "rows at the end are missing: the file was cut, or an older copy of it was put back"
REPLACED: Final = "the file was replaced by another one, or its metadata were"


class _Instance:
    """One instance while its rows are read: its tree so far, and the heads to compare once the tree has their size."""

    def __init__(self, name: str, first_seq: int, end_seq: int | None, tree: CompactRange) -> None:
        self.name = name
        self.first_seq = first_seq
        self.end_seq = end_seq
        self.tree = tree
        self.pruned = tree.size
        self.wanted: dict[int, list[tuple[bytes, str]]] = {}  # size -> (root, where the head is from)
        self.roots: dict[int, bytes] = {}
        self.matched = self.last_matched_seq = 0
        self.is_broken = False
        self.next_seq = first_seq + tree.size  # 0 once rows are missing

    def append(self, leaf: bytes) -> None:
        self.tree.append(leaf)
        self.next_seq += 1

    def give_up(self) -> None:
        self.is_broken = True
        self.next_seq = 0


class Verifier:
    """Verifies one file, once. `keys` are trusted. If none is given the file's own key is used, and a note says so."""

    def __init__(
        self, connection: sqlite3.Connection, keys: Sequence[VerifierKey], notes: Sequence[tuple[str, str]] = ()
    ) -> None:
        self._connection = connection
        self._keys = list(keys)
        self._notes = notes  # (note, where it is from)
        self._findings: list[AuditFinding] = []
        self._more = 0
        self._instances: list[_Instance] = []
        self._erased: dict[int, bytes] = {}
        self._erased_seen: set[int] = set()
        self._named_erased: list[tuple[int, int]] = []
        self._chains = OpenChains()
        self._rows = self._first_seq = self._last_seq = self._before_format_2 = self._heads = 0

    def run(self, advance: Callable[[int], None] = lambda _rows: None) -> FileVerdict:
        """Verifies the file. `advance` is called with the number of rows done since its last call."""
        connection = self._connection
        connection.execute("BEGIN")
        try:
            self._look(advance)
        except sqlite3.DatabaseError as failure:
            self._fault(f"SQLite cannot read the file: {failure}", "the file is damaged")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        signed = sum(each.matched for each in self._instances)
        findings = tuple(self._findings)
        return FileVerdict(
            findings, self._rows, self._first_seq, self._last_seq, signed, self._heads, len(self._instances), self._more
        )

    def _look(self, advance: Callable[[int], None]) -> None:
        connection = self._connection
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != schema.APPLICATION_ID or version not in (1, schema.FORMAT):
            self._fault(f"found application {application} and format {version}, expected an audit file of format {schema.FORMAT}")
            return
        if version == 1:
            (rows,) = connection.execute("SELECT count(*) FROM audit_events").fetchone()
            self._note(f"the file has format 1: none of its {rows} rows can be proved; gatewayd converts it when it opens it")
            return
        for (problem,) in connection.execute(f"PRAGMA integrity_check({_FAULTS_LISTED})").fetchall():
            if problem != "ok":
                self._fault(f"SQLite's own check: {problem}", "the file is damaged, or was written to by other means than SQLite")
        for name in schema.differences(connection):
            self._fault(f"{name} is not as gatewayd makes it", "somebody changed the file's structure")
        meta = self._meta()
        if meta is None:
            return
        self._prepare(meta)
        self._walk(meta, advance)
        self._conclude(meta)

    # before the rows

    def _meta(self) -> Meta | None:
        rows: dict[str, str] = dict(self._connection.execute("SELECT key, value FROM meta"))
        try:
            if any(type(key) is not str or type(value) is not str for key, value in rows.items()):
                raise MetaDamaged("its meta table holds other values than texts")
            meta = read_meta(rows)
            own = verifier_key(meta.verifier)
        except (MetaDamaged, KeyRefused) as damaged:
            self._fault(str(damaged), REPLACED)
            return None
        if not self._keys:
            self._keys.append(own)
            self._note("no key was given, so the file's own was taken: name the gateway's key with --key to know who signed")
        if own not in self._keys:
            self._fault(f"the file's key {own.key.key_id} is not one of those given", "another identity wrote this file")
        for each in meta.previous_instances:
            try:
                key = verifier_key(each.verifier)
            except KeyRefused as refused:
                self._fault(f"the key of instance {each.instance}: {refused}", REPLACED)
                continue
            if key not in self._keys:
                self._note(f"instance {each.instance} was signed by {key.key.key_id}, which was not given; its heads prove less")
                self._keys.append(key)
        try:
            check_signature(rows, own)
        except (MetaDamaged, NoteRefused) as refused:
            self._fault(f"the metadata are not signed as they stand: {refused}", REPLACED)
        return meta

    def _prepare(self, meta: Meta) -> None:
        expected = 1
        for name, first_seq, end_seq in meta.spans():
            self._instances.append(_Instance(name, first_seq, end_seq, meta.pruned_tree(name)))
            if first_seq != expected:
                self._fault(f"instance {name} begins at seq {first_seq}, expected {expected}", "rows are missing", first_seq)
            expected = end_seq or first_seq
        for each in meta.previous_instances:
            instance = self._instance(each.instance)
            assert instance is not None
            if each.reason in ("rows missing", "damaged"):
                self._fault(
                    f"gatewayd itself found {each.reason} when it opened the file, and began a new instance",
                    CUT,
                    each.first_seq + each.size,
                    each.until,
                )
            self._want(instance, each.size, each.root_bytes, "the metadata")
        if kept_heads.summary(self._connection) != meta.heads:
            self._fault("the kept heads are not the ones that the metadata tell of", "heads were taken out or put in")
        self._kept_heads()
        for note, where in self._notes:
            self._outer_head(note, where)
        for seq, commitment in self._connection.execute("SELECT seq, commitment FROM erased"):
            if type(commitment) is not bytes or len(commitment) != HASH_BYTES:
                self._fault("its commitment is none", CHANGED, seq)
                continue
            self._erased[seq] = commitment

    def _kept_heads(self) -> None:
        by_instance: dict[str, dict[int, bytes]] = {}
        kept = list(kept_heads.kept(self._connection))
        for each in reversed(kept):  # from the largest on: a proof leads to a later one
            where = f"the kept head of {each.size} rows of instance {each.instance}"
            instance = self._instance(each.instance)
            try:
                head, _ = each.verified(self._keys)
            except NoteRefused as refused:
                self._fault(f"{where}: {refused}", "the head was changed, or another key signed it")
                continue
            if instance is None:
                self._fault(f"{where} is of an instance that the metadata do not know", REPLACED)
                continue
            self._heads += 1
            roots = by_instance.setdefault(each.instance, {})
            roots[each.size] = head.root
            if each.size >= instance.pruned:
                self._want(instance, each.size, head.root, where)
                continue
            later = roots.get(each.later or 0)
            proof = each.proof or b""
            hashes = [proof[start : start + HASH_BYTES] for start in range(0, len(proof), HASH_BYTES)]
            if later is None or not is_consistent(each.size, each.later or 0, hashes, head.root, later):
                self._fault(f"{where} is not proved to be the beginning of what follows", "deleted rows were not these")

    def _outer_head(self, note: str, where: str) -> None:
        try:
            head = head_in(open_note(note, self._keys)[0])
        except NoteRefused as refused:
            if any(key.name in note for key in self._keys):
                self._fault(f"the head from {where}: {refused}", "it was changed, or another key signed it")
            else:
                self._note(f"the head from {where} was not looked at: {refused}")
            return
        instance = self._instance(head.instance)
        if instance is None:
            self._fault(f"the head from {where} is of instance {head.instance}, which this file does not know", REPLACED)
            return
        if head.size < instance.pruned:
            self._pruned_head(instance, head, where)
            return
        self._want(instance, head.size, head.root, f"the head of {head.size} rows from {where}")

    def _pruned_head(self, instance: _Instance, head: Head, where: str) -> None:
        for each in kept_heads.kept(self._connection, instance.name):
            if each.size == head.size:
                if head_in_or_none(each.note) != head:
                    self._fault(f"the head of {head.size} rows from {where} is not the one that the file kept", REPLACED)
                return
        self._note(f"the head of {head.size} rows from {where} is over deleted rows only, and is not kept: it cannot be compared")

    def _want(self, instance: _Instance, size: int, root: bytes, where: str) -> None:
        instance.wanted.setdefault(size, []).append((root, where))
        if size == instance.tree.size:
            self._compare(instance)

    def _instance(self, name: str) -> _Instance | None:
        return next((each for each in self._instances if each.name == name), None)

    # the rows

    def _walk(self, meta: Meta, advance: Callable[[int], None]) -> None:
        last_id, last_ts, expected = "", 0, meta.pruned_to + 1
        selected = self._connection.execute(_ROWS)
        while rows := selected.fetchmany(_PIECE):
            for row in rows:
                seq, ts, id_ = row[12], row[8], row[0]
                if tuple(map(type, row)) not in USUAL_TYPES and (wrong := wrong_type(row)):
                    self._fault(f"its {wrong} is of another type", CHANGED, seq if type(seq) is int else None)
                    continue
                if not id_ > last_id or not is_ulid(id_):
                    self._fault("its id does not rise", "rows were swapped or put in", seq, ts)
                last_id = id_
                if seq is None:
                    self._before_format_2 += 1
                    if self._rows or id_ > meta.format_1_to or row[13] is not None or row[14] is not None:
                        self._fault(f"row {id_} stands in no tree", "it was put in", None, ts)
                    continue
                if seq != expected:
                    self._gap(expected, seq, ts)
                expected = seq + 1
                self._rows += 1
                if ts < last_ts - _CLOCK_MS:
                    self._note(f"the clock was {(last_ts - ts) / 1000:.0f} s ahead before this row", "it was set", seq, ts)
                last_ts = ts
                self._row(row, seq, row[13], row[14])
                for each in self._instances:
                    if seq == each.next_seq:
                        each.append(row[13])
                        if each.tree.size in each.wanted:
                            self._compare(each)
            self._first_seq = self._first_seq or next((row[12] for row in rows if type(row[12]) is int), 0)
            advance(len(rows))
        self._last_seq = max(expected - 1, 0) if self._rows else 0

    def _row(self, columns: tuple[Any, ...], seq: int, leaf: bytes, salt: bytes | None) -> None:
        ts: int = columns[8]
        try:
            facts = facts_of(columns)
        except PayloadRefused as refused:
            self._fault(str(refused), CHANGED, seq, ts)
            return
        if salt is not None:
            commitment = commitment_of(salt, facts.details)
            if facts.is_erased:
                self._fault("it says that it was erased, and has its salt", CHANGED, seq, ts)
        else:
            known = self._erased.get(seq)
            self._erased_seen.add(seq)
            if known is None or not facts.is_erased or facts.has_details:
                self._fault("its details are gone, and not as an erasure leaves them", CHANGED, seq, ts)
                return
            commitment = known
        if leaf_of(seq, facts.envelope, commitment) != leaf:
            self._fault("its leaf is not that of its columns", CHANGED, seq, ts)
        event = columns[9]
        if event == "ERASED":
            self._named_erased += facts.seq_ranges()
        elif event not in _EVENTS:
            self._note(f"its event type {str(event)[:40]!r} is not one that this gatewayd knows", "", seq, ts)
        self._chains.take(columns)

    def _gap(self, expected: int, seq: int, ts: int) -> None:
        what = f"seq {expected} was expected here"
        if seq > expected:
            what = f"{seq - expected} row{'' if seq - expected == 1 else 's'} from seq {expected} on are missing"
        self._fault(what, "rows were deleted, swapped or put in", seq, ts)
        for each in self._instances:
            if each.next_seq and each.next_seq <= max(seq, expected) and (each.end_seq is None or each.next_seq < each.end_seq):
                each.give_up()

    def _compare(self, instance: _Instance) -> None:
        root = instance.tree.root()
        for wanted, where in instance.wanted.pop(instance.tree.size, ()):
            if wanted == root:
                instance.matched = instance.tree.size - instance.pruned
                instance.last_matched_seq = instance.next_seq - 1
            else:
                after = f"after seq {instance.last_matched_seq}" if instance.last_matched_seq else "before it"
                self._fault(
                    f"the rows up to here are not the ones that {where} is over; the first that differs is {after}",
                    "rows were changed and their leaves made to match",
                    instance.next_seq - 1,
                )
                instance.wanted.clear()  # what comes after differs too

    # after the rows

    def _conclude(self, meta: Meta) -> None:
        for each in self._instances:
            for size in sorted(each.wanted):
                for _, where in each.wanted[size]:
                    if each.is_broken:
                        continue  # the gap was told
                    if each.end_seq is not None and each.next_seq >= each.end_seq and meta.pruned_to >= each.end_seq:
                        self._note(f"{where} goes beyond the end of its instance; those rows were deleted: it cannot be compared")
                        continue
                    self._fault(f"{where} is over {size} rows, and only {each.tree.size} are here", CUT, each.next_seq)
        for seq in sorted(self._erased_seen):
            if not any(first <= seq <= last for first, last in self._named_erased):
                self._fault("its details were erased, and no ERASED row says so", "they were taken out by other means", seq)
        for seq in sorted(self._erased.keys() - self._erased_seen):
            self._fault("the erased table names it, and its details are there", CHANGED, seq)
        present = self._instances[-1]
        if self._last_seq and present.next_seq - 1 < self._last_seq and not present.is_broken:
            self._fault("rows stand outside of every instance", CHANGED, self._last_seq)
        unsigned = present.tree.size - present.pruned - present.matched
        if unsigned > 0:
            self._note(
                f"the last {unsigned} row{'' if unsigned == 1 else 's'} are not under a signed head yet",
                "gatewayd signs every 60 s and when it stops; until then whoever can write the file can change them",
                present.next_seq - unsigned,
            )
        if self._before_format_2:
            self._note(f"{self._before_format_2} rows are from before format 2 and cannot be proved")
        if self._erased_seen:
            self._note(f"the details of {len(self._erased_seen)} rows were erased; the rest of them is proved")
        for line in self._chains.lines():
            self._note(line)
        if not self._notes:
            self._note("no head from outside of the file was given: a whole file put back from a backup would not be noticed")

    def _fault(self, what: str, meaning: str = "", seq: int | None = None, ts: int | None = None) -> None:
        if sum(finding.kind == "fault" for finding in self._findings) >= _FAULTS_LISTED:
            self._more += 1
            return
        self._findings.append(AuditFinding("fault", what, meaning, seq, ts))

    def _note(self, what: str, meaning: str = "", seq: int | None = None, ts: int | None = None) -> None:
        if len(self._findings) < 4 * _FAULTS_LISTED:
            self._findings.append(AuditFinding("note", what, meaning, seq, ts))
