"""What people did, proved without the control plane: exports, proofs of one act, kept heads, and what was tampered with."""

import csv
import io
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gatewayd.audit.tree import CompactRange, root_from_inclusion
from gatewayd.control.bounds import ControlBounds
from gatewayd.control.console import Console
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store
from gatewayd.control.trail.heads import KEPT, KeptHead, inclusion, keep
from gatewayd.control.trail.proof import ExportedAct, TrailHead, TrailRefused, check, check_export, open_head, sign_head
from gatewayd.control.trail.record import Act, record
from gatewayd.control.trust.signing import signers
from gatewayd.keys.ed25519 import SigningKey
from gatewayd.keys.note import VerifierKey, verifier_key
from tests.cli.gatewayd_process import run
from tests.control.browser import Browser
from tests.control.conftest import Plane
from tests.control.linked_rig import Project, new_project

ORG = Statement("SELECT org_id FROM organisations")
ERASE = Statement("UPDATE org_events SET details = NULL, salt = NULL WHERE org_id = $1 AND seq = 3")


@pytest.fixture
async def console(plane: Plane, store_url: str) -> AsyncIterator[Console]:
    store = Store(store_url)
    yield Console(plane.settings, store)
    store.close()


@pytest.fixture
async def project(plane: Plane, owner: Browser) -> Project:
    found = await new_project(owner, plane)
    for name in ("one", "=two", "three"):
        await found.token(name)
    return found


async def acts_of(console: Console, count: int) -> str:
    """`count` acts of the only organisation, all in one transaction; its id."""
    org = str(await console.store.value(ORG))
    made = [(console.new_id(), console.entropy(32)) for _ in range(count)]

    async def work(tx: Any) -> None:
        for number, (event_id, salt) in enumerate(made):
            await record(tx, org, Act("test.done", None, None, None, {"n": str(number)}), event_id, salt, 1)

    await console.store.transaction(work)
    return org


async def lines_of(owner: Browser) -> list[str]:
    """The whole export, page by page."""
    found: list[str] = []
    path = "/trail/export?format=lines"
    while path:
        answer = await owner.get(path)
        assert answer.status_code == 200, answer.text
        found += answer.text.splitlines()
        path = answer.links.get("next", {}).get("url", "")
    return found


def keys_of(lines: list[str]) -> list[VerifierKey]:
    return [verifier_key(msgspec.json.decode(lines[-1])["key"])]


@pytest.mark.parametrize("bounds", [ControlBounds(trail_rows=3)])
async def test_an_export_proves_itself_over_its_pages_and_on_the_command_line(
    plane: Plane, owner: Browser, project: Project, tmp_path: Path
) -> None:
    lines = await lines_of(owner)
    found = check_export(lines, keys_of(lines))
    actions = [act["action"] for act in found.acts]
    assert actions[0] == "organisation.founded"
    assert actions[-3:] == ["token.made"] * 3
    assert [act["details"]["name"] for act in found.acts[-3:]] == ["one", "=two", "three"]
    head = msgspec.json.decode(lines[-1])
    shown = await owner.get("/trail")
    assert head["key"] in shown.text
    (tmp_path / "trail.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "head").write_text(head["head"], encoding="utf-8")
    words = ["control", "verify-trail", str(tmp_path / "trail.jsonl"), "--key", head["key"], "--head", str(tmp_path / "head")]
    told = run(words)
    assert told.returncode == 0, told.stderr
    assert f"proved: {len(actions)} acts" in told.stderr
    (tmp_path / "trail.jsonl").write_text("\n".join([*lines[:2], *lines[3:]]) + "\n", encoding="utf-8")
    told = run(words)
    assert told.returncode == 1
    assert "NOT PROVED: line 3: found act 4, expected 3" in told.stderr


async def test_what_was_changed_left_out_or_added_is_refused(owner: Browser, project: Project) -> None:
    lines = await lines_of(owner)
    keys = keys_of(lines)
    act = msgspec.json.decode(lines[2])
    other = {**act, "envelope": act["envelope"].replace(act["envelope"][12:18], "forged", 1)}
    softened = {**act, "details": "{}"}
    spaced = {**act, "envelope": act["envelope"].replace(",", ", ", 1)}
    hidden = {"seq": act["seq"], "envelope": act["envelope"], "erased_leaf": "AA" * 21 + "A="}
    for bad in (
        [*lines[:-2], lines[-1]],
        [*lines[:-1], lines[-2], lines[-1]],
        [lines[1], lines[0], *lines[2:]],
        lines[:-1],
        [],
        *([*lines[:2], msgspec.json.encode(each).decode(), *lines[3:]] for each in (other, softened, spaced, hidden)),
    ):
        with pytest.raises(TrailRefused):
            check_export(bad, keys)
    stranger = SigningKey(bytes(32)).public
    with pytest.raises(TrailRefused, match="no known key"):
        check_export(lines, [VerifierKey(keys[0].name, stranger)])


async def test_each_act_has_its_proof_and_no_other_place(project: Project) -> None:
    listed = (await project.api("GET", "/trail")).json()["acts"]
    for act in listed:
        proof = (await project.api("GET", f"/trail/acts/{act['seq']}/proof")).json()
        found = check(proof["text"], [verifier_key(proof["key"])])
        assert [each["action"] for each in found.acts] == [act["action"]]
        with pytest.raises(TrailRefused):
            check(proof["text"].replace(f"\nindex {act['seq'] - 1}\n", "\nindex 77\n"), [verifier_key(proof["key"])])
    for nothing in ("0", "99999", "x", "-1"):
        assert (await project.api("GET", f"/trail/acts/{nothing}/proof")).status_code == 404


async def test_a_head_is_kept_for_what_is_new_and_holds_for_every_later_export(
    console: Console, owner: Browser, project: Project
) -> None:
    await keep(console)
    await keep(console)
    org = await acts_of(console, 40)
    kept = await console.store.rows(KeptHead, KEPT, org, 10)
    assert len(kept) <= 2, "nothing was new"
    lines = await lines_of(owner)
    keys = keys_of(lines)
    notes = [each.note for each in kept]
    assert len(check_export(lines, keys, notes).acts) > kept[0].size
    with pytest.raises(TrailRefused, match="is not over the first"):
        # a store that was put back and went on otherwise: signed again, but not over what the head was over
        check_export(await _rewritten(console, org, owner), keys, notes)


async def _rewritten(console: Console, org: str, owner: Browser) -> list[str]:
    """The export of the same organisation after its first act was made another one, by somebody who has the signing key."""
    lines = await lines_of(owner)
    first = msgspec.json.decode(lines[0], type=ExportedAct)
    acts = [msgspec.structs.replace(first, details="{}"), *(msgspec.json.decode(each, type=ExportedAct) for each in lines[1:-1])]
    tree = CompactRange()
    tree.extend(each.leaf for each in acts)
    old, _ = open_head(msgspec.json.decode(lines[-1])["head"], keys_of(lines))
    note = sign_head(TrailHead(org, old.instance, tree.size, tree.root()), signers(console.secrets.signing)[0])
    last = {"head": note, "key": msgspec.json.decode(lines[-1])["key"]}
    rewritten = [msgspec.json.encode(each).decode() for each in (*acts, last)]
    check_export(rewritten, keys_of(lines))
    return rewritten


async def test_an_erased_act_stays_in_the_tree_and_proves_nothing_more(
    console: Console, owner: Browser, project: Project
) -> None:
    await console.store.run(ERASE, await acts_of(console, 1))
    lines = await lines_of(owner)
    assert check_export(lines, keys_of(lines)).acts[2] == {"seq": 3, "erased": True}


async def test_a_spreadsheet_gets_no_formula(owner: Browser, project: Project) -> None:
    rows = list(csv.reader(io.StringIO((await owner.get("/trail/export?format=csv")).text)))
    assert len(rows) > 5
    assert not [cell for row in rows for cell in row if cell[:1] in tuple("=+-@")]


def test_the_proof_of_a_place_leads_to_the_root_of_all() -> None:
    leaves = [sha256(bytes([number])).digest() for number in range(21)]
    for size in range(1, len(leaves) + 1):
        tree = CompactRange()
        tree.extend(leaves[:size])
        for index in range(size):
            assert root_from_inclusion(leaves[index], index, size, inclusion(leaves[:size], index)) == tree.root()
