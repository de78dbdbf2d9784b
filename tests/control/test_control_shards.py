"""No statement of the store needs two shards: told from each text, and shown with projects on three databases."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from gatewayd.control.settings import ControlSettings
from gatewayd.control.store.statement import Statement
from gatewayd.control.web.table import ROUTES
from tests.conftest import Postgres
from tests.control.conftest import Plane, found, serving
from tests.control.gateway_of_tests import TestGateway
from tests.control.linked_rig import Project, new_project
from tests.control.portable import keys, owner_column, statements
from tests.control.shards import ShardedStore, route_of, shard_of

SHARDS = 3
PROJECTS = 3


def test_one_parameter_says_on_which_shard_a_statement_runs() -> None:
    """Two would be two shards, unless both happened to lie on one; none would be all of them."""
    routes = {name: route_of(text) for name, text in statements().items()}
    assert {name: route for name, route in routes.items() if len(route.owners) != (1 if route.tables else 0)} == {}
    assert len([route for route in routes.values() if route.tables]) > 150


@pytest.mark.parametrize(
    "text",
    [
        "SELECT p.name FROM projects p JOIN databases d ON d.project_id = p.project_id WHERE p.org_id = $1 AND d.project_id = $2",
        "INSERT INTO databases (project_id, database_id, name) VALUES ($1, $2, $3), ($4, $5, $6)",
    ],
)
def test_a_statement_that_needs_two_shards_is_found(text: str) -> None:
    assert len(route_of(text).owners) == 2


@pytest.fixture
async def sharded(settings: ControlSettings, postgres: Postgres, migrated: str) -> AsyncIterator[tuple[Plane, ShardedStore]]:
    store = ShardedStore([postgres.copy_database(migrated) for _ in range(SHARDS)])
    async with serving(settings, make_store=lambda _dsn: store) as plane:
        yield plane, store


async def test_projects_on_three_shards_are_served_as_on_one(sharded: tuple[Plane, ShardedStore]) -> None:
    plane, store = sharded
    owner = plane.browser()
    await found(owner, plane.first_link)
    projects = [await new_project(owner, plane, name="Shop 0")]
    while len(projects) < PROJECTS or len({shard_of(each.id, SHARDS) for each in projects}) < 2:
        projects.append(await another(projects[0], len(projects)))
    queries: dict[str, list[str]] = {}
    for number, project in enumerate(projects):
        token = await project.ask("POST", "/tokens", {"name": "claude"})
        enrol = await project.ask("POST", "/gateways/tokens", {"name": "edge"})
        gateway = TestGateway(plane.url, number + 1)
        assert (await gateway.enrol(enrol["token"])).status_code == 200
        queries[project.id] = [gateway.rows.query(mcp_token_id=token["id"]) for _ in range(5)]
        assert (await gateway.push())[0].status_code == 200
        assert (await gateway.poll(note=gateway.rows.note(gateway.identity)))[0].status_code == 200
    for project in projects:
        held = await project.ask("GET", "/audit?agent=claude")
        assert sorted(each["query_id"] for each in held["queries"]) == sorted(queries[project.id])
        assert (await project.ask("GET", f"/audit/queries/{queries[project.id][0]}/proof"))["text"]
        for route in ROUTES:
            path = route.path.replace("<project>", project.id)
            if route.method == "GET" and route.door == "person" and "<" not in path:
                answer = await owner.get(path)
                assert answer.status_code in (200, 303), (path, answer.text)
    await rows_are_where_they_belong(store)
    assert len([text for text in store.ran if route_of(text).tables]) > 60, "most statements on a project's tables ran"


async def another(first: Project, number: int) -> Project:
    made = await first.api("POST", "/projects", {"name": f"Shop {number}", "databases": ("shop",)})
    assert made.status_code == 201, made.text
    project = Project(first.owner, first.url, first.key)
    project.id = str(made.json()["id"])
    return project


async def rows_are_where_they_belong(store: ShardedStore) -> None:
    for table in keys():
        owner = owner_column(table)
        if owner is None or table.startswith(("audit_2", "audit_details_")):
            continue
        for number, shard in enumerate(store.stores):
            owners = await shard.rows(_Owner, Statement(f"SELECT DISTINCT {owner} AS owner FROM {table}"))
            assert {shard_of(each.owner, SHARDS) for each in owners} <= {number}, table


class _Owner(msgspec.Struct):
    owner: str
