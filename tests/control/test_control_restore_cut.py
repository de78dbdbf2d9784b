"""A restore that is cut short at any step: the next one with the same archive ends it, and nothing serves in between."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatewayd.config.settings import SettingsErrors
from gatewayd.control.backup import restore as restoring
from gatewayd.control.backup.archive import Archive
from gatewayd.control.backup.backup import back_up
from gatewayd.control.backup.restore import RestoreProblem, restore
from gatewayd.control.console import now_ms
from gatewayd.control.settings import ControlSettings, with_secrets
from gatewayd.control.store.store import Store
from tests.control.places import MakePlace, address


class Killed(BaseException):
    """As SIGKILL does it: nothing is tidied up."""


def before(_step: Callable[..., Any]) -> Callable[..., Any]:
    def killed(*_: Any) -> Any:
        raise Killed

    return killed


def after(step: Callable[..., Any]) -> Callable[..., Any]:
    async def killed_later(*given: Any) -> Any:
        await step(*given)
        raise Killed

    return killed_later


def in_the_middle(_step: Callable[..., Any]) -> Callable[..., Any]:
    def one_moved(staged: Path, state: Path) -> None:
        (staged / "secrets").rename(state / "secrets")
        raise Killed

    return one_moved


@pytest.fixture
async def archive(settings: ControlSettings, tmp_path: Path) -> Path:
    engine = settings.state / "engines"
    engine.mkdir()
    (engine / "replica").write_text("01JDZ3NDEKTSV4RRFFQ69G5FAV")
    await back_up(settings, tmp_path / "backup.tar", now_ms(), with_secrets=True)
    return tmp_path / "backup.tar"


@pytest.mark.parametrize(
    ("step", "how"),
    [
        ("_is_whole", None),
        ("unpack", before),
        ("_into_store", before),
        ("_into_store", after),
        ("_move", before),
        ("_move", in_the_middle),
    ],
)
async def test_the_next_run_ends_what_was_cut_short(
    step: str, how: Any, settings: ControlSettings, archive: Path, place: MakePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = place("elsewhere")
    if how is not None:
        with monkeypatch.context() as patched:
            patched.setattr(restoring, step, how(getattr(restoring, step)))
            with pytest.raises(Killed):
                await restore(elsewhere, archive)
        with pytest.raises(SettingsErrors, match="did not end"):
            with_secrets(elsewhere)
    await restore(elsewhere, archive)
    assert sorted(path.name for path in elsewhere.state.iterdir()) == ["engines", "secrets"]
    assert (elsewhere.state / "engines" / "replica").read_text() == "01JDZ3NDEKTSV4RRFFQ69G5FAV"
    assert with_secrets(elsewhere).secrets == settings.secrets
    store = Store(address(elsewhere), size=1)
    try:
        assert await store.value(restoring.HELD, restoring.DONE.format(seal_of(archive))) is not None
    finally:
        store.close()
    with pytest.raises(RestoreProblem, match="not empty"):
        await restore(elsewhere, archive)


async def test_another_archive_does_not_take_up_what_was_cut_short(
    settings: ControlSettings,
    archive: Path,
    place: MakePlace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = tmp_path / "other.tar"
    await back_up(settings, other, now_ms() + 1, with_secrets=True)
    elsewhere = place("elsewhere")
    with monkeypatch.context() as patched:
        patched.setattr(restoring, "_move", before(restoring._move))
        with pytest.raises(Killed):
            await restore(elsewhere, archive)
    with pytest.raises(RestoreProblem, match="another archive did not end"):
        await restore(elsewhere, other)
    await restore(elsewhere, archive)
    assert with_secrets(elsewhere).secrets == settings.secrets


def seal_of(path: Path) -> str:
    with path.open("rb") as file:
        return Archive(file).seal
