"""The parts of asyncpg that are used beyond its documents are looked at when the driver is imported."""

import subprocess
import sys

import pytest

from gatewayd.postgres.driver import asyncpg_parts

MISSING_AT_IMPORT = """
from asyncpg import connect_utils
del connect_utils._cancel
import gatewayd.postgres.driver.session
"""


def test_the_installed_asyncpg_has_every_part() -> None:
    assert asyncpg_parts.missing() == []


def test_a_missing_part_is_named_and_nothing_starts() -> None:
    ended = subprocess.run([sys.executable, "-c", MISSING_AT_IMPORT], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "has no asyncpg.connect_utils._cancel, which gatewayd uses" in ended.stderr.splitlines()[-1]


def test_a_missing_parameter_is_named() -> None:
    class Other:
        def prepare(self, query: str) -> None: ...

    lacking = asyncpg_parts.missing((), [(Other, "prepare", frozenset({"query", "name"}))])
    assert [name.rsplit(".", 1)[1] for name in lacking] == ["prepare(name)"]
    with pytest.raises(asyncpg_parts.OtherAsyncpg, match=r"prepare\(name\)"):
        asyncpg_parts.check(lacking)
