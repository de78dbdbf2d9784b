"""What a linked gateway keeps on its disk, each file whole or not there (docs/link-protocol.md, On disk).

    link.json       who this gateway is: its enrolment and the root it pins
    trust.json      the newest trust document
    ratchet.json    the highest bundle version ever seen; a file that cannot be read halts the gateway, it is never zero
    bundle.json     the newest authentic bundle; a damaged one is no bundle
    freshness.json  when the control plane last said which bundle is the newest

A write leaves the old file or the new one, whenever the power is cut (`durable_file.py`).
"""

import contextlib
import os
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from gatewayd import durable_file
from gatewayd.link.formats.bundle import Seen
from gatewayd.link.formats.documents import DocumentRefused, read

LINK: Final = "link.json"
TRUST: Final = "trust.json"
RATCHET: Final = "ratchet.json"
BUNDLE: Final = "bundle.json"
FRESHNESS: Final = "freshness.json"
ACCEPT_VERSION: Final = "accept-version.json"
CLIENTS: Final = "clients.json"
_FORMAT: Final = 1
_MOST_BYTES: Final = 16 * 1024 * 1024

T = TypeVar("T")


class KeptUnreadable(Exception):
    """A file that must be there, or must be whole, is not. The text names it."""


class Enrolled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whom this gateway belongs to. `identity` is the key id of the identity that was enrolled, `root` the pinned root key."""

    gateway: str
    project: str
    issuer: str
    tenant_id: str
    control_url: str
    identity: str
    root: str
    format: int = _FORMAT


class KeptTrust(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The newest trust document, and the root that was pinned when it was kept."""

    root: str
    envelope: str


class KeptBundle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The envelope as it came, and when: until then the keys that signed it are held to their end."""

    envelope: str
    accepted_ms: int


class KeptFreshness(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When the control plane last confirmed which bundle is the newest."""

    fresh_ms: int
    version: int


class AcceptVersion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `gatewayd link accept-version` leaves for the gateway: the ratchet goes back to below this version."""

    version: int


class Kept:
    """The files of one state folder. Blocking, and short. Reading gives None for a file that is not there."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    # -- each file by its rule

    def enrolled(self) -> Enrolled | None:
        """Raises KeptUnreadable: a gateway that does not know whom it belongs to must not guess."""
        return self._must(LINK, Enrolled)

    def trust(self) -> KeptTrust | None:
        """Raises KeptUnreadable."""
        return self._must(TRUST, KeptTrust)

    def ratchet(self) -> Seen | None:
        """Raises KeptUnreadable."""
        return self._must(RATCHET, Seen)

    def bundle(self) -> KeptBundle | None:
        """The newest authentic bundle; None also if the file is damaged."""
        return self._may(BUNDLE, KeptBundle)

    def freshness(self) -> KeptFreshness | None:
        """The last confirmation; None also if the file is damaged."""
        return self._may(FRESHNESS, KeptFreshness)

    def accept_version(self) -> AcceptVersion | None:
        """The request of `gatewayd link accept-version`; None also if the file is damaged."""
        return self._may(ACCEPT_VERSION, AcceptVersion)

    def keep(self, name: str, value: msgspec.Struct) -> None:
        """Writes the file, durably before this returns. Raises OSError; the old file is then still there."""
        durable_file.keep(self.folder / name, msgspec.json.encode(value))

    def forget(self, *names: str) -> None:
        """Removes files, durably. Raises OSError for all but a file that is not there."""
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.folder / name)
        durable_file.sync_folder(self.folder)

    def _must(self, name: str, shape: type[T]) -> T | None:
        try:
            data = self._bytes(name)
            return None if data is None else read(data, shape)
        except OSError as failure:
            raise KeptUnreadable(f"{name} cannot be read ({(failure.strerror or 'input/output error').lower()})") from None
        except DocumentRefused:
            raise KeptUnreadable(f"{name} is damaged") from None

    def _may(self, name: str, shape: type[T]) -> T | None:
        with contextlib.suppress(KeptUnreadable):
            return self._must(name, shape)
        return None

    def _bytes(self, name: str) -> bytes | None:
        try:
            with (self.folder / name).open("rb") as file:
                return file.read(_MOST_BYTES)
        except FileNotFoundError:
            return None
