"""Puts an archive into an empty store and an empty state folder. Everything is checked before anything is written.

Nothing marks the store as restored: a gateway sees that it knows more than its control plane does, and brings back the newest
bundle and acknowledgements with the control plane's own signatures (`gateways/restored.py`); then it pushes what it still has.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import trio

from gatewayd.control.backup.archive import Archive, Manifest
from gatewayd.control.backup.backup import rings_in_use
from gatewayd.control.backup.folders import ENGINES, SECRETS, unpack
from gatewayd.control.backup.tables import check_migrations, is_empty, load
from gatewayd.control.database import FOLDER, store_address
from gatewayd.control.keyring.stored import MASK_SALT_MASTER
from gatewayd.control.settings import ControlSettings, make_state
from gatewayd.control.store.store import Store, Transaction

_STAGED: Final = "restore.unfinished"


class RestoreProblem(Exception):
    """The place is not one to restore into; nothing was written. The text says what to do."""


class Restored(msgspec.Struct, frozen=True):
    """`made_ms`: when the backup was made. What was revoked or decided since then is not known here."""

    gatewayd: str
    made_ms: int


async def restore(settings: ControlSettings, source: Path) -> Restored:
    """All of it or nothing: the store in one transaction, the folders moved into place after it.

    Raises ArchiveProblem, RestoreProblem, BackupProblem, OSError, StoreUnavailable, EmbeddedUnavailable.
    """
    with source.open("rb") as file:
        archive = await trio.to_thread.run_sync(Archive, file)
        manifest = archive.manifest
        check_migrations(manifest)
        _check_folder(settings.state, manifest)
        if not manifest.with_secrets:
            _check_keys(settings, manifest, settings.state)
        staged = settings.state / _STAGED
        make_state(settings.state)
        staged.mkdir(mode=0o700)
        try:
            await trio.to_thread.run_sync(_stage, archive, staged)
            if manifest.with_secrets:
                _check_keys(settings, manifest, staged)
            await _into_store(settings, archive)
            await trio.to_thread.run_sync(_move, staged, settings.state)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    return Restored(manifest.gatewayd, manifest.made_ms)


async def _into_store(settings: ControlSettings, archive: Archive) -> None:
    async def work(tx: Transaction) -> None:
        if not await is_empty(tx):
            raise RestoreProblem("the store is not empty; expected a new database without tables")
        await load(tx, archive.manifest, _pieces(archive))

    async with store_address(settings) as address:
        store = Store(address, size=1)
        try:
            await store.transaction(work)
        finally:
            store.close()


def _pieces(archive: Archive) -> Iterator[tuple[str, bytes]]:
    for name, data in archive.members():
        kind, _, rest = name.partition("/")
        if kind == "store":
            yield rest.partition("/")[0], data.read()


def _check_folder(state: Path, manifest: Manifest) -> None:
    """The embedded PostgreSQL may be there, because the store is asked by itself; secrets that the archive has not, too."""
    permitted = {FOLDER} | (set() if manifest.with_secrets else {SECRETS})
    found = sorted(path.name for path in state.iterdir() if path.name not in permitted) if state.exists() else []
    if found:
        raise RestoreProblem(f"the state folder {state} is not empty (`{found[0]}` is there); expected a new one")


def _check_keys(settings: ControlSettings, manifest: Manifest, state: Path) -> None:
    """With other keys nobody could sign in, no address could be opened, and no gateway would believe a signature."""
    rings = rings_in_use(settings, state)
    for name, key_ids in sorted(manifest.keys.items()):
        if name == MASK_SALT_MASTER and settings.mask_salt_master is not None:
            continue
        held = {key.key_id for key in rings[name].keys} if name in rings else set()
        for key_id in key_ids:
            if key_id not in held:
                where = f"the environment, or in {settings.state / SECRETS}"
                raise RestoreProblem(
                    f"{name} lacks the key {key_id} of the control plane that was backed up; expected it in {where}"
                )


def _stage(archive: Archive, staged: Path) -> None:
    for name, data in archive.members():
        if not name.startswith("store/"):
            unpack(staged, name, data)


def _move(staged: Path, state: Path) -> None:
    os.sync()  # the files first, then their names: a power cut leaves whole ones
    for name in (SECRETS, ENGINES):
        if (staged / name).exists():
            (staged / name).rename(state / name)
    os.sync()
