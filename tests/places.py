"""Where tests put their files: in memory where there is room for all of them, on a disk elsewhere.

A run writes some gigabytes of databases and audit files and waits for thousands of fsyncs, and nothing of it outlives the run.
"""

import os
import shutil
from pathlib import Path
from typing import Final

ROOM_BYTES: Final = 4 * 1024**3


def _root() -> Path:
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= ROOM_BYTES:
        return memory
    return Path("/tmp")


ROOT: Final = _root()
"""Its path is short enough for the unix sockets in folders below it, and PostgreSQL's own account may enter it."""
