"""The last head that this identity signed, kept beside the identity and outside of the audit file.

An audit file that was restored from a backup or cut at its end holds less than was signed. This head reveals that at the start.
"""

import contextlib
import os
from pathlib import Path
from typing import Final

from gatewayd.audit.heads import Head, head_in
from gatewayd.keys.note import NoteRefused, VerifierKey, open_note

FILE_NAME: Final = "audit-head"
_CHARACTERS: Final = 4096


class LastHead:
    """The file `audit-head` in the state folder. Blocking; for one process at a time."""

    def __init__(self, state_dir: str) -> None:
        self._path = Path(state_dir) / FILE_NAME

    def read(self, key: VerifierKey) -> Head | None:
        """The head; None if there is none that `key` signed."""
        try:
            with self._path.open(encoding="utf-8") as file:
                return head_in(open_note(file.read(_CHARACTERS), [key])[0])
        except (OSError, UnicodeDecodeError, NoteRefused):
            return None

    def write(self, note: str) -> None:
        """Stores the head, best effort: without it a restored file can still be found by the heads in the collected logs."""
        temporary = self._path.with_name(f".{FILE_NAME}.{os.getpid()}")
        with contextlib.suppress(OSError):
            temporary.write_text(note, encoding="utf-8")
            temporary.chmod(0o600)
            temporary.replace(self._path)
