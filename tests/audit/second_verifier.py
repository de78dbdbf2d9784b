"""A verifier of audit files, proofs and heads with the standard library only, written from docs/audit-format.md alone.

    python second_verifier.py FILE VERIFIER_KEY [NOTE_FILE…]

Imports nothing of gatewayd, so that a mistake of gatewayd's own reading is not made twice. Prints the faults; exits with 1 when
there are any.
"""

import base64
import hashlib
import json
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any

COLUMNS = [
    "id", "query_id", "tenant_id", "database", "agent_name", "agent_version", "agent_intent", "mcp_token_id", "ts",
    "event_type", "payload", "schema_version",
]  # fmt: skip
MAY_BE_NULL = {"agent_name", "agent_version", "agent_intent", "mcp_token_id"}
DETAILS = ["error_message", "masking_reason", "reason", "sql_raw"]
PLAIN_META = {"instance", "identity", "verifier", "last_id", "format_1_to"}
PROOF = "c2sp.org/tlog-proof@v1"


class Wrong(Exception):
    """Something is not as the page says."""


# Ed25519 (RFC 8032 section 5.1), for verifying only

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)
Point = tuple[int, int, int, int]
NEUTRAL: Point = (0, 1, 1, 0)


def add(p: Point, q: Point) -> Point:
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(number: int, point: Point) -> Point:
    result = NEUTRAL
    while number:
        if number & 1:
            result = add(result, point)
        point = add(point, point)
        number >>= 1
    return result


def same(p: Point, q: Point) -> bool:
    return (p[0] * q[2] - q[0] * p[2]) % P == 0 and (p[1] * q[2] - q[1] * p[2]) % P == 0


def point_of(encoded: bytes) -> Point:
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if y >= P:
        raise Wrong("a point that is not canonical")
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT_OF_MINUS_ONE % P
    if (x * x - square) % P or (x == 0 and sign):
        raise Wrong("no point of the curve")
    if x & 1 != sign:
        x = P - x
    return (x, y, 1, x * y % P)


BASE = point_of((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def key_point(public: bytes) -> Point:
    point = point_of(public)
    if same(times(8, point), NEUTRAL):
        raise Wrong("a key of small order")
    return point


def verifies(public: bytes, signature: bytes, message: bytes) -> bool:
    if len(signature) != 64:
        return False
    s = int.from_bytes(signature[32:], "little")
    if s >= L:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    try:
        return same(times(s, BASE), add(point_of(signature[:32]), times(k, key_point(public))))
    except Wrong:
        return False


# notes and heads


def unbase64(text: str) -> bytes:
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:
        raise Wrong("base64 that is not canonical")
    return data


class Key:
    def __init__(self, text: str) -> None:
        self.name, hash_, encoded = text.split("+", 2)
        data = unbase64(encoded)
        if data[0] != 1 or len(data) != 33:
            raise Wrong("a verifier key that is not Ed25519")
        self.public = data[1:]
        key_point(self.public)
        self.hash = hashlib.sha256(f"{self.name}\n".encode() + data).digest()[:4]
        if self.hash.hex() != hash_:
            raise Wrong("a verifier key whose hash is wrong")
        self.id = hashlib.sha256(self.public).hexdigest()[:32]


def opened(note: str, keys: list[Key]) -> tuple[str, Key]:
    """The text that one of the keys signed."""
    text, _, lines = note.rpartition("\n\n")
    text += "\n"
    signer = None
    for line in lines.splitlines():
        dash, name, encoded = line.split(" ")
        data = unbase64(encoded)
        for key in keys:
            if dash == "\u2014" and (name, data[:4]) == (key.name, key.hash):
                if not verifies(key.public, data[4:], text.encode()):
                    raise Wrong("a signature that does not verify")
                signer = key
    if signer is None:
        raise Wrong("no known key has signed")
    return text, signer


def head_of(note: str, keys: list[Key]) -> tuple[str, int, bytes]:
    """(instance, size, root) of a signed head."""
    text, key = opened(note, keys)
    origin, size, root, *_ = text.split("\n")
    matched = re.fullmatch("gatewayd/([0-9a-f]{32})/([0-9A-Z]{26})", origin)
    if matched is None or matched[1] != key.id or not re.fullmatch("0|[1-9][0-9]*", size):
        raise Wrong("no head of this key")
    return matched[2], int(size), unbase64(root)


# rows


class Number(str):
    """A number that is no integer, as it is written."""


def no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Wrong("a key that is there twice")
    return found


def canonical(value: Any, *, as_stored: bool = False) -> str:
    if isinstance(value, Number):
        return str(value) if as_stored else f'"{value}"'
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode())
        return "{" + ",".join(f"{canonical(key)}:{canonical(value[key], as_stored=as_stored)}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(canonical(each, as_stored=as_stored) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def halves(row: dict[str, Any]) -> tuple[bytes, dict[str, str], bool]:
    """Envelope, details, and whether the payload says that it was erased."""
    payload = json.loads(row["payload"], parse_float=Number, object_pairs_hook=no_key_twice)
    if not isinstance(payload, dict) or canonical(payload, as_stored=True) != row["payload"]:
        raise Wrong("a payload that is not canonical")
    details = {} if row["agent_intent"] is None else {"agent_intent": row["agent_intent"]}
    for key in DETAILS:
        if isinstance(payload.get(key), str) and not isinstance(payload[key], Number):
            details[key] = payload[key]
            payload[key] = ""
    erased = payload.pop("erased", None) is True
    envelope = {**row, "agent_intent": None if row["agent_intent"] is None else "", "payload": payload}
    return canonical(envelope).encode(), details, erased


def commitment_of(salt: bytes, details: dict[str, str]) -> bytes:
    data = canonical(details).encode()
    data = len(data).to_bytes(8, "big") + data
    return hashlib.sha256(salt + data + bytes(-len(data) % 256)).digest()


def leaf_of(seq: int, envelope: bytes, commitment: bytes) -> bytes:
    middle = b"gatewayd audit 2\n" + seq.to_bytes(8, "big") + hashlib.sha256(envelope).digest()
    return hashlib.sha256(b"\x00" + middle + commitment).digest()


# trees


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """Complete subtrees as (leaves, root), largest first."""

    def __init__(self, size: int = 0, nodes: bytes = b"") -> None:
        widths = [1 << bit for bit in reversed(range(size.bit_length())) if size >> bit & 1]
        if len(nodes) != 32 * len(widths):
            raise Wrong("a compact range of another length")
        self.parts = [(width, nodes[32 * place : 32 * place + 32]) for place, width in enumerate(widths)]

    @property
    def size(self) -> int:
        return sum(width for width, _ in self.parts)

    def append(self, leaf: bytes) -> None:
        self.parts.append((1, leaf))
        while len(self.parts) > 1 and self.parts[-1][0] == self.parts[-2][0]:
            width, right = self.parts.pop()
            _, left = self.parts.pop()
            self.parts.append((2 * width, node(left, right)))

    def root(self) -> bytes:
        if not self.parts:
            return hashlib.sha256(b"").digest()
        root = self.parts[-1][1]
        for _, left in reversed(self.parts[:-1]):
            root = node(left, root)
        return root


def included(leaf: bytes, index: int, size: int, proof: list[bytes]) -> bytes:
    """The root that an inclusion proof leads to, by RFC 6962's own recursion from the top."""
    if not 0 <= index < size:
        raise Wrong("an index outside of the tree")
    if size == 1:
        if proof:
            raise Wrong("a proof that is too long")
        return leaf
    if not proof:
        raise Wrong("a proof that is too short")
    split = 1 << (size - 1).bit_length() - 1
    if index < split:
        return node(included(leaf, index, split, proof[:-1]), proof[-1])
    return node(proof[-1], included(leaf, index - split, size - split, proof[:-1]))


def consistent(first: int, second: int, proof: list[bytes], first_root: bytes, *, whole: bool = True) -> tuple[bytes, bytes]:
    """(old root, new root) that a consistency proof leads to, by RFC 6962's own recursion."""
    if first == second:
        if whole:
            if proof:
                raise Wrong("a proof that is too long")
            return first_root, first_root
        if len(proof) != 1:
            raise Wrong("a proof of another length")
        return proof[0], proof[0]
    if not proof or not 0 < first < second:
        raise Wrong("a proof that is too short")
    split = 1 << (second - 1).bit_length() - 1
    if first <= split:
        old, new = consistent(first, split, proof[:-1], first_root, whole=whole)
        return old, node(new, proof[-1])
    old, new = consistent(first - split, second - split, proof[:-1], first_root, whole=False)
    return node(proof[-1], old), node(proof[-1], new)


# the whole file


def check_file(path: str, key_text: str, notes: list[str] | None = None) -> list[str]:
    """The faults of an audit file, for one who trusts that key."""
    connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
    try:
        return _faults(connection, Key(key_text), notes or [])
    except (Wrong, ValueError, KeyError, TypeError, AttributeError, sqlite3.Error, RecursionError) as failure:
        return [f"the file cannot be followed: {failure!r}"]
    finally:
        connection.close()


def _faults(connection: sqlite3.Connection, own: Key, notes: list[str]) -> list[str]:
    faults: list[str] = []
    if connection.execute("PRAGMA user_version").fetchone() != (2,):
        return ["it is not of format 2"]
    faults += [line for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
    faults += [
        f"{kind} {name}"
        for kind, name in connection.execute("SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view')")
    ]
    texts: dict[str, str] = dict(connection.execute("SELECT key, value FROM meta"))
    meta: dict[str, Any] = {
        key: text if key in PLAIN_META else json.loads(text) for key, text in texts.items() if key != "signature"
    }
    if Key(meta["verifier"]).public != own.public:
        faults.append("the file's key is another")
    signed = {key: text for key, text in texts.items() if key != "signature"}
    expected = f"gatewayd audit meta\n{hashlib.sha256(canonical(signed).encode()).hexdigest()}\n"
    if opened(texts["signature"], [own])[0] != expected:
        faults.append("the metadata are not the signed ones")
    previous = meta["previous_instances"]
    keys = [own, *(Key(each["verifier"]) for each in previous)]
    pruned = {each["instance"]: Tree(each["size"], unbase64(each["range"])) for each in meta["pruned"]}
    spans = [(each["instance"], each["first_seq"], each["first_seq"] + each["size"]) for each in previous]
    spans.append((meta["instance"], meta["first_seq"], 1 << 63))
    expected_first = 1
    for _, first_seq, end_seq in spans:
        if first_seq != expected_first:
            faults.append(f"an instance begins at {first_seq}, not at {expected_first}")
        expected_first = end_seq
    roots: dict[str, dict[int, bytes]] = {name: {} for name, _, _ in spans}
    trees = {name: pruned.get(name, Tree()) for name, _, _ in spans}
    deleted = {name: tree.size for name, tree in trees.items()}
    for name, tree in trees.items():
        roots[name][tree.size] = tree.root()
    faults += _rows(connection, meta, spans, trees, roots)
    kept: dict[tuple[str, int], bytes] = {}
    digest, count = hashlib.sha256(), 0
    listed = connection.execute(
        "SELECT instance, size, ts, note, frontier, later, proof FROM checkpoints ORDER BY instance, size"
    ).fetchall()
    for instance, size, ts, note, frontier, later, proof in listed:
        count += 1
        line = canonical([instance, size, ts, note, frontier.hex(), later, None if proof is None else proof.hex()])
        digest.update(line.encode() + b"\n")
    if meta["heads"] != {"count": count, "digest": digest.hexdigest()}:
        faults.append("the kept heads are not the ones in the metadata")
    gone = {name for name, _, end_seq in spans if meta["pruned_to"] >= end_seq}  # rows after their end were deleted
    lengths = {name: end_seq - first_seq for name, first_seq, end_seq in spans}
    for instance, size, _, note, frontier, later, proof in reversed(listed):
        head = head_of(note, keys)
        if head[:2] != (instance, size) or Tree(size, frontier).root() != head[2]:
            faults.append(f"the head of {size} is in the wrong place")
        kept[instance, size] = head[2]
        if instance in gone and size > lengths[instance]:
            continue
        if size >= deleted[instance]:
            if roots[instance].get(size) != head[2]:
                faults.append(f"the rows are not those of the head of {size}")
            continue
        hashes = [proof[start : start + 32] for start in range(0, len(proof or b""), 32)] if proof is not None else []
        if consistent(size, later or 0, hashes, head[2]) != (head[2], kept.get((instance, later))):
            faults.append(f"the head of {size} is not the beginning of that of {later}")
    for each in previous:
        if each["size"] >= deleted[each["instance"]] and roots[each["instance"]].get(each["size"]) != unbase64(each["root"]):
            faults.append(f"instance {each['instance']} ended otherwise")
        if each["reason"] in ("rows missing", "damaged"):
            faults.append(f"gatewayd found {each['reason']}")
    for note in notes:
        instance, size, root = head_of(note, keys)
        if instance in gone and size > lengths[instance]:
            continue
        known = roots.get(instance, {}).get(size, kept.get((instance, size)))
        if known != root and (instance not in roots or size >= deleted[instance] or known is not None):
            faults.append(f"a head of {size} that was kept elsewhere is not of this file")
    return faults


def _rows(
    connection: sqlite3.Connection,
    meta: dict[str, Any],
    spans: list[tuple[str, int, int]],
    trees: dict[str, Tree],
    roots: dict[str, dict[int, bytes]],
) -> list[str]:
    """Checks every row, and notes the root of each instance at each size."""
    faults: list[str] = []
    erased: dict[int, bytes] = dict(connection.execute("SELECT seq, commitment FROM erased"))
    found_erased: set[int] = set()
    named: list[list[int]] = []
    expected, last_id = meta["pruned_to"] + 1, ""
    for values in connection.execute(f"SELECT {', '.join(COLUMNS)}, seq, leaf, salt FROM audit_events ORDER BY id"):
        row, (seq, leaf, salt) = dict(zip(COLUMNS, values, strict=False)), values[12:]
        for name, value in row.items():
            wanted = int if name in ("ts", "schema_version") else str
            if type(value) is not wanted and not (value is None and name in MAY_BE_NULL):
                faults.append(f"seq {seq}: {name} has another type")
        if not re.fullmatch("[0-7][0-9A-HJKMNP-TV-Z]{25}", row["id"]) or row["id"] <= last_id:
            faults.append(f"seq {seq}: its id does not rise")
        last_id = row["id"]
        if seq is None:
            if expected != meta["pruned_to"] + 1 or row["id"] > meta.get("format_1_to", "") or leaf or salt:
                faults.append(f"row {row['id']} stands in no tree")
            continue
        if seq != expected:
            faults.append(f"seq {seq}: expected {expected}")
        expected = seq + 1
        try:
            envelope, details, is_erased = halves(row)
        except (Wrong, ValueError) as wrong:
            faults.append(f"seq {seq}: {wrong}")
            continue
        if salt is not None:
            commitment = commitment_of(salt, details)
            if is_erased:
                faults.append(f"seq {seq}: it says that it was erased")
        else:
            found_erased.add(seq)
            commitment = erased.get(seq, b"")
            if any(details.values()) or not is_erased:
                faults.append(f"seq {seq}: it was not erased as the page says")
        if leaf_of(seq, envelope, commitment) != leaf:
            faults.append(f"seq {seq}: its leaf is another")
        if row["event_type"] == "ERASED":
            named += json.loads(row["payload"])["seqs"]
        for name, first_seq, _ in spans:
            if seq == first_seq + trees[name].size:
                trees[name].append(leaf)
                roots[name][trees[name].size] = trees[name].root()
    if found_erased != erased.keys() or not all(any(a <= seq <= b for a, b in named) for seq in found_erased):
        faults.append("the erased rows are not the ones that ERASED rows name")
    return faults


def check_proof(text: str, key_text: str) -> list[dict[str, Any]]:
    """The rows that a proof proves. Raises Wrong or ValueError."""
    key = Key(key_text)
    rows: list[dict[str, Any]] = []
    for block in re.split(f"^{re.escape(PROOF)}\n", text, flags=re.MULTILINE)[1:]:
        proof, _, note = block.partition("\n\n")
        extra_line, index_line, *hashes = proof.split("\n")
        _, size, root = head_of(note, [key])
        extra = json.loads(unbase64(extra_line.removeprefix("extra ")), object_pairs_hook=no_key_twice)
        envelope, details, is_erased = halves({name: extra["row"][name] for name in COLUMNS})
        if is_erased != ("salt" not in extra) or (is_erased and any(details.values())):
            raise Wrong("details without their salt")
        commitment = unbase64(extra["commitment"]) if is_erased else commitment_of(unbase64(extra["salt"]), details)
        leaf = leaf_of(extra["seq"], envelope, commitment)
        index = int(index_line.removeprefix("index "))
        if included(leaf, index, size, [unbase64(each) for each in hashes]) != root:
            raise Wrong("a row that the head is not over")
        rows.append(extra["row"])
    if not rows:
        raise Wrong("no proof")
    return rows


if __name__ == "__main__":
    found = check_file(sys.argv[1], sys.argv[2], [Path(name).read_text(encoding="utf-8") for name in sys.argv[3:]])
    print("\n".join(found) or "intact")
    sys.exit(bool(found))
