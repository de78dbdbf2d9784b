"""What is asked of a bundle before it is enforced, as one ordered list (docs/link-protocol.md, Bundles).

The first five refuse it, and nothing changes. A bundle that passed them is authentic: its version is kept before anything else.
The last two then halt the gateway, which enforces no half of it.
"""

from collections.abc import Callable, Collection
from typing import Final

import msgspec

from gatewayd.link.formats.bundle import FORMAT, SUPPORTED, Bundle, BundleHead, Seen
from gatewayd.link.formats.documents import BundleCheck, DocumentRefused, digest, opened, read
from gatewayd.link.formats.trust import Trust


class Authentic(msgspec.Struct, frozen=True):
    """A bundle that is ours and not older than any before: what the ratchet keeps of it, and its payload. Not enforceable yet."""

    head: BundleHead
    payload: bytes
    seen: Seen


class _Asked:
    """One bundle on its way through the list: what is known of it so far, and what it is held against."""

    def __init__(self, data: bytes, trust: Trust, seen: Seen, now_ms: int, supported: Collection[str]) -> None:
        self.data = data
        self.trust = trust
        self.seen = seen
        self.now_ms = now_ms
        self.supported = supported
        self.payload = b""
        self.head = BundleHead(0, "", "", 0)
        self.bundle: Bundle | None = None


def _envelope(asked: _Asked) -> None:
    """`type` is told apart in `opened`: an envelope of another type that one of ours has signed."""
    asked.payload = opened("bundle", asked.data, asked.trust.keys_for("bundle", asked.now_ms))
    asked.head = read(asked.payload, BundleHead)


def _issuer(asked: _Asked) -> None:
    if not asked.head.issuer == asked.trust.issuer == asked.seen.issuer:
        raise DocumentRefused("issuer", "it is another issuer's")


def _project(asked: _Asked) -> None:
    if asked.head.project != asked.seen.project:
        raise DocumentRefused("project", "it is another project's")


def _version(asked: _Asked) -> None:
    found, seen = asked.head.version, asked.seen
    if found < 1 or found < seen.version:
        raise DocumentRefused("version", f"found version {found}; the highest ever seen is {seen.version}")
    if found == seen.version and digest(asked.payload) != seen.sha256:
        raise DocumentRefused("version", f"found version {found} with other bytes than before")


def _features(asked: _Asked) -> None:
    if asked.head.format != FORMAT:
        raise DocumentRefused("features", f"found bundle format {asked.head.format}; this version enforces format {FORMAT}")
    missing = sorted(set(asked.head.requires_features) - set(asked.supported))
    if missing:
        raise DocumentRefused("features", f"this version does not enforce {', '.join(name[:64] for name in missing[:8])}")


def _enforceable(asked: _Asked) -> None:
    """The shape of the whole. Policy, addresses and salt are of the machine: the shell asks for them under the same name."""
    asked.bundle = read(asked.payload, Bundle, check="enforceable")


AUTHENTIC: Final[tuple[tuple[BundleCheck, Callable[[_Asked], None]], ...]] = (
    ("envelope", _envelope),
    ("type", lambda asked: None),
    ("issuer", _issuer),
    ("project", _project),
    ("version", _version),
)
ENFORCEABLE: Final[tuple[tuple[BundleCheck, Callable[[_Asked], None]], ...]] = (
    ("features", _features),
    ("enforceable", _enforceable),
)


def authentic(data: bytes, trust: Trust, seen: Seen, now_ms: int) -> Authentic:
    """The bundle of an envelope that passes the first five checks. Raises DocumentRefused with the first that failed."""
    asked = _Asked(data, trust, seen, now_ms, ())
    for _, check in AUTHENTIC:
        check(asked)
    head = asked.head
    return Authentic(head, asked.payload, Seen(head.issuer, head.project, head.version, digest(asked.payload)))


def enforceable(found: Authentic, supported: Collection[str] = SUPPORTED) -> Bundle:
    """The whole bundle, once this version knows all that it asks for. Raises DocumentRefused: the gateway halts."""
    asked = _Asked(b"", Trust(0, "", "", (), 0), found.seen, 0, supported)
    asked.payload, asked.head = found.payload, found.head
    for _, check in ENFORCEABLE:
        check(asked)
    assert asked.bundle is not None
    return asked.bundle
