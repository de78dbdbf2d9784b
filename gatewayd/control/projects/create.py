"""A new project, with its databases by name and a first policy in force: everything can be read, nothing written."""

from typing import Final

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.databases.database import ADD as ADD_DATABASE
from gatewayd.control.moment import Moment, moment
from gatewayd.control.organisation.caps import check_cap
from gatewayd.control.organisation.routes import PLAN
from gatewayd.control.policies.checked import first_policy
from gatewayd.control.policies.publish import Publication, publish_in
from gatewayd.control.projects.terms import ProjectTerms, terms_text
from gatewayd.control.store import directory
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Refusal

COUNT: Final = Statement(
    "SELECT count(*) FROM (SELECT 1 FROM projects WHERE org_id = $1 AND deleted_ms IS NULL LIMIT 100000) AS p"
)
NAMED: Final = Statement("SELECT project_id FROM projects WHERE org_id = $1 AND name_key = $2")
ADD: Final = Statement(
    "INSERT INTO projects (org_id, project_id, name, name_key, created_ms, settings) VALUES ($1, $2, $3, $4, $5, $6)"
)


class BeforeCreation(msgspec.Struct, frozen=True):
    """What a new project needs from outside of its transaction. Its id is `created.fresh_id`."""

    created: Moment
    published: Moment
    database_ids: tuple[str, ...]


def before_creation(console: Console, databases: tuple[str, ...]) -> BeforeCreation:
    return BeforeCreation(moment(console), moment(console), tuple(console.new_id() for _ in databases))


async def create_project(
    tx: Transaction, console: Console, org_id: str, person_id: str, name: str, databases: tuple[str, ...], made: BeforeCreation
) -> str:
    """The new project's id. Raises Refusal 409 for a name that is taken, CapReached."""
    project_id, now_ms = made.created.fresh_id, made.created.now_ms
    caps = console.settings.plans.of(await tx.value(PLAN, org_id))
    check_cap("projects", int(await tx.value(COUNT, org_id)), caps.projects)
    check_cap("databases", len(databases) - 1, caps.databases)
    if await tx.value(NAMED, org_id, name_key(name)) is not None:
        raise Refusal(409, "a project of that name is there already; choose another name")
    await tx.run(ADD, org_id, project_id, name, name_key(name), now_ms, terms_text(ProjectTerms()))
    lookup = directory.lookup_of_id(project_id)
    assert lookup is not None, "ids are made here"
    await directory.add(tx, "project", lookup, ProjectPlace(org_id, project_id, project_id))
    for database_id, database in zip(made.database_ids, databases, strict=True):
        await tx.run(ADD_DATABASE, project_id, database_id, database, now_ms)
    await made.created.record(tx, org_id, Act("project.created", person_id, project_id, None, {"name": name}))
    publication = Publication(
        text=first_policy(databases),
        note="the policy that a project begins with: everything can be read, nothing written",
        source="created",
        person_id=person_id,
    )
    await publish_in(tx, console, org_id, project_id, publication, made.published)
    return project_id


def name_key(name: str) -> str:
    """What makes two names the same."""
    return " ".join(name.split()).casefold()
