"""Addresses of databases: none leads to the control plane's own store, and none is taken where no engines run."""

from pathlib import Path

import msgspec
import pytest

from gatewayd.audit.ids import ulid_text
from gatewayd.config.credentials import Secret
from gatewayd.control.databases.address import address_problem
from gatewayd.control.databases.connection_check import checked_connection
from gatewayd.control.engines.home import Home
from gatewayd.control.settings import ControlSettings
from tests.control.api import Api, api, console_of_plane, project

__all__ = ["api", "console_of_plane"]

OWN = "own store"
AROUND = "a way around"


@pytest.fixture
def store_folder(tmp_path: Path) -> Path:
    """Where the store's server has its socket; `alias` beside it is a link to it."""
    folder = tmp_path / "server"
    folder.mkdir()
    (tmp_path / "alias").symlink_to(folder)
    return folder


@pytest.fixture
def beside_store(settings: ControlSettings, store_folder: Path) -> ControlSettings:
    """A control plane whose store shares its server with other databases."""
    store = Secret(f"postgresql://control@/control?host={store_folder}")
    return msgspec.structs.replace(settings, database_url=store)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://postgres@/control?host={folder}",
        "postgresql://postgres:word@/control?host={folder}&port=5433",
        "postgresql://postgres@/control?h%6Fst={encoded}",
        "postgresql://postgres@{encoded}/control",
        "postgresql://postgres@db.example.com,{encoded}/c%6Fntrol",
        "postgresql://postgres@?dbname=control&host={folder}",
        "postgresql://control@/?host={folder}",
        "postgresql://postgres@/control?host={folder}/.s.PGSQL.5432",
        "postgresql://postgres@/control?host=/{folder}",
        "postgresql://postgres@/control?host={folder}/../alias",
        "postgresql://postgres@/control?host={alias}",
        "postgresql://postgres@/control?host=/proc/self/root{folder}",
        "postgresql://postgres@/control?host=//proc/self/cwd",
    ],
)
def test_no_address_leads_to_the_store(address: str, beside_store: ControlSettings, store_folder: Path) -> None:
    alias = store_folder.with_name("alias")
    url = address.format(folder=store_folder, encoded=str(store_folder).replace("/", "%2F"), alias=alias)
    problem = address_problem(url, beside_store)
    assert problem is not None
    assert OWN in problem or AROUND in problem


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://agent@/shop?host={folder}",
        "postgresql://agent:word@{encoded}/shop",
        "postgresql://agent:word@db.example.com:5432/control?sslmode=require",
        "postgresql://agent@/control?host=/run/postgresql",
        "postgresql://agent:word@localhost/shop",
        "postgresql:///shop",
    ],
)
def test_databases_beside_the_store_are_taken(address: str, beside_store: ControlSettings, store_folder: Path) -> None:
    url = address.format(folder=store_folder, encoded=str(store_folder).replace("/", "%2F"))
    assert address_problem(url, beside_store) is None


def test_nothing_of_an_embedded_store_s_server_is_an_address(settings: ControlSettings) -> None:
    embedded = msgspec.structs.replace(settings, database_url=None)
    for database in ("control", "postgres", "shop"):
        url = f"postgresql://postgres@/{database}?host={settings.state}/postgres"
        assert OWN in (address_problem(url, embedded) or "")


def test_where_no_engines_run_no_address_is_taken(settings: ControlSettings) -> None:
    hosted = msgspec.structs.replace(settings, self_host=False)
    for url in ("postgresql://a:b@db.example.com/shop", "postgresql://a@/shop?h%6Fst=/run/postgresql", "postgresql://a@%2Frun/x"):
        assert "runs no engines" in (address_problem(url, hosted) or "")


async def test_the_api_refuses_the_store_s_address_and_keeps_nothing(api: Api, store_url: str) -> None:
    project_id = await project(api)
    (database,) = (await api("GET", f"/projects/{project_id}/databases")).json()["databases"]
    path = f"/projects/{project_id}/databases/{database['id']}"
    for answer in (
        await api("PUT", path, {"url": store_url}),
        await api("POST", f"/projects/{project_id}/databases", {"name": "own", "url": store_url}),
    ):
        assert answer.status_code == 400
        assert OWN in answer.json()["error"]
    (kept,) = (await api("GET", f"/projects/{project_id}/databases")).json()["databases"]
    assert not kept["has_address"]


async def test_the_connection_test_leaves_its_address_and_home_nowhere_else(settings: ControlSettings, tmp_path: Path) -> None:
    """Without HOME the driver would look for passwords and certificates at that of the control plane."""
    engine = tmp_path / "engine"
    engine.write_text(
        """#!/bin/sh\nprintf '{"check":"%s","outcome":"%s","found":"%s","database":"-"}' "$HOME" "$PWD" "$DATABASE_URL_FILE"\n""",
        encoding="utf-8",
    )
    engine.chmod(0o700)
    folder = settings.runtime / ulid_text(7)
    (found,) = await checked_connection("postgresql://a:b@db.example.com/shop", engine=str(engine), folder=folder)
    assert (found.check, found.outcome) == (str(folder), str(folder))
    assert Path(found.found).parent == folder
    assert not folder.exists()


def test_an_address_that_a_killed_connection_test_left_is_forgotten_at_the_next_start(settings: ControlSettings) -> None:
    left = settings.runtime / ulid_text(7)
    left.mkdir(parents=True)
    (left / "database-url").write_text("postgresql://a:b@db.example.com/shop", encoding="utf-8")
    home = Home(settings.state, settings.runtime)
    home.open(lambda: ulid_text(8))
    home.close()
    assert not left.exists()
