"""A project with people and an agent's token, straight in a store: what approvals need, without a control plane in between."""

import msgspec

from gatewayd.approvals.messages import GateAsk, Preview
from gatewayd.control.approvals.requests import LINK, Asker
from gatewayd.control.console import Console
from gatewayd.control.moment import moment
from gatewayd.control.people.person import ADD, BY_ID, JOIN_ORGANISATION, MEMBERSHIPS, Membership, Person
from gatewayd.control.people.rights import in_project
from gatewayd.control.people.sessions import Session
from gatewayd.control.people.welcome import ADD_ORGANISATION
from gatewayd.control.projects.change import SET_TERMS
from gatewayd.control.projects.create import before_creation, create_project
from gatewayd.control.projects.find import FIND, Project
from gatewayd.control.projects.terms import ProjectTerms, terms_text
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.store import Transaction
from gatewayd.control.tokens.text import token_text
from gatewayd.control.tokens.token import Token, add_token
from gatewayd.control.trail.record import new_organisation_trail
from gatewayd.control.web.call import Call, Incoming


class World(msgspec.Struct):
    """`people` by name; the token is Agnes's."""

    console: Console
    org: str
    project: str
    token: str
    people: dict[str, str]

    @property
    def asker(self) -> Asker:
        return Asker(self.org, self.project, LINK)

    def ask(self, sql: str = "DELETE FROM orders WHERE id = 7", **changes: object) -> GateAsk:
        ask = GateAsk(
            self.console.new_id(), "shop", sql, "tidy up", "DELETE", ("public.orders",), self.org, "claude", "1", self.token,
            "0123456789abcdef", "row_changes", "ab" * 32, Preview(1, ("Delete on orders",), 3),
        )  # fmt: skip
        return msgspec.structs.replace(ask, **changes)

    async def call(self, name: str) -> Call:
        """A request of this person, signed in, in the project."""
        store, person_id = self.console.store, self.people[name]
        person = await store.row(Person, BY_ID, person_id)
        project = await store.row(Project, FIND, self.org, self.project)
        memberships = tuple(await store.rows(Membership, MEMBERSHIPS, person_id))
        now_ms = self.console.now_ms()
        session = Session(
            b"", self.console.new_id(), person_id, self.org, now_ms, now_ms, now_ms + 60_000, now_ms, "test", "127.0.0.1", "test"
        )
        incoming = Incoming("POST", "/", "/", {}, {}, "127.0.0.1")
        return Call(
            self.console, incoming, {}, person=person, session=session, membership=memberships[0], memberships=memberships,
            project=project, rights=in_project("admin", None),
        )  # fmt: skip

    async def set_terms(self, terms: ProjectTerms) -> None:
        await self.console.store.run(SET_TERMS, self.org, self.project, terms_text(terms))


async def make_world(console: Console) -> World:
    org, trail, now, token_id = console.new_id(), new_organisation_trail(console), moment(console), console.new_id()
    people = {name: console.new_id() for name in ("Agnes", "Ben", "Cleo")}
    made, text = before_creation(console, ("shop",)), token_text("live", console.entropy(16))

    async def work(tx: Transaction) -> str:
        await tx.run(ADD_ORGANISATION, org, "A", now.now_ms)
        await trail.begin(tx, org)
        for name, person_id in people.items():
            await tx.run(ADD, person_id, f"{name}@example.com", f"{name}@example.com", name, None, now.now_ms)
            await tx.run(JOIN_ORGANISATION, person_id, org, "admin", now.now_ms)
        project = await create_project(tx, console, org, people["Agnes"], "Shop", ("shop",), made)
        token = Token(token_id, "live", "claude's", people["Agnes"], b"", "", now.now_ms, None, None, None, None, None)
        await add_token(tx, console, ProjectPlace(org, project, token_id), text, token)
        return project

    return World(console, org, await console.store.transaction(work), token_id, people)
