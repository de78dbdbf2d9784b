"""Live pages: a stream tells of a change in its project and topic, to who may see it, and of nothing else."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import httpx
import pytest

from gatewayd.control.console import Console
from gatewayd.control.store.store import Store
from tests.conftest import Postgres
from tests.control.browser import TLS
from tests.control.conftest import Plane
from tests.control.test_control_matrix import NOBODY, World, build, uuid


@pytest.fixture
async def world(plane: Plane, store_url: str, postgres: Postgres) -> World:
    store = Store(store_url)
    try:
        return await build(Console(plane.settings, store), postgres, store_url)
    finally:
        store.close()


@asynccontextmanager
async def stream(plane: Plane, world: World, who: str | None, path: str) -> AsyncIterator[httpx.Response]:
    headers = {"cookie": f"gatewayd={world.people[who][0]}"} if who else {}
    async with (
        httpx.AsyncClient(trust_env=False, timeout=30, verify=TLS) as client,
        client.stream("GET", plane.url + path, headers=headers) as answer,
    ):
        yield answer


async def next_data(lines: AsyncIterator[str]) -> str:
    while not (line := await anext(lines)).startswith("data: "):
        pass
    return line


async def test_a_change_is_told_to_the_pages_of_its_project(
    plane: Plane, world: World, postgres: Postgres, store_url: str
) -> None:
    def recorded(project: str, size: int) -> None:
        key = f"'{uuid(project)}', '{uuid(NOBODY)}', '{uuid(NOBODY)}'"
        postgres.execute(
            f"INSERT INTO audit_heads VALUES ({key}, 1, {size}, '', '', NULL, 1)"
            f" ON CONFLICT (project_id, gateway_id, instance) DO UPDATE SET size = {size}",
            store_url,
        )

    def pends(project: str, expires_ms: int) -> None:
        key = f"'{uuid(project)}', '\\x00', '{uuid(NOBODY)}'"
        postgres.execute(f"INSERT INTO approvals_pending VALUES ({key}, NULL, {expires_ms})", store_url)

    for topic, change in (("audit", recorded), ("approvals", pends)):
        async with stream(plane, world, "reviewer", f"/live/{world.project}/{topic}") as answer:
            assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
            async with aclosing(answer.aiter_lines()) as lines:
                assert await next_data(lines) == "data: 1"
                change(world.other_project, 7)
                change(world.project, 5)
                assert await next_data(lines) == "data: 2"


async def test_whoever_may_not_see_the_page_has_no_stream(plane: Plane, world: World) -> None:
    cases = (
        (None, f"/live/{world.project}/audit", 401),
        ("stranger", f"/live/{world.project}/audit", 404),
        ("stranger", f"/live/{world.project}/approvals", 404),
        ("member", f"/live/{world.project}/approvals", 404),
        ("owner", f"/live/{world.other_project}/audit", 404),
        ("owner", f"/live/{NOBODY}/audit", 404),
        ("owner", f"/live/{world.project}/secrets", 404),
        ("owner", f"/live/{world.project}", 404),
        ("owner", "/live/", 404),
    )
    for who, path, status in cases:
        async with stream(plane, world, who, path) as answer:
            assert answer.status_code == status, path
    posted = await plane.browser().send("POST", f"/live/{world.project}/audit", headers={"sec-fetch-site": "same-origin"})
    assert posted.status_code == 405


async def test_a_session_that_ends_ends_its_stream(
    plane: Plane, world: World, postgres: Postgres, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayd.control.web.live.BEAT_S", 0.2)
    async with stream(plane, world, "reviewer", f"/live/{world.project}/audit") as answer:
        async with aclosing(answer.aiter_lines()) as lines:
            while await anext(lines) != ":":
                pass
            postgres.execute("DELETE FROM sessions", store_url)
            assert [line async for line in lines if line.startswith("event")] == []
