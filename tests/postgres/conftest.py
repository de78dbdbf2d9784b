"""No session here is given up because the machine is slow; what is about the bounds sets its own."""

import pytest

from gatewayd.postgres.driver import session as connection_module


@pytest.fixture(autouse=True)
def patient_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "CONNECT_S", 300)
    monkeypatch.setattr(connection_module, "GRACE_S", 300)
