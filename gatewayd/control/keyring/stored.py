"""Rings as files in the state folder: made at the first start in self-host, mode 0600, changed by `control key`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gatewayd.control.keyring.ring import VALUE_BYTES, Ring, key_of, read_ring, ring_text

RINGS: Final = ("CONTROL_AUTH_SECRET", "CONTROL_KMS_KEY", "CONTROL_TOKEN_PEPPER", "CONTROL_SIGNING_KEY")
MASK_SALT_MASTER: Final = "GATEWAY_MASK_SALT_MASTER"
_FOLDER: Final = "secrets"


def secret_path(state: Path, name: str) -> Path:
    return state / _FOLDER / name.lower().replace("_", "-")


def make_missing(state: Path, names: tuple[str, ...], entropy: Callable[[int], bytes]) -> None:
    """Write a ring of one new value for each name that has no file. Raises OSError."""
    (state / _FOLDER).mkdir(mode=0o700, exist_ok=True)
    for name in names:
        if not secret_path(state, name).exists():
            write_ring(state, name, Ring((key_of(entropy(VALUE_BYTES)),)))


def read_stored(state: Path, name: str) -> Ring:
    """Raises OSError or RingProblem."""
    return read_ring(secret_path(state, name).read_text(encoding="utf-8"))


def write_ring(state: Path, name: str, ring: Ring) -> None:
    """Whole or not at all, and on the disk before it is used: what is sealed with a lost key is lost."""
    path = secret_path(state, name)
    unfinished = path.with_suffix(".unfinished")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(ring_text(ring))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
