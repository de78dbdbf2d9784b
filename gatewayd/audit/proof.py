"""The proof of one query as a self-contained text: its rows, inclusion proofs and signed head (docs/audit-format.md, Proofs).

For each row one C2SP tlog-proof; its `extra` line carries the row, so that a verifier makes the leaf itself.
"""

import re
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from gatewayd.audit import kept_heads
from gatewayd.audit.heads import WITNESS_NAME, Head, head_in
from gatewayd.audit.leaf import Facts, PayloadRefused, canonical, commitment_of, facts_of, leaf_of
from gatewayd.audit.meta import read_meta
from gatewayd.audit.proof_form import FIRST_LINE, proof_text, read_proof
from gatewayd.audit.reader import Trees
from gatewayd.audit.rows import COLUMNS
from gatewayd.audit.stored_tree import StoredTree
from gatewayd.audit.tree import inclusion_proof, root_from_inclusion
from gatewayd.keys.ed25519 import base64_of, strict_base64
from gatewayd.keys.note import NoteRefused, VerifierKey, open_note

_MOST_CHARACTERS: Final = 64 * 1024 * 1024
_CHAIN: Final = f"""
SELECT {", ".join(COLUMNS)}, seq, salt, (SELECT commitment FROM erased WHERE erased.seq = e.seq)
FROM audit_events AS e WHERE query_id = coalesce((SELECT query_id FROM audit_events WHERE id = ?), ?) ORDER BY id
"""


class NoProof(Exception):
    """There is no proof; the text says why."""


class ProofRefused(Exception):
    """The text proves nothing; the message says which part is wrong."""


class _Extra(msgspec.Struct, forbid_unknown_fields=True):
    row: dict[str, str | int | None]
    seq: int
    salt: str | None = None
    commitment: str | None = None  # instead of the salt, once the details are erased


class ProvedRow(msgspec.Struct, frozen=True):
    """A row that `head` covers, with its columns by name. `signer` signed the head: the gateway, or a witness of its file."""

    row: dict[str, Any]
    seq: int
    head: Head
    is_erased: bool
    signer: VerifierKey


def prove(connection: sqlite3.Connection, id_: str, trees: Trees) -> str:
    """The proof of all rows of a query. `id_` is the query's id or the id of one of its events. Raises NoProof, LeafMissing or
    sqlite3.Error."""
    rows = connection.execute(_CHAIN, (id_, id_)).fetchall()
    if not rows:
        raise NoProof("nothing is recorded under this id; it may be of another audit file, or deleted")
    meta = read_meta(dict(connection.execute("SELECT key, value FROM meta")))
    blocks: list[str] = []
    for row in rows:
        columns, seq, salt, commitment = row[:12], row[12], row[13], row[14]
        if seq is None:
            raise NoProof("its rows are from before format 2 and stand in no tree")
        instance, first_seq, _ = next(span for span in reversed(meta.spans()) if seq >= span[1])
        index = seq - first_seq
        head = kept_heads.last(connection, instance)
        if head is None or head.size <= index:
            raise NoProof("no signed head is over its rows yet; gatewayd makes one every 60 s")
        pruned = meta.pruned_tree(instance)
        tree = trees.setdefault((instance, pruned.size), StoredTree(first_seq, pruned))
        proof = inclusion_proof(index, head.size, tree.over(connection))
        shown = {"row": dict(zip(COLUMNS, columns, strict=True)), "seq": seq}
        shown |= {"salt": base64_of(salt)} if salt is not None else {"commitment": base64_of(commitment or b"")}
        blocks.append(proof_text(canonical(shown), index, proof, head.note))
    return "".join(blocks)


def check_proof(text: str, keys: Sequence[VerifierKey]) -> list[ProvedRow]:
    """The rows that the text proves, under a head that one of `keys` signed. Raises ProofRefused."""
    if len(text) > _MOST_CHARACTERS:
        raise ProofRefused(f"it is longer than {_MOST_CHARACTERS} characters")
    starts = [found.start() for found in re.finditer(f"^{re.escape(FIRST_LINE)}$", text, re.MULTILINE)]
    if not starts or starts[0] != 0:
        raise ProofRefused(f"expected a text that begins with `{FIRST_LINE}`")
    proved: list[ProvedRow] = []
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(text)], strict=True), 1):
        try:
            proved.append(_checked(text[start:end], keys))
        except (ProofRefused, NoteRefused, PayloadRefused, ValueError) as refused:
            raise ProofRefused(f"part {number} of {len(starts)}: {refused}") from None
    if len({(row.row["query_id"], row.head.instance) for row in proved}) > 1:
        raise ProofRefused("its parts are of several queries or instances")
    return proved


def _checked(block: str, keys: Sequence[VerifierKey]) -> ProvedRow:
    form = read_proof(block)
    if form is None:
        raise ProofRefused("it is not in the form of a tlog-proof")
    text, signer = open_note(form.note, keys)
    head = head_in(text)
    if head.key_id != signer.key.key_id and signer.name != WITNESS_NAME.format(signer.key.key_id):
        raise ProofRefused("its origin names another key than the one that signed it")
    try:
        extra = msgspec.json.decode(form.extra, type=_Extra)
    except (msgspec.DecodeError, UnicodeDecodeError) as failure:
        raise ProofRefused(f"its row: {failure}") from None
    if tuple(sorted(extra.row)) != tuple(sorted(COLUMNS)):
        raise ProofRefused("its row does not have the columns of an audit row")
    facts = facts_of([extra.row[name] for name in COLUMNS])
    leaf = leaf_of(extra.seq, facts.envelope, _commitment(extra, facts))
    root = root_from_inclusion(leaf, form.index, head.size, form.hashes)
    if root != head.root:
        raise ProofRefused("its row is not the one that the head is over")
    if canonical({name: value for name, value in msgspec.to_builtins(extra).items() if value is not None}) != form.extra:
        raise ProofRefused("its row is not in the form that gatewayd writes")
    return ProvedRow(extra.row, extra.seq, head, extra.salt is None, signer)


def _commitment(extra: _Extra, facts: Facts) -> bytes:
    if not 0 < extra.seq < 1 << 63:
        raise ProofRefused("its seq is no place in a file")
    if extra.salt is not None:
        if facts.is_erased:
            raise ProofRefused("its row says that it was erased, and has its salt")
        return commitment_of(strict_base64(extra.salt), facts.details)
    if extra.commitment is None or not facts.is_erased or facts.has_details:
        raise ProofRefused("its row has details, and no salt")
    return strict_base64(extra.commitment)
