"""Links that work once: the first owner's, an invitation, the recovery of an account. The store has their hash.

Opening a link changes nothing (previews of mail programs open links); what is sent from its page takes it.
"""

import base64
import hashlib
from typing import Final, Literal

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.people.rights import Role
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store, Transaction

Kind = Literal["first_owner", "recovery", "invitation"]

LIFE_MS: Final[dict[Kind, int]] = {
    "first_owner": 24 * 3_600_000,
    "recovery": 3_600_000,
    "invitation": 7 * 24 * 3_600_000,
}

ADD: Final = Statement(
    "INSERT INTO one_time_links (link_hash, link_id, kind, org_id, person_id, email, role, project_roles, made_by, made_ms,"
    " ends_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
)
FIND: Final = Statement(
    "SELECT link_id, kind, org_id, person_id, email, role, project_roles, made_by, made_ms, ends_ms"
    " FROM one_time_links WHERE link_hash = $1 AND ends_ms > $2"
)
TAKE: Final = Statement(
    "DELETE FROM one_time_links WHERE link_hash = $1 AND ends_ms > $2"
    " RETURNING link_id, kind, org_id, person_id, email, role, project_roles, made_by, made_ms, ends_ms"
)
DROP_FIRST_OWNER: Final = Statement("DELETE FROM one_time_links WHERE kind = 'first_owner'")
DROP_RECOVERY: Final = Statement("DELETE FROM one_time_links WHERE kind = 'recovery' AND person_id = $1")
SWEEP: Final = Statement("DELETE FROM one_time_links WHERE ends_ms <= $1")


class ProjectRole(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    project: str
    role: Role


class Link(msgspec.Struct, frozen=True):
    link_id: str
    kind: Kind
    org_id: str | None
    person_id: str | None
    email: str | None
    role: Role | None
    project_roles: str
    made_by: str | None
    made_ms: int
    ends_ms: int

    @property
    def founds(self) -> bool:
        """Whether whoever takes it founds an organisation. The demo's owner comes into one that is there."""
        return self.kind == "first_owner" and self.org_id is None

    @property
    def in_projects(self) -> list[ProjectRole]:
        return msgspec.json.decode(self.project_roles, type=list[ProjectRole])


class NewLink(msgspec.Struct, frozen=True):
    """What a link is to be for, and its random token. Made before the transaction that stores it."""

    token: str
    link: Link

    def address(self, public_url: str) -> str:
        return f"{public_url}/welcome/{self.token}"


def new_link(
    console: Console,
    kind: Kind,
    *,
    org_id: str | None = None,
    person_id: str | None = None,
    email: str | None = None,
    role: Role | None = None,
    in_projects: tuple[ProjectRole, ...] = (),
    made_by: str | None = None,
) -> NewLink:
    now_ms = console.now_ms()
    roles = msgspec.json.encode(in_projects).decode()
    link = Link(console.new_id(), kind, org_id, person_id, email, role, roles, made_by, now_ms, now_ms + LIFE_MS[kind])
    return NewLink(base64.urlsafe_b64encode(console.entropy(24)).decode(), link)


async def store_link(tx: Transaction, new: NewLink) -> None:
    link = new.link
    await tx.run(
        ADD, _hash(new.token), link.link_id, link.kind, link.org_id, link.person_id, link.email, link.role, link.project_roles,
        link.made_by, link.made_ms, link.ends_ms,
    )  # fmt: skip


async def find_link(store: Store, token: str, now_ms: int) -> Link | None:
    return await store.row(Link, FIND, _hash(token), now_ms)


async def take_link(tx: Transaction, token: str, now_ms: int) -> Link | None:
    """The link, which is gone then. Of two at once only one gets it."""
    return await tx.row(Link, TAKE, _hash(token), now_ms)


def _hash(token: str) -> bytes:
    return hashlib.sha256(b"gatewayd link\n" + token.encode()).digest()
