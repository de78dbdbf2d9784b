"""The long run: `python -m tests.link.mutations --times 1000000`: mutated envelopes, bundles, acks and cached files.

Half of the mutations go to the signed documents as they come over the network, each through the reader that a gateway or a
control plane uses for it; half to the files of the state folder, through what `gatewayd` does with them at its start. None may
be taken for another document than was signed, none may end in anything but a refusal with a name. Prints the counts.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from gatewayd.link.formats import checks
from gatewayd.link.formats import trust as trusts
from gatewayd.link.formats.answers import Ack, Conflict, Freshness, RefusalAnswer, read_answer, read_enrolment
from gatewayd.link.formats.documents import DocumentRefused, public_text
from gatewayd.link.formats.requests import read_request
from gatewayd.link.formats.verdicts import read_taint, read_verdict
from gatewayd.link.kept import (
    BUNDLE,
    FRESHNESS,
    LINK,
    RATCHET,
    TRUST,
    Enrolled,
    Kept,
    KeptBundle,
    KeptFreshness,
    KeptTrust,
    KeptUnreadable,
)
from tests.keys.mutated import mutated
from tests.link import link_documents as made
from tests.link.link_documents import GATEWAY, NOW_MS, REQUEST, ROOT

Reader = Callable[[bytes], object]
UNSIGNED = (LINK, RATCHET, FRESHNESS)
"""Files that this machine alone vouches for: a mutation that still has their shape is another value, and no forgery to notice."""


def readers() -> dict[str, Reader]:
    """How each document is read by whoever it is for."""
    held, answered = made.trust(), {"gateway": GATEWAY, "request": REQUEST}
    found: dict[str, Reader] = {
        "bundle": lambda data: checks.authentic(data, held, made.seen(), NOW_MS),
        "verdict": lambda data: read_verdict(data, held, NOW_MS, query_id="q", grant="aa", **answered),
        "taint": lambda data: read_taint(data, held, NOW_MS, query_id="q", grant="g", **answered),
        "trust": lambda data: trusts.next_trust(data, held),
        "request": lambda data: read_request(data, made.IDENTITY.public),
        "enrolment": lambda data: read_enrolment(data, held, NOW_MS, request=REQUEST, nonce="nonce"),
    }
    for kind, shape in {"freshness": Freshness, "ack": Ack, "conflict": Conflict, "refusal": RefusalAnswer}.items():
        found[kind] = lambda data, shape=shape: read_answer(data, shape, held, NOW_MS, **answered)  # type: ignore[misc]
    return found


class Folder:
    """A state folder whose files are all good until one is mutated."""

    def __init__(self, folder: Path) -> None:
        self.kept = Kept(str(folder))
        root = public_text(ROOT.public)
        bundle = made.every_document()["bundle"].decode()
        self.kept.keep(LINK, Enrolled(GATEWAY, made.PROJECT, made.ISSUER, made.TENANT, "https://c", made.IDENTITY.key_id, root))
        self.kept.keep(TRUST, KeptTrust(root, trusts.sign_trust(made.trust(), ROOT).decode()))
        self.kept.keep(RATCHET, made.seen())
        self.kept.keep(BUNDLE, KeptBundle(bundle, NOW_MS))
        self.kept.keep(FRESHNESS, KeptFreshness(NOW_MS, 7))
        self.good = {name: (folder / name).read_bytes() for name in (LINK, TRUST, RATCHET, BUNDLE, FRESHNESS)}
        self.bundle = checks.authentic(bundle.encode(), made.trust(), made.seen(), NOW_MS)
        self.folder = folder

    def read(self, name: str, data: bytes) -> str:
        """What the start makes of this file: `refused`, `none`, `as it was`, or `other` for another value."""
        (self.folder / name).write_bytes(data)
        try:
            return self._read(name)
        finally:
            (self.folder / name).write_bytes(self.good[name])

    def _read(self, name: str) -> str:
        kept = self.kept
        try:
            if name == TRUST:
                found = kept.trust()
                assert found is not None
                trusts.again(found.envelope.encode(), public_text(ROOT.public))
                return "as it was"
            if name == BUNDLE:
                cached = kept.bundle()
                if cached is None:
                    return "none"
                again = checks.authentic(cached.envelope.encode(), made.trust(), made.seen(), cached.accepted_ms)
                return "as it was" if again == self.bundle else "other"
            value = {LINK: kept.enrolled, RATCHET: kept.ratchet, FRESHNESS: kept.freshness}[name]()
            return "none" if value is None else "other"
        except (KeptUnreadable, DocumentRefused, UnicodeEncodeError):
            return "refused"


def run(times: int, seed: int) -> Counter[str]:
    """The counts by kind and outcome. Raises AssertionError for a mutation that was taken."""
    dice, counts = Random(seed), Counter[str]()
    documents, read = list(made.every_document().items()), readers()
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(Path(place))
        files = list(folder.good.items())
        for turn in range(times):
            if turn % 2:
                kind, good = documents[turn // 2 % len(documents)]
                changed = mutated(good, dice)
                try:
                    read[kind](changed)
                except DocumentRefused as refused:
                    counts[f"{kind}: {refused.check}"] += 1
                else:
                    raise AssertionError(f"a mutated {kind} was taken: {changed!r}")
            else:
                name, good = files[turn // 2 % len(files)]
                changed = mutated(good, dice)
                outcome = folder.read(name, changed)
                counts[f"{name}: {outcome}"] += 1
                if outcome == "other" and name not in UNSIGNED:
                    raise AssertionError(f"a mutated {name} was taken: {changed!r}")
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    counts = run(given.times, given.seed)
    for outcome, count in sorted(counts.items()):
        print(f"{count:9} {outcome}")
    print(f"{sum(counts.values())} mutations, none taken, none crashed, seed {given.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
