"""What of the state folder is in a backup: `secrets/` and the engines' folders. Never the embedded PostgreSQL's files.

Without secrets an engine's folder is its audit file alone: its identity is a key. That engine enrols anew and goes on in its file
as a new instance.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Final

from gatewayd.control.backup.archive import PART, ArchiveWriter

AUDIT_FILE: Final = "audit.db"
SECRETS: Final = "secrets"
ENGINES: Final = "engines"
_REPLICA: Final = "replica"
_PASSING: Final = ("-wal", "-shm", ".lock", ".new", ".unfinished")
_PIECE: Final = 1 << 20


def add_folders(archive: ArchiveWriter, state: Path, scratch: Path, *, with_secrets: bool) -> None:
    """Blocking. Call it after the store was read: an engine then has all that the store has, and sends what the store lacks; the
    other way round the store would hold rows that the engine never had, which is what a fork looks like.
    """
    if with_secrets:
        for path in _files(state / SECRETS):
            archive.add_file(f"{SECRETS}/{path.name}", path)
    engines = state / ENGINES
    if (engines / _REPLICA).exists():
        archive.add_file(f"{ENGINES}/{_REPLICA}", engines / _REPLICA)
    for folder in sorted(engines.iterdir()) if engines.is_dir() else ():
        if not folder.is_dir() or folder.is_symlink():
            continue
        for path in _files(folder) if with_secrets else ():
            if path.name != AUDIT_FILE:
                archive.add_file(f"{ENGINES}/{folder.name}/{path.name}", path)
        if (folder / AUDIT_FILE).is_file():
            copy = scratch / AUDIT_FILE
            copy_database(folder / AUDIT_FILE, copy)  # last: heads and acknowledgements kept beside it are not ahead of it
            archive.add_file(f"{ENGINES}/{folder.name}/{AUDIT_FILE}", copy)
            copy.unlink()


def copy_database(source: Path, target: Path) -> None:
    """As it is at one moment, while an engine writes to it. A read-only connection: only the engine's writes and checkpoints."""
    address = f"{source.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=30)) as held, closing(sqlite3.connect(target)) as copy:
        held.backup(copy)


def unpack(folder: Path, name: str, data: IO[bytes]) -> None:
    """One member below `folder`. The archive has looked at its name. Blocking."""
    path = folder / name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("xb") as file:
        path.chmod(0o600)
        while piece := data.read(_PIECE):
            file.write(piece)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_file() and not path.is_symlink() and re.fullmatch(PART, path.name) and not path.name.endswith(_PASSING):
            yield path
