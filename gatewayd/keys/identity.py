"""The gateway's own key on disk: `identity.json`, or a systemd credential (docs/audit-format.md, Identity).

One identity, linked or not. It is made at the first start and signs audit heads and requests. The file belongs to its owner alone
(0600): whoever reads it can sign as this gateway.
"""

import base64
import contextlib
import os
import stat
from pathlib import Path
from typing import Final

import msgspec

from gatewayd.durable_file import sync_folder
from gatewayd.keys.ed25519 import KeyRefused, SigningKey, strict_base64
from gatewayd.keys.note import VerifierKey

FILE_NAME: Final = "identity.json"
NEXT_NAME: Final = "identity.next.json"
"""The key that is to take its place (docs/link-protocol.md, Rotation)."""
CREDENTIAL: Final = "gatewayd-identity"
_FORMAT: Final = 1
_BYTES: Final = 4096
_EXPECTED: Final = "expected the file that gatewayd made"


class IdentityRefused(Exception):
    """The identity cannot be read, made or trusted; the text names the place, what was found and what is expected."""


class _Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    private_key: str  # base64 of the seed
    public_key: str  # base64, so that a damaged seed is noticed


def verifier_of(key: SigningKey) -> VerifierKey:
    """The public half under the name that the gateway's notes call it by: `gatewayd/<key id>`."""
    return VerifierKey(f"gatewayd/{key.key_id}", key.public)


def load_identity(state_dir: str, credentials_dir: str | None = None, *, name: str = FILE_NAME) -> SigningKey | None:
    """The identity from the credential, else from the file; None when there is neither.

    Raises IdentityRefused: a key that cannot be read is never replaced by a new one.
    """
    if credentials_dir:
        path = Path(credentials_dir) / CREDENTIAL
        if path.exists():
            return _parsed(_read(path), path)
    path = Path(state_dir) / name
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise _refused(path, failure) from None
    if not stat.S_ISREG(mode):
        raise IdentityRefused(f"{path} is no file; {_EXPECTED}")
    if mode & 0o077:
        raise IdentityRefused(f"{path} has mode {stat.S_IMODE(mode):04o}, expected 0600: others could sign as this gateway")
    return _parsed(_read(path), path)


def ensure_identity(state_dir: str, credentials_dir: str | None = None, *, name: str = FILE_NAME) -> SigningKey:
    """The identity, made now when there is none. Of two processes that make one at once, both get the same."""
    known = load_identity(state_dir, credentials_dir, name=name)
    if known is not None:
        return known
    try:
        _write(SigningKey.generate(), Path(state_dir), name)
    except OSError as failure:
        raise _refused(Path(state_dir) / name, failure) from None
    made = load_identity(state_dir, None, name=name)
    assert made is not None
    return made


def replace_identity(state_dir: str) -> None:
    """Puts the next identity in the place of the present one, durably. Raises OSError."""
    folder = Path(state_dir)
    os.rename(folder / NEXT_NAME, folder / FILE_NAME)
    sync_folder(folder)


def _write(key: SigningKey, folder: Path, name: str) -> None:
    """Whole and durable or not at all, and never over a file that is there."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    stored = _Stored(_FORMAT, base64.b64encode(key.seed).decode(), base64.b64encode(key.public.raw).decode())
    temporary = folder / f".{FILE_NAME}.{os.getpid()}.{os.urandom(4).hex()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            os.write(descriptor, msgspec.json.encode(stored) + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        with contextlib.suppress(FileExistsError):  # another process was first: its key is the identity
            os.link(temporary, folder / name)
    finally:
        os.unlink(temporary)
    sync_folder(folder)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_BYTES + 1)
    except OSError as failure:
        raise _refused(path, failure) from None


def _parsed(data: bytes, path: Path) -> SigningKey:
    try:
        stored = msgspec.json.decode(data, type=_Stored)
        key = SigningKey(strict_base64(stored.private_key))
        public = strict_base64(stored.public_key)
    except (msgspec.DecodeError, ValueError, KeyRefused, UnicodeDecodeError):  # never its text: that is the key
        raise IdentityRefused(f"{path} holds no identity; {_EXPECTED}") from None
    if stored.format != _FORMAT:
        raise IdentityRefused(f"{path} has format {stored.format}, expected {_FORMAT}")
    if key.public.raw != public:
        raise IdentityRefused(f"{path} is damaged: its public key is not that of its private key")
    return key


def _refused(path: Path, failure: OSError) -> IdentityRefused:
    return IdentityRefused(f"{path}: {(failure.strerror or 'input/output error').lower()}; expected a folder that is writable")
