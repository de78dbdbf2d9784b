"""Killed at every step of a write to the state folder: what is there afterwards is the old state or the new one, never less."""

import subprocess
import sys
from pathlib import Path

import trio

from gatewayd.corridor.kept_taints import TAINTS, KeptTaints
from gatewayd.link.formats.bundle import Seen
from gatewayd.link.kept import BUNDLE, RATCHET, Kept, KeptBundle
from tests.link import link_documents as made

KILLED = 137
# Each call that changes something on the disk is a step; the process ends before the one that is named.
DYING = """
import os, sys
steps, die_at = 0, int(sys.argv[2])
def dying(call):
    def counted(*given, **named):
        global steps
        steps += 1
        if steps == die_at:
            os._exit(137)
        return call(*given, **named)
    return counted
for name in ("open", "write", "fsync", "rename", "close", "unlink", "link"):
    setattr(os, name, dying(getattr(os, name)))
"""
BUNDLES = """
from types import SimpleNamespace
from gatewayd.link.enforcement import Enforcement
from gatewayd.link.formats.bundle import Seen
from gatewayd.link.kept import Kept, KeptBundle
from tests.link import link_documents as made
held = SimpleNamespace(_kept=Kept(sys.argv[1]), seen=made.seen(version=7))
Enforcement._keep(held, made.seen(version=8), KeptBundle("the new envelope", 2))
"""
TAINT = """
import trio
from pathlib import Path
from gatewayd.corridor.containing import Tainted
from gatewayd.corridor.kept_taints import KeptTaints
def noted():
    return trio.sleep(0)
async def mark():
    kept = KeptTaints(Path(sys.argv[1]) / "taints.json", by_token=False, was_kept=False, note=noted)
    await kept.mark("", Tainted("public.tickets", "shop", 1, "query"))
    print("marked", flush=True)
trio.run(mark)
"""


def died(code: str, folder: Path, step: int) -> tuple[bool, str]:
    """Whether it was killed, and what it had said by then."""
    imports, _, last = code.rpartition("\nheld" if "\nheld" in code else "\nasync")
    rest = ("held" if "\nheld" in code else "async") + last
    whole = "import sys\n" + imports + "\n" + DYING + rest  # only what is under test dies, no import
    words = [sys.executable, "-c", whole, str(folder), str(step)]
    done = subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, KILLED), done.stderr
    return done.returncode == KILLED, done.stdout


def test_the_ratchet_never_stands_below_the_cached_bundle(tmp_path: Path) -> None:
    old_seen, new_seen = made.seen(version=7), made.seen(version=8)
    old, new = KeptBundle("the old envelope", 1), KeptBundle("the new envelope", 2)
    seen: set[tuple[Seen | None, KeptBundle | None]] = set()
    step, killed = 0, True
    while killed:
        step += 1
        folder = tmp_path / str(step)
        kept = Kept(str(folder))
        kept.keep(RATCHET, old_seen)
        kept.keep(BUNDLE, old)
        killed, _ = died(BUNDLES, folder, step)
        state = kept.ratchet(), kept.bundle()
        assert state in ((old_seen, old), (new_seen, old), (new_seen, new)), step
        seen.add(state)
    assert step > 10
    assert len(seen) == 3
    assert state == (new_seen, new)


def test_a_taint_that_was_acknowledged_is_on_the_disk(tmp_path: Path) -> None:
    step, killed, outcomes = 0, True, set()
    while killed:
        step += 1
        folder = tmp_path / str(step)
        folder.mkdir()
        killed, said = died(TAINT, folder, step)
        kept = KeptTaints(folder / TAINTS, by_token=False, was_kept=False, note=trio.lowlevel.checkpoint)
        assert kept.broken is None, step
        assert "marked" not in said or kept.count == 1, step
        outcomes.add(kept.count)
    assert step > 5
    assert outcomes == {0, 1}
