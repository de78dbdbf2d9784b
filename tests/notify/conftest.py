"""No post here fails because the machine is slow; what is about the timeout sets one of its own."""

import pytest


@pytest.fixture(autouse=True)
def patient_posts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayd.notify.post.TIMEOUT_S", 300)
