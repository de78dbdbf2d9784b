"""What the tests of doors find in the store: two organisations, and in one a person for each role."""

import msgspec

from gatewayd.audit.ids import ulid_value
from gatewayd.control.api_keys.api_key import add_key, new_text
from gatewayd.control.console import Console
from gatewayd.control.people import sessions
from gatewayd.control.people.person import ADD, JOIN_ORGANISATION
from gatewayd.control.people.rights import PEOPLE_ONLY, RIGHTS, Role
from gatewayd.control.people.sessions import Visitor
from gatewayd.control.people.welcome import ADD_ORGANISATION
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import new_organisation_trail

ROLES: tuple[Role, ...] = ("owner", "admin", "reviewer", "auditor", "member")
NOBODY = "01JDZZZZZZZZZZZZZZZZZZZZZZ"
"""An id that nothing has."""


class TwoOrganisations(msgspec.Struct):
    """Two organisations with a project each, and in the first a person for each role; each with a session and a key."""

    project: str
    other_project: str
    people: dict[str, tuple[str, str]]  # name -> cookie, key


async def build(console: Console) -> TwoOrganisations:
    now_ms = console.now_ms()
    people: dict[str, tuple[str, str]] = {}
    orgs, projects = [console.new_id(), console.new_id()], [console.new_id(), console.new_id()]
    texts = {name: new_text(console.entropy(32)) for name in (*ROLES, "stranger")}

    async def work(tx: Transaction) -> None:
        people.clear()
        for org, project, letter in zip(orgs, projects, "AB", strict=True):
            await tx.run(ADD_ORGANISATION, org, letter, now_ms)
            await new_organisation_trail(console).begin(tx, org)
            await tx.define(
                "INSERT INTO projects (org_id, project_id, name, name_key, created_ms)"
                f" VALUES ('{uuid(org)}', '{uuid(project)}', 'secret plans', 'secret plans', 1)"
            )
        for name, text in texts.items():
            person, org = console.new_id(), orgs[1 if name == "stranger" else 0]
            role = "owner" if name == "stranger" else name
            cookie = sessions.new_cookie(console.entropy(32))
            await tx.run(ADD, person, f"{name}@example.com", f"{name}@example.com", name, None, now_ms)
            await tx.run(JOIN_ORGANISATION, person, org, role, now_ms)
            await sessions.begin(tx, cookie, console.new_id(), person, org, now_ms, "test", Visitor("127.0.0.1", "test"))
            await add_key(
                tx, console, text, console.new_id(), org_id=org, project_id=None, person_id=person, name="all",
                rights=RIGHTS - PEOPLE_ONLY, now_ms=now_ms, ends_ms=None,
            )  # fmt: skip
            people[name] = (cookie, text)

    await console.store.transaction(work)
    return TwoOrganisations(projects[0], projects[1], people)


def uuid(ulid: str) -> str:
    return f"{ulid_value(ulid):032x}"
