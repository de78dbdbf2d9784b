"""A new project, with its databases by name and a first policy in force: everything can be read, nothing written."""

from typing import Final

from gatewayd.audit.ids import ulid_value
from gatewayd.control.console import Console
from gatewayd.control.databases.database import ADD as ADD_DATABASE
from gatewayd.control.moment import Moment
from gatewayd.control.organisation.caps import check_cap
from gatewayd.control.organisation.routes import PLAN
from gatewayd.control.policies.checked import first_policy
from gatewayd.control.policies.publish import Publication, publish_in
from gatewayd.control.projects.terms import ProjectTerms, terms_text
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.web.answer import Refusal

COUNT: Final = Statement(
    "SELECT count(*) FROM (SELECT 1 FROM projects WHERE org_id = $1 AND deleted_ms IS NULL LIMIT 100000) AS p"
)
NAMED: Final = Statement("SELECT project_id FROM projects WHERE org_id = $1 AND name_key = $2")
ADD: Final = Statement(
    "INSERT INTO projects (org_id, project_id, name, name_key, created_ms, settings) VALUES ($1, $2, $3, $4, $5, $6)"
)
ADD_PLACE: Final = Statement("INSERT INTO directory (kind, lookup, org_id, project_id, id) VALUES ('project', $1, $2, $3, $3)")


async def create_project(
    tx: Transaction, console: Console, org_id: str, person_id: str, name: str, databases: tuple[str, ...], ids: tuple[str, ...],
    moment: Moment,
) -> str:  # fmt: skip
    """The new project's id. `ids`: one for each database. Raises Refusal 409 for a name that is taken, CapReached."""
    project_id = moment.fresh_id
    caps = console.settings.plans.of(await tx.value(PLAN, org_id))
    check_cap("projects", int(await tx.value(COUNT, org_id)), caps.projects)
    check_cap("databases", len(databases) - 1, caps.databases)
    if await tx.value(NAMED, org_id, name_key(name)) is not None:
        raise Refusal(409, "a project of that name is there already; choose another name")
    await tx.run(ADD, org_id, project_id, name, name_key(name), moment.now_ms, terms_text(ProjectTerms()))
    await tx.run(ADD_PLACE, place_of(project_id), org_id, project_id)
    for database_id, database in zip(ids, databases, strict=True):
        await tx.run(ADD_DATABASE, project_id, database_id, database, moment.now_ms)
    publication = Publication(
        text=first_policy(databases),
        note="the policy that a project begins with: everything can be read, nothing written",
        source="created",
        person_id=person_id,
    )
    await publish_in(tx, console, org_id, project_id, publication, moment)
    return project_id


def name_key(name: str) -> str:
    """What makes two names the same."""
    return " ".join(name.split()).casefold()


def place_of(project_id: str) -> bytes:
    """What `directory` knows a project by: the 16 bytes of its id."""
    value = ulid_value(project_id)
    assert value is not None, "ids are made here"
    return value.to_bytes(16, "big")
