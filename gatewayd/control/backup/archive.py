"""The archive: a tar whose last two members are the manifest, with a SHA-256 of every other member, and the manifest's own.

The manifest comes last, so that nothing is kept aside while the store is read; what was cut short has none. The hashes find
damage, not forgery: who can write the file can write the hashes.
"""

import hashlib
import io
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, final

import msgspec

from gatewayd.control.store.migrate import Migration

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
SEAL: Final = "manifest.sha256"
_PIECE: Final = 1 << 20
_MANIFEST_MOST: Final = 64 << 20
# What may be in an archive. Nothing of it can leave the folder that it is unpacked into: a part begins with no dot.
PART: Final = r"[A-Za-z0-9_-][A-Za-z0-9._-]*"
_NAME: Final = re.compile(rf"store/[a-z0-9_]+/[0-9]{{8}}|(secrets|engines)(/{PART})+")


class ArchiveProblem(Exception):
    """The file is no archive that can be restored; the text says why."""


class Manifest(msgspec.Struct, frozen=True):
    """`tables`: columns by table. `keys`: key ids by the variable of their ring. `members`: SHA-256 in hex by name."""

    format: int
    gatewayd: str
    made_ms: int
    migrations: tuple[Migration, ...]
    tables: dict[str, tuple[str, ...]]
    keys: dict[str, tuple[str, ...]]
    with_secrets: bool
    members: dict[str, str] = {}


class _Format(msgspec.Struct, frozen=True):
    format: int


@final
class ArchiveWriter:
    """Blocking. `finish` last; without it the file is no archive."""

    def __init__(self, file: IO[bytes], now_ms: int) -> None:
        self._tar: Final = tarfile.TarFile(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)
        self._now_s: Final = now_ms // 1000
        self._members: Final[dict[str, str]] = {}

    def add(self, name: str, data: bytes | bytearray) -> None:
        self._write(name, io.BytesIO(data), len(data))

    def add_file(self, name: str, path: Path) -> None:
        with path.open("rb") as source:
            self._write(name, source, os.fstat(source.fileno()).st_size)

    def finish(self, manifest: Manifest) -> None:
        text = msgspec.json.encode(msgspec.structs.replace(manifest, members=dict(self._members)))
        self.add(MANIFEST, text)
        self.add(SEAL, hashlib.sha256(text).hexdigest().encode())
        self._tar.close()

    def _write(self, name: str, source: IO[bytes], size: int) -> None:
        assert name in (MANIFEST, SEAL) or _NAME.fullmatch(name), name
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode, entry.mtime = size, 0o600, self._now_s
        reading = _Hashing(source)
        self._tar.addfile(entry, reading)  # type: ignore[arg-type]  # it reads, and does nothing else with it
        self._members[name] = reading.hash.hexdigest()


class _Hashing:
    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self.hash = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._source.read(size)
        self.hash.update(data)
        return data


@final
class Archive:
    """An archive whose every member has been checked. Blocking; the file stays open, so that nobody changes it for another.

    `seal` is the hash of its manifest, and so of all of it.
    """

    def __init__(self, file: IO[bytes]) -> None:
        """Reads the whole file. Raises ArchiveProblem, OSError."""
        self._file: Final = file
        try:
            self.manifest, self.seal = _checked(file)
        except tarfile.TarError as problem:
            raise ArchiveProblem(f"the file is no archive, or is damaged ({problem})") from None

    def members(self) -> Iterator[tuple[str, IO[bytes]]]:
        """All but the manifest, in their order; each is to be read before the next is asked for."""
        for name, data in _entries(self._file):
            if name not in (MANIFEST, SEAL):
                yield name, data


def _checked(file: IO[bytes]) -> tuple[Manifest, str]:
    found: dict[str, str] = {}
    last: dict[str, bytes] = {}
    for name, data in _entries(file):
        if name in found or name in last:
            raise ArchiveProblem(f"the archive is damaged: `{name}` is there twice")
        if name in (MANIFEST, SEAL):
            last[name] = data.read(_MANIFEST_MOST)
            continue
        digest = hashlib.sha256()
        while piece := data.read(_PIECE):
            digest.update(piece)
        found[name] = digest.hexdigest()
    if MANIFEST not in last or SEAL not in last:
        raise ArchiveProblem("the archive is not whole: it has no manifest at its end")
    if last[SEAL] != hashlib.sha256(last[MANIFEST]).hexdigest().encode():
        raise ArchiveProblem("the archive is damaged: its manifest is not the one that was written")
    manifest = _manifest(last[MANIFEST])
    for name in sorted(manifest.members.keys() | found.keys()):
        if manifest.members.get(name) != found.get(name):
            raise ArchiveProblem(f"the archive is damaged: `{name}` is not what the manifest says")
    return manifest, last[SEAL].decode("ascii")


def _manifest(text: bytes) -> Manifest:
    try:
        found = msgspec.json.decode(text, type=_Format).format
        if found != FORMAT:
            raise ArchiveProblem(f"the archive has format {found}, this version reads format {FORMAT}; run a newer version")
        return msgspec.json.decode(text, type=Manifest)
    except msgspec.DecodeError as problem:
        raise ArchiveProblem(f"the archive's manifest cannot be read ({problem})") from None


def _entries(file: IO[bytes]) -> Iterator[tuple[str, IO[bytes]]]:
    file.seek(0)
    with tarfile.open(fileobj=file, mode="r:") as tar:
        while (entry := tar.next()) is not None:
            if not entry.isreg() or not (entry.name in (MANIFEST, SEAL) or _NAME.fullmatch(entry.name)):
                raise ArchiveProblem(f"`{entry.name}` is nothing that a backup has")
            data: Any = tar.extractfile(entry)
            yield entry.name, data
            tar.members = []  # type: ignore[attr-defined]  # it keeps all it has seen
