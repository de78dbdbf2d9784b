"""One request that has been let in: who asks, from where, for which organisation and project, with which rights."""

from collections.abc import Mapping
from typing import Final, TypeVar, final

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.people.person import Membership, Person
from gatewayd.control.people.rights import Right
from gatewayd.control.people.sessions import Session, Visitor
from gatewayd.control.projects.find import Project
from gatewayd.control.web.answer import Refusal

T = TypeVar("T")


class Incoming(msgspec.Struct, frozen=True):
    """A request as it came: header names in lower case, the client's address after trusted proxies."""

    method: str
    path: str
    target: str  # path and query, as sent
    headers: Mapping[str, str]
    query: Mapping[str, str]
    client: str

    @property
    def visitor(self) -> Visitor:
        return Visitor(self.client, self.headers.get("user-agent", ""))


class FormProblem(Exception):
    """What was sent is no such form; the text names the field."""


@final
class Call:
    """Made by the gate alone. What a door does not give is None, and asking for it is a bug of the route."""

    def __init__(
        self,
        console: Console,
        incoming: Incoming,
        args: Mapping[str, str],
        *,
        person: Person | None = None,
        session: Session | None = None,
        membership: Membership | None = None,
        memberships: tuple[Membership, ...] = (),
        project: Project | None = None,
        rights: frozenset[Right] = frozenset(),
        key_id: str | None = None,
        key_project: str | None = None,
    ) -> None:
        self.console: Final = console
        self.incoming: Final = incoming
        self.args: Final = args
        self.rights: Final = rights
        self.memberships: Final = memberships
        self.key_id: Final = key_id
        self.key_project: Final = key_project
        self._person = person
        self._session = session
        self._membership = membership
        self._project = project
        self.body: object = None
        """The decoded body: of the route's `body` type."""
        self.projects: tuple[Project, ...] = ()
        """What the frame offers to go to; filled in for pages."""

    @property
    def person(self) -> Person:
        assert self._person is not None
        return self._person

    @property
    def is_signed_in(self) -> bool:
        return self._person is not None

    @property
    def session(self) -> Session:
        assert self._session is not None
        return self._session

    @property
    def is_key(self) -> bool:
        """An API key asks, and not its person."""
        return self.key_id is not None

    @property
    def membership(self) -> Membership:
        """Of the organisation that is looked at."""
        if self._membership is None:
            raise Refusal(404, "you belong to no organisation; ask for an invitation")
        return self._membership

    @property
    def has_organisation(self) -> bool:
        return self._membership is not None

    @property
    def org_id(self) -> str:
        return self.membership.org_id

    @property
    def project(self) -> Project:
        assert self._project is not None
        return self._project

    @property
    def has_project(self) -> bool:
        return self._project is not None

    def may(self, right: Right) -> bool:
        return right in self.rights

    def sent(self, shape: type[T]) -> T:
        """The body, as the route's `body` says."""
        assert isinstance(self.body, shape)
        return self.body
