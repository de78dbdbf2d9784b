"""Makes an archive of a control plane, running or not: first the store at one moment, then the folders."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Final

import msgspec
import trio

from gatewayd import __version__
from gatewayd.control.backup.archive import FORMAT, ArchiveWriter, Manifest
from gatewayd.control.backup.folders import SECRETS, add_folders
from gatewayd.control.backup.tables import dump
from gatewayd.control.database import is_embedded_there, store_address
from gatewayd.control.keyring.ring import Ring, RingProblem
from gatewayd.control.keyring.stored import MASK_SALT_MASTER, RINGS, read_stored, secret_path
from gatewayd.control.settings import ControlSettings
from gatewayd.control.store import migrate
from gatewayd.control.store.store import Store
from gatewayd.durable_file import sync_folder

_NAMES: Final = (*RINGS, MASK_SALT_MASTER)


class BackupProblem(Exception):
    """There is nothing to back up, or nowhere to write to; the text says what."""


class Made(msgspec.Struct, frozen=True):
    """`elsewhere`: secrets that are not in the archive and without which it opens nothing."""

    size: int
    tables: int
    elsewhere: tuple[str, ...]


async def back_up(settings: ControlSettings, target: Path, now_ms: int, *, with_secrets: bool) -> Made:
    """Whole at `target`, mode 0600 and on the disk, or not there.

    Raises BackupProblem, OSError, StoreUnavailable, MigrationProblem, EmbeddedUnavailable.
    """
    if settings.database_url is None and not is_embedded_there(settings.state):
        raise BackupProblem(f"there is no control plane in {settings.state}; set CONTROL_STATE_DIR or CONTROL_DATABASE_URL")
    keys = {name: tuple(key.key_id for key in ring.keys) for name, ring in rings_in_use(settings).items()}
    with _new_file(target) as (file, scratch):
        archive = ArchiveWriter(file, now_ms)
        async with store_address(settings) as address:
            store = Store(address, size=1)
            try:
                migrations = (await migrate.state(store)).applied
                if not migrations:
                    raise BackupProblem("the store is empty; there is nothing to back up")
                async with store.connection() as connection:
                    tables = await dump(connection, archive)
            finally:
                store.close()
        await trio.to_thread.run_sync(partial(add_folders, archive, settings.state, scratch, with_secrets=with_secrets))
        archive.finish(Manifest(FORMAT, __version__, now_ms, migrations, tables, keys, with_secrets))
        size = file.tell()
    return Made(size, len(tables), _elsewhere(settings, keys, with_secrets=with_secrets))


@contextmanager
def _new_file(target: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """A file that becomes `target` when the block has ended well, and a folder beside it that goes with the block."""
    if os.path.lexists(target):
        raise BackupProblem(f"{target} is there already; expected a new file")
    parent = target.absolute().parent
    with tempfile.TemporaryDirectory(prefix=".gatewayd-backup-", dir=parent) as scratch:
        unfinished = Path(scratch) / "archive"
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file, Path(scratch)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(target)
        sync_folder(parent)


def rings_in_use(settings: ControlSettings, state: Path | None = None) -> dict[str, Ring]:
    """Those that the environment gives, else those of the state folder (or of `state`). Raises BackupProblem."""
    rings = dict(settings.given)
    for name in _NAMES:
        is_set = name in rings or (name == MASK_SALT_MASTER and settings.mask_salt_master is not None)
        path = secret_path(state or settings.state, name)
        if not is_set and path.exists():
            try:
                rings[name] = read_stored(state or settings.state, name)
            except (OSError, RingProblem) as problem:
                raise BackupProblem(f"the secret {path} {problem}") from None
    return rings


def _elsewhere(settings: ControlSettings, keys: Iterable[str], *, with_secrets: bool) -> tuple[str, ...]:
    given = {*settings.given} | ({MASK_SALT_MASTER} if settings.mask_salt_master is not None else set())
    if with_secrets:
        return tuple(sorted(given))
    stored = [str(settings.state / SECRETS)] if set(keys) - given else []
    return (*sorted(given), *stored)
