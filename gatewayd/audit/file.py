"""The audit file: SQLite, one table of events, one connection that writes (docs/audit-format.md).

Blocking code, for one thread at a time. The writing connection also makes every checkpoint, because SQLite before 3.51.3 can
damage a file when two connections write or checkpoint at the same time (sqlite.org/wal.html, "the WAL-reset bug"). SQLite makes
only the last checkpoint by itself, in `close`.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from gatewayd.audit import kept_heads
from gatewayd.audit.erasing import Erasable, erase
from gatewayd.audit.events import DEFAULT_DATABASE, Agent, Erased, Event, Query, QueryId
from gatewayd.audit.heads import Head, sign_head
from gatewayd.audit.ids import RisingIds, is_ulid, new_ulid
from gatewayd.audit.kept_heads import KeptHead
from gatewayd.audit.leaf import SALT_BYTES, commitment_of, leaf_of
from gatewayd.audit.meta import Acked, Instance, Linked, Meta, MetaDamaged, Reason, read_meta
from gatewayd.audit.open_file import LOCKED_BY_OTHERS_MS, AuditFileUnusable, Synchronous, connect, create_if_absent, reason_of
from gatewayd.audit.pruning import PruningPlan, pruned_meta
from gatewayd.audit.reader import connect_for_reading
from gatewayd.audit.resume import ResumeState, begin_instance, resume
from gatewayd.audit.rows import COLUMNS, Row, row_of
from gatewayd.audit.schema import APPLICATION_ID, FORMAT, convert, create
from gatewayd.audit.stored_tree import LeafMissing, StoredTree
from gatewayd.audit.tree import CompactRange, range_from
from gatewayd.keys.ed25519 import SigningKey
from gatewayd.keys.identity import verifier_of

Value = str | int | bytes | None
_ROWS_PER_STATEMENT: Final = 16
_OLDEST: Final = "SELECT id, seq, leaf FROM audit_events WHERE id <= ? ORDER BY id LIMIT ?"
_LEAVES_FROM: Final = "SELECT leaf FROM audit_events WHERE seq >= ? ORDER BY seq"
_INSERTED: Final = (*COLUMNS, "seq", "leaf", "salt")
_WIDTH: Final = len(_INSERTED)

# One statement for all rows of a small batch: SQLite then runs it in one step and releases the GIL once instead of once per row.
_INSERTS: Final = tuple(
    f"INSERT INTO audit_events ({', '.join(_INSERTED)}) VALUES " + ", ".join([f"({', '.join('?' * len(_INSERTED))})"] * rows)
    for rows in range(1, _ROWS_PER_STATEMENT + 1)
)


class HeadDraft(msgspec.Struct, frozen=True):
    """A head that may be signed once the log is synced."""

    instance: Instance
    tree: CompactRange


class AuditFile:
    """An open audit file. Every method may raise sqlite3.Error or OSError; a failed `insert` leaves nothing in the file.

    `identity` signs the heads and the metadata. `signed_last` is the last head that it signed for any file, if that is known.
    """

    def __init__(self, path: str, synchronous: Synchronous, identity: SigningKey, signed_last: Head | None = None) -> None:
        self.path = path
        self.synchronous: Synchronous = synchronous
        self._identity = identity
        self._waits_ms = LOCKED_BY_OTHERS_MS
        try:
            create_if_absent(path)
            self._connection = self.connect()
        except (sqlite3.Error, OSError) as failure:
            raise AuditFileUnusable(path, reason_of(failure)) from failure
        try:
            self._prepare(signed_last)
            self.inode = _inode(path)
            self._wal_inode = _inode(path + "-wal")
        except (sqlite3.Error, OSError) as failure:
            self._connection.close()
            raise AuditFileUnusable(path, reason_of(failure)) from failure
        except AuditFileUnusable:
            self._connection.close()
            raise

    def connect(self) -> sqlite3.Connection:
        """A connection that writes, as the file's own is. Raises AuditFileUnusable or sqlite3.Error."""
        return connect(self.path, self.synchronous, cached_statements=_ROWS_PER_STATEMENT + 16)

    def _prepare(self, signed_last: Head | None) -> None:
        connection = self._connection
        # A write lock from the start: nobody else can create the file at the same time, and a read-only file fails here.
        connection.execute("BEGIN IMMEDIATE")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (objects,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        self.is_new = (application, version, objects) == (0, 0, 0)
        if self.is_new:
            create(connection)
        elif application != APPLICATION_ID:
            raise AuditFileUnusable(self.path, f"it is another program's SQLite file (application_id {application})")
        elif version == 1:
            convert(connection)
        elif version != FORMAT:
            raise AuditFileUnusable(self.path, f"found format {version}, expected format 1 or {FORMAT}")
        self._resume(signed_last)
        connection.execute("COMMIT")
        if connection.execute("SELECT 1 FROM erased LIMIT 1").fetchone():
            self.empty_log()  # for an erasure that was killed before it did this
        (largest,) = connection.execute("SELECT max(id) FROM audit_events").fetchone()
        self.last_id = max(largest or "", self._meta.last_id)
        if self.last_id and not is_ulid(self.last_id):
            raise AuditFileUnusable(self.path, "its largest id is not a ULID")

    def _resume(self, signed_last: Head | None) -> None:
        rows: dict[str, str] = dict(self._connection.execute("SELECT key, value FROM meta"))
        try:
            state = resume(self._connection, rows, verifier_of(self._identity), _now_ms(), os.urandom(10), signed_last)
        except MetaDamaged as damaged:
            raise AuditFileUnusable(self.path, str(damaged)) from None
        self.broken = state.broken
        self._tree = state.tree
        self._next_seq = state.next_seq
        self._meta = state.meta
        if "instance" not in rows or state.meta != read_meta(rows):
            self._write_meta(state.meta)
        head = kept_heads.last(self._connection, state.meta.instance)
        self.head_size = head.size if head is not None else 0

    def start(self, ids: RisingIds) -> None:
        """Makes `ids` continue above every id that the file holds or ever held. Rows about erasures take their ids from it
        too."""
        self._ids = ids
        if self.last_id:
            try:
                ids.start_above(self.last_id)
            except ValueError as failure:
                raise AuditFileUnusable(self.path, f"its largest id: {failure}") from failure

    @property
    def meta(self) -> Meta:
        return self._meta

    @property
    def size(self) -> int:
        """The number of leaves of the present instance."""
        return self._tree.size

    def insert(self, rows: Sequence[tuple[str, Row]]) -> None:
        """Commits all rows (id, row) in one transaction, or none of them. Gives them the next seqs, new salts and their
        leaves."""
        values, tree = self._leaves(rows)
        if len(rows) <= _ROWS_PER_STATEMENT:
            self._connection.execute(_INSERTS[len(rows) - 1], values)  # its own transaction
        else:
            with self._transaction():
                for start in range(0, len(values), _ROWS_PER_STATEMENT * _WIDTH):
                    part = values[start : start + _ROWS_PER_STATEMENT * _WIDTH]
                    self._connection.execute(_INSERTS[len(part) // _WIDTH - 1], part)
        self._tree, self._next_seq = tree, self._next_seq + len(rows)

    def _leaves(self, rows: Sequence[tuple[str, Row]]) -> tuple[list[Value], CompactRange]:
        """The values to store, row by row, and the tree with their leaves, which the caller takes over once they are
        committed."""
        tree, seq, at = self._tree.copy(), self._next_seq, 0
        salts = os.urandom(SALT_BYTES * len(rows))
        values: list[Value] = []
        for event_id, row in rows:
            salt = salts[at : at + SALT_BYTES]
            leaf = leaf_of(seq, row.envelope(event_id), commitment_of(salt, row.details))
            tree.append(leaf)
            values += (event_id, *row.columns, seq, leaf, salt)
            seq += 1
            at += SALT_BYTES
        return values, tree

    def erase(self, erasable: Erasable, reason: str, now_ms: int) -> int:
        """Erases the details of these rows and appends the ERASED row, in one transaction. Returns how many rows had details."""
        with self._transaction():
            ranges = erase(self._connection, erasable)
            if not ranges:
                return 0
            query_id = QueryId(new_ulid(now_ms, os.urandom))
            query = Query(query_id, DEFAULT_DATABASE, Agent(), None)
            row = row_of(Event(query, now_ms, Erased(reason, tuple(ranges))))
            values, tree = self._leaves([(self._ids.next(now_ms), row)])
            self._connection.execute(_INSERTS[0], values)
        self._tree, self._next_seq = tree, self._next_seq + 1
        return sum(last - first + 1 for first, last in ranges)

    def empty_log(self) -> bool:
        """Checkpoints and truncates the write-ahead log, which holds erased texts. False while a reader still needs it."""
        (busy, _, _) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    def draft_head(self) -> HeadDraft | None:
        """A head over all committed rows; None if the last one covers them."""
        if self._tree.size == self.head_size:
            return None
        return HeadDraft(self._meta.instance, self._tree.copy())

    def sync_log(self) -> None:
        """Syncs the write-ahead log, so that every committed row survives a power cut. For any thread."""
        descriptor = os.open(self.path + "-wal", os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def keep_head(self, draft: HeadDraft) -> str | None:
        """Signs and keeps a head over synced rows. Returns the note; None if its instance has ended."""
        if draft.instance != self._meta.instance:
            return None
        tree = draft.tree
        note = sign_head(draft.instance, tree.size, tree.root(), self._identity)
        with self._transaction():
            kept_heads.keep(self._connection, KeptHead(draft.instance, tree.size, _now_ms(), note, tree.encode()))
            meta = self._write_meta(msgspec.structs.replace(self._meta, heads=kept_heads.summary(self._connection)))
        self._meta = meta
        self.head_size = tree.size
        return note

    def head_now(self) -> str | None:
        """The signed head over all committed rows, made now if necessary; None for an instance without rows."""
        draft = self.draft_head()
        if draft is not None:
            self.sync_log()
            return self.keep_head(draft)
        last = kept_heads.last(self._connection, self._meta.instance)
        return last.note if last is not None else None

    def begin_instance(self, reason: Reason, first_seq: int | None = None) -> Meta:
        """Begins a new instance at the next seq, or at `first_seq` of the present one: a fork, whose rows from there on belong to
        the new instance. Raises LeafMissing for any other seq."""
        meta, first = self._meta, first_seq if first_seq is not None else self._next_seq
        if not max(meta.first_seq, meta.pruned_to + 1) <= first <= self._next_seq:
            raise LeafMissing(f"seq {first} is not one of the present instance")
        before, after = self._split(first)
        state = ResumeState(meta, before, first)
        instance = Instance(new_ulid(_now_ms(), os.urandom))
        begun = begin_instance(state, verifier_of(self._identity), reason, _now_ms(), instance)
        with self._transaction():
            self._write_meta(begun.meta)
        self._meta, self._tree, self.head_size = begun.meta, after, 0
        return begun.meta

    def _split(self, first_seq: int) -> tuple[CompactRange, CompactRange]:
        """The tree of the present instance before `first_seq`, and a tree of the rows from there on."""
        if first_seq == self._next_seq:
            return self._tree, CompactRange()
        size = first_seq - self._meta.first_seq
        tree = StoredTree(self._meta.first_seq, self._meta.pruned_tree(self._meta.instance))
        before = range_from(size, tree.over(self._connection))
        after = CompactRange()
        after.extend(leaf for (leaf,) in self._connection.execute(_LEAVES_FROM, (first_seq,)))
        return before, after

    def note_acknowledged(self, acked: Acked) -> None:
        """Stores what the control plane has acknowledged of the present instance."""
        self._change_meta(acked=acked)

    def note_linked(self, linked: Linked) -> None:
        """Stores whether the gateway of this file is linked."""
        self._change_meta(linked=linked)

    def note_taints_kept(self) -> None:
        """Keeps that there is a file of taints."""
        if not self._meta.taints_kept:
            self._change_meta(taints_kept=True)

    def _change_meta(self, **changes: object) -> None:
        with self._transaction():
            meta = self._write_meta(msgspec.structs.replace(self._meta, **changes))
        self._meta = meta

    def _write_meta(self, meta: Meta) -> Meta:
        """Writes the signed metadata within a transaction; the caller takes the value over once it is committed."""
        self._connection.execute("DELETE FROM meta")
        self._connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.rows(self._identity).items())
        return meta

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.rollback()

    def delete_before(self, cursor: str, at_most: int, plan: PruningPlan) -> int:
        """Deletes up to `at_most` rows with an id up to and including `cursor`, oldest first; returns how many.

        `plan` was made for that cursor and given to `keep_plan`. Rows written after it was made are kept.
        """
        connection = self._connection
        found = connection.execute(_OLDEST, (cursor, at_most)).fetchall()
        found = [(id_, seq, leaf) for id_, seq, leaf in found if seq is None or seq <= plan.last_seq]
        if not found:
            return 0
        meta = pruned_meta(self._meta, found)
        with self._transaction():
            connection.execute("DELETE FROM audit_events WHERE id <= ?", (found[-1][0],))
            connection.execute("DELETE FROM erased WHERE seq <= ?", (meta.pruned_to,))
            (largest,) = connection.execute("SELECT max(id) FROM audit_events").fetchone()
            last_id = max(largest or "", found[-1][0], meta.last_id)
            meta = self._write_meta(msgspec.structs.replace(meta, last_id=last_id))
        self._meta = meta
        return len(found)

    def keep_plan(self, plan: PruningPlan) -> None:
        """Stores proofs that keep the older heads provable without their rows. To be called before the first row is deleted."""
        if not plan.targets:
            return
        self.sync_log()
        with self._transaction():
            for target in plan.targets:
                note = sign_head(target.instance, target.tree.size, target.tree.root(), self._identity)
                head = KeptHead(target.instance, target.tree.size, _now_ms(), note, target.tree.encode())
                kept_heads.keep(self._connection, head)
                for size, proof in target.proofs:
                    kept_heads.prove(self._connection, target.instance, size, target.tree.size, b"".join(proof))
            meta = self._write_meta(msgspec.structs.replace(self._meta, heads=kept_heads.summary(self._connection)))
        self._meta = meta

    def ensure_readable(self) -> None:
        """Raises sqlite3.Error if another process could not read the newest row because the file was overwritten.

        The writing connection does not notice that, because of its page cache: it could write for a long time into a file that
        nobody can read. An overwritten header is repaired from the cache.
        """
        try:
            self._read_as_others()
        except sqlite3.DatabaseError:
            self._connection.execute(f"PRAGMA user_version = {FORMAT}")  # writes the cached first page into the log
            self._read_as_others()

    def _read_as_others(self) -> None:
        with contextlib.closing(connect_for_reading(self.path)) as other:
            other.execute("SELECT max(id) FROM audit_events").fetchone()

    def wait_for_others(self, at_most_ms: int) -> None:
        """Sets how long `insert` and `delete_before` wait while another process writes to the file."""
        if at_most_ms != self._waits_ms:
            self._connection.execute(f"PRAGMA busy_timeout = {at_most_ms}").fetchone()
            self._waits_ms = at_most_ms

    def is_in_place(self) -> bool:
        """Whether the path still names the open file, which may have been deleted or replaced."""
        try:
            return _inode(self.path) == self.inode
        except OSError:
            return False

    def wal_bytes(self) -> int:
        """The size of the write-ahead log in bytes."""
        try:
            return os.stat(self.path + "-wal").st_size
        except FileNotFoundError:
            return 0

    def checkpoint(self) -> None:
        """Copies the write-ahead log into the file as far as readers allow."""
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def close(self) -> None:
        """Closes the file with a final checkpoint. Never raises: the rows are in the log in any case."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()
        # The log of a file that was replaced would be replayed into the file that is at the path now.
        with contextlib.suppress(OSError):
            if not self.is_in_place() and _inode(self.path + "-wal") == self._wal_inode:
                os.unlink(self.path + "-wal")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _inode(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
