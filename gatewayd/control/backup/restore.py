"""Puts an archive into an empty store and an empty state folder. Everything is checked before anything is written.

Nothing marks the store as restored: a gateway sees that it knows more than its control plane does, and brings back the newest
bundle and acknowledgements with the control plane's own signatures (`gateways/restored.py`); then it pushes what it still has.
"""

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, Literal

import msgspec
import trio

from gatewayd.control.backup.archive import Archive, Manifest
from gatewayd.control.backup.backup import rings_in_use
from gatewayd.control.backup.folders import ENGINES, SECRETS, unpack
from gatewayd.control.backup.tables import check_migrations, has_leases, is_empty, load
from gatewayd.control.database import FOLDER, store_address
from gatewayd.control.keyring.stored import MASK_SALT_MASTER
from gatewayd.control.projects.find import FIRST_ID
from gatewayd.control.settings import UNFINISHED_RESTORE, ControlSettings, make_state
from gatewayd.control.store import lease
from gatewayd.control.store.failures import OutcomeUnknown
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store, Transaction

_SEAL: Final = "archive.sha256"
"""In the staged folder: that it is whole, and of which archive."""
DONE: Final = "restored {}"
"""The lease that the store holds from the transaction that has filled it; the name ends with the archive's seal."""
HELD: Final = Statement("SELECT name FROM leases WHERE name = $1")

Standing = Literal["empty", "filled from this archive", "in use"]


class RestoreProblem(Exception):
    """The place is not one to restore into; nothing was written. The text says what to do."""


class Restored(msgspec.Struct, frozen=True):
    """`made_ms`: when the backup was made. What was revoked or decided since then is not known here."""

    gatewayd: str
    made_ms: int


async def restore(settings: ControlSettings, source: Path) -> Restored:
    """All of it or nothing: the store in one transaction, the folders moved into place after it.

    A run that was cut short is taken up by the next one with the same archive: it begins anew while the store is empty, and moves
    what is left to move once the store is filled.

    Raises ArchiveProblem, RestoreProblem, BackupProblem, OSError, StoreUnavailable, OutcomeUnknown, EmbeddedUnavailable.
    """
    with source.open("rb") as file:
        archive = await trio.to_thread.run_sync(Archive, file)
        manifest = archive.manifest
        check_migrations(manifest)
        staged = settings.state / UNFINISHED_RESTORE
        if not (staged.exists() and await _is_filled(settings, archive, staged)):
            _check_folder(settings.state, manifest)
            if not manifest.with_secrets:
                _check_keys(settings, manifest, settings.state)
            make_state(settings.state)
            await _fill(settings, archive, staged)
        await trio.to_thread.run_sync(_move, staged, settings.state)
        shutil.rmtree(staged)
    return Restored(manifest.gatewayd, manifest.made_ms)


async def _is_filled(settings: ControlSettings, archive: Archive, staged: Path) -> bool:
    """What a run before this one has come to: its store is filled, or nothing is left of it. Raises RestoreProblem."""
    async with _store_of(settings) as store:
        standing = await store.transaction(partial(_standing, archive=archive))
    if standing == "empty":
        await trio.to_thread.run_sync(shutil.rmtree, staged)
        return False
    if standing == "in use" or not _is_whole(staged, archive):
        raise RestoreProblem(
            f"a restore of another archive did not end in {settings.state}; run that one again, or begin with an empty store"
            " and an empty state folder"
        )
    return True


async def _fill(settings: ControlSettings, archive: Archive, staged: Path) -> None:
    """The folders beside their places, then the store. What may have been committed is left for the next run."""
    try:
        await trio.to_thread.run_sync(_stage, archive, staged)
        if archive.manifest.with_secrets:
            _check_keys(settings, archive.manifest, staged)
        await _into_store(settings, archive)
    except OutcomeUnknown:
        raise
    except Exception:
        shutil.rmtree(staged, ignore_errors=True)
        raise


async def _into_store(settings: ControlSettings, archive: Archive) -> None:
    async def work(tx: Transaction) -> None:
        if not await is_empty(tx):
            raise RestoreProblem("the store is not empty; expected a new database without tables")
        await load(tx, archive.manifest, _pieces(archive))
        await tx.run(lease.ENTER, DONE.format(archive.seal), FIRST_ID)

    async with _store_of(settings) as store:
        await store.transaction(work)


async def _standing(tx: Transaction, archive: Archive) -> Standing:
    if await is_empty(tx):
        return "empty"
    is_ours = await has_leases(tx) and await tx.value(HELD, DONE.format(archive.seal)) is not None
    return "filled from this archive" if is_ours else "in use"


@asynccontextmanager
async def _store_of(settings: ControlSettings) -> AsyncIterator[Store]:
    async with store_address(settings) as address:
        store = Store(address, size=1)
        try:
            yield store
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
    staged.mkdir(mode=0o700)
    for name, data in archive.members():
        if not name.startswith("store/"):
            unpack(staged, name, data)
    os.sync()  # the files first, then that they are whole
    (staged / _SEAL).write_text(archive.seal, encoding="ascii")
    os.sync()


def _is_whole(staged: Path, archive: Archive) -> bool:
    seal = staged / _SEAL
    return seal.exists() and seal.read_text(encoding="ascii") == archive.seal


def _move(staged: Path, state: Path) -> None:
    for name in (SECRETS, ENGINES):
        if (staged / name).exists():
            (staged / name).rename(state / name)
    os.sync()
