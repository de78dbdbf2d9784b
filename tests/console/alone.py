"""A world outside of pytest, with a PostgreSQL of its own: for pictures and figures."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import places
from tests.conftest import Postgres, reserved_port, server_in


@contextmanager
def postgres_alone() -> Iterator[tuple[Postgres, Path]]:
    """And a folder that goes with it."""
    root = Path(tempfile.mkdtemp(prefix="gw", dir=places.ROOT))
    root.chmod(0o711)
    try:
        with reserved_port() as port:
            (root / "postgres").mkdir()
            server = server_in(root / "postgres", port, 16, {})
            try:
                yield Postgres(server), root
            finally:
                server.stop("immediate")
    finally:
        shutil.rmtree(root, ignore_errors=True)
