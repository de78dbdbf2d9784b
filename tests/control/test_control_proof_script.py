"""The console's own check of a proof (`web/static/proof.js`) against `gatewayd audit verify-proof`, in node: the same rows, or
both refuse. The page in Chromium: tests/console/."""

import base64
import hashlib
import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gatewayd.audit.leaf import canonical, erased_payload
from gatewayd.audit.proof import ProofRefused, check_proof
from gatewayd.audit.tree import CompactRange, inclusion_proof
from gatewayd.control.web.page import asset_bytes
from gatewayd.keys.ed25519 import KeyRefused, SigningKey, base64_of
from gatewayd.keys.note import VerifierKey, sign_note, verifier_key
from tests.control.gateway_of_tests import Rows

node = shutil.which("node")
pytestmark = pytest.mark.skipif(node is None, reason="no node here; the page is checked in Chromium")

IDENTITY = SigningKey(b"\7" * 32)
OTHER = SigningKey(b"\x08" * 32)
KEY = str(VerifierKey(f"gatewayd/{IDENTITY.key_id}", IDENTITY.public))
CHECK = """
const fs = require("fs"), vm = require("vm");
vm.runInThisContext(fs.readFileSync(process.argv[1], "utf8"));
const asked = JSON.parse(fs.readFileSync(0, "utf8"));
(async () => {
  const answers = [];
  for (const [text, keys] of asked)
    answers.push(
      await checkProof(text, keys).then(
        (rows) => ({ rows }),
        (failure) => ({ refused: failure.message, kind: failure.constructor.name }),
      ),
    );
  fs.writeFileSync(1, JSON.stringify(answers));
})();
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("script") / "proof.js"
    path.write_bytes(asset_bytes("proof.js"))
    return path


def in_node(script: Path, asked: list[tuple[str, list[str]]]) -> list[dict[str, Any]]:
    run = subprocess.run(
        [node or "", "-e", CHECK, str(script)], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    return list(json.loads(run.stdout))


def in_python(text: str, keys: list[str]) -> list[tuple[dict[str, Any], int]] | None:
    try:
        return [(each.row, each.seq) for each in check_proof(text, [verifier_key(key) for key in keys])]
    except (ProofRefused, KeyRefused):
        return None


def agreed(script: Path, asked: list[tuple[str, list[str]]]) -> list[bool]:
    """Whether each proves, which both say alike."""
    verdicts = []
    for (text, keys), answer in zip(asked, in_node(script, asked), strict=True):
        ours = in_python(text, keys)
        assert (ours is None) == ("refused" in answer), (text[:2000], answer)
        if ours is not None:
            assert [(each["row"], int(each["seq"])) for each in answer["rows"]] == ours
        else:
            assert answer["kind"] == "ProofRefused", answer
        verdicts.append(ours is not None)
    return verdicts


def proof(rows: Rows, query_id: str, *, erased: bool = False, key: SigningKey = IDENTITY) -> str:
    tree = CompactRange()
    tree.extend(rows.leaves)
    levels: list[list[bytes]] = [rows.leaves]

    def subtree(level: int, index: int) -> bytes:
        part = CompactRange()
        part.extend(levels[0][index << level : (index + 1) << level])
        return part.root()

    blocks = []
    for place, row in enumerate(rows.rows):
        if row["query_id"] != query_id:
            continue
        pushed = rows.pushed(place)
        shown: dict[str, object] = {"row": row, "seq": place + 1, "salt": base64_of(bytes.fromhex(pushed.salt or ""))}
        if erased:
            bare = row | {"payload": erased_payload(row["payload"]), "agent_intent": row["agent_intent"] and ""}
            shown = {"row": bare, "seq": place + 1, "commitment": base64_of(bytes.fromhex(pushed.commitment))}
        hashes = "".join(f"{base64_of(each)}\n" for each in inclusion_proof(place, tree.size, subtree))
        note = rows.note(key)
        blocks.append(f"c2sp.org/tlog-proof@v1\nextra {base64_of(canonical(shown))}\nindex {place}\n{hashes}\n{note}")
    return "".join(blocks)


ODD = "SELECT '\u202eevil\u200b', '😀', '\x7f\\\"/\n\t\x01', '\uffff\U0001f600' -- ﬀ"


def rows_of(seed: int) -> tuple[Rows, list[str]]:
    rows = Rows(seed)
    queries = [rows.query() for _ in range(11)]
    queries.append(rows.query(ODD, deny="table_access", agent_name="an agent \u202e", agent_intent=None))
    queries.append(rows.query("SELECT '" + "x" * 1_000_000 + "'"))
    now = {"query_id": rows.ulid()}
    numbers = {"a": 0.1, "b": 1e16, "c": 1e15, "d": -0.0, "e": 1e-5, "f": 1.5e-5, "g": 1e300, "h": 123456789012345678, "i": 1.0}
    keys = {"\uffff": 1, "\U0001f600": 2, "z": [], "y": {}, "x": [True, None, [1, "2"]]}
    rows.add("POLICY_RELOADED", {"source": "file", "diff": numbers | keys, "reason": 7}, **now)
    return rows, [*queries, str(now["query_id"])]


def test_good_proofs_prove_in_both_the_same_rows(script: Path) -> None:
    rows, queries = rows_of(1)
    asked = [(proof(rows, query), [KEY]) for query in queries]
    asked += [(proof(rows, query, erased=True), [KEY]) for query in queries[:12]]
    asked.append((proof(rows, queries[0]), [str(VerifierKey("another", OTHER.public)), KEY]))
    assert all(agreed(script, asked))


def test_a_proof_with_anything_changed_proves_in_neither(script: Path) -> None:
    rows, queries = rows_of(2)
    dice = random.Random(5)
    asked: list[tuple[str, list[str]]] = []
    for query in (queries[3], queries[11], queries[13]):
        good = proof(rows, query)
        for _ in range(60):
            at = dice.randrange(len(good))
            other = dice.choice("Aa0/=\n —+\u2028\r")
            asked.append((good[:at] + other + good[at + 1 :], [KEY]))
            asked.append((good[:at] + good[at + 1 :], [KEY]))
        asked += [
            (good + good, [KEY]),
            (good[:-1], [KEY]),
            (good + "\n", [KEY]),
            ("", [KEY]),
            (good.replace("\n", "\r\n"), [KEY]),
        ]
        asked.append((good + proof(rows, queries[4]), [KEY]))
        asked.append((proof(rows, query, key=OTHER), [KEY, str(VerifierKey(f"gatewayd/{OTHER.key_id}", OTHER.public))]))
        asked.append((proof(rows, query, key=OTHER), [KEY]))
        head = rows.note(IDENTITY).partition("\n\n")[0] + "\n"
        by_other = sign_note(head, "witness", OTHER)
        asked.append((good.replace(rows.note(IDENTITY), by_other), [str(VerifierKey("witness", OTHER.public))]))
    verdicts = agreed(script, asked)
    assert not all(verdicts)
    assert sum(verdicts) < 20  # a text twice over, or a changed byte that changes nothing


def test_rows_in_another_form_prove_in_neither(script: Path) -> None:
    rows, queries = rows_of(3)
    good = proof(rows, queries[0]).split("c2sp.org/tlog-proof@v1\n")[1]
    encoded = good.partition("\n")[0].removeprefix("extra ")
    extra: dict[str, Any] = msgspec.json.decode(base64.b64decode(encoded))
    row = extra["row"]
    asked = []
    of_row = (
        {"more": 1}, {"ts": 1.5}, {"ts": True}, {"payload": None}, {"payload": "[]"}, {"payload": '{"erased":true}'},
        {"payload": row["payload"].replace(":", ": ", 1)}, {"payload": '{"a":1,"a":1}'}, {"agent_name": 7},
        {"payload": "[" * 2000 + "]" * 2000},
    )  # fmt: skip
    of_extra: tuple[dict[str, Any], ...] = (
        {"more": 1}, {"seq": 0}, {"seq": 1 << 63}, {"seq": "1"}, {"seq": 1.5}, {"salt": None}, {"salt": ""}, {"commitment": ""},
        {"row": []}, {},
    )  # fmt: skip
    others: list[Any] = [[], None, {key: value for key, value in extra.items() if key != "salt"}]
    others += [extra | each for each in of_extra] + [extra | {"row": row | each} for each in of_row]
    for changed in others:
        for form in (canonical(changed), json.dumps(changed).encode(), canonical(changed) + b" ", b"\xff" + canonical(changed)):
            text = "c2sp.org/tlog-proof@v1\n" + good.replace(encoded, base64_of(form), 1)
            asked.append((text, [KEY]))
    assert sum(agreed(script, asked)) == 2  # `extra` itself, and with a commitment that its salt makes needless


def test_keys_that_anybody_can_sign_with_are_refused_as_they_are_by_gatewayd(script: Path) -> None:
    p = 2**255 - 19
    small = (0, 1, p - 1, 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD83D3D706A17C7, p, p + 1, p + 18)
    raws = [(y | sign << 255).to_bytes(32, "little") for y in small for sign in (0, 1)]
    raws += [(2).to_bytes(32, "little")]  # on no curve: nothing is signed with it
    rows, queries = rows_of(4)
    good = proof(rows, queries[0])
    asked = []
    for raw in raws:
        data = b"\1" + raw
        digest = hashlib.sha256(b"weak\n" + data).digest()[:4].hex()
        asked.append((good, [f"weak+{digest}+{base64_of(data)}"]))
    name, hash_, encoded = KEY.split("+", 2)
    asked += [(good, [text]) for text in ("", "x", f"{name}+00000000+{encoded}", f"{name}+{hash_}+{encoded}A", f" {KEY}\n")]
    assert agreed(script, asked) == [False] * (len(asked) - 1) + [True]
