"""Fixtures of the audit's tests."""

from pathlib import Path

import pytest

from tests.audit.audit_calls import Calls, FileView


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def view() -> FileView:
    return FileView()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "audit.db")
