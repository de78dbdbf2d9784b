"""Who may do what: roles to rights, as one table (docs/control-plane.md, Roles). Pure.

A role in the organisation holds for all its projects; `member` there reaches only projects in which the person has a role. What
is not listed is not allowed. Approving is a right of people alone: no API key can have it.
"""

from collections.abc import Iterable
from typing import Final, Literal, get_args

Role = Literal["owner", "admin", "reviewer", "auditor", "member"]
Right = Literal[
    "org.read",  # its name, its projects, oneself
    "org.people",  # invite, change roles, remove
    "org.owners",  # make and unmake owners
    "org.keys",  # API keys of others
    "org.settings",  # name, OIDC, notifications, stop everything
    "org.audit",  # what people did
    "project.create",
    "project.remove",
    "project.read",
    "project.people",  # roles in the project
    "project.databases",
    "project.policy",  # edit and publish
    "project.pause",
    "project.tokens",  # one's own agent tokens
    "project.tokens_of_others",
    "project.gateways",
    "project.approvals",  # look at them
    "project.approve",
    "project.audit",
    "project.erase",
    "project.taint",
]

RIGHTS: Final[frozenset[Right]] = frozenset(get_args(Right))
ROLES: Final[tuple[Role, ...]] = get_args(Role)
PEOPLE_ONLY: Final[frozenset[Right]] = frozenset({"org.people", "org.owners", "org.keys", "project.people", "project.approve"})
"""Never a scope of an API key: what decides about writes, people and keys is done by somebody who is signed in."""

_MEMBER: Final[frozenset[Right]] = frozenset({"org.read", "project.read", "project.tokens", "project.approvals"})
_AUDITOR: Final[frozenset[Right]] = frozenset({"org.read", "org.audit", "project.read", "project.approvals", "project.audit"})
_REVIEWER: Final[frozenset[Right]] = _MEMBER | {"project.approve", "project.audit"}
_ADMIN: Final[frozenset[Right]] = RIGHTS - {"org.owners"}

OF_ROLE: Final[dict[Role, frozenset[Right]]] = {
    "owner": RIGHTS,
    "admin": _ADMIN,
    "reviewer": _REVIEWER,
    "auditor": _AUDITOR,
    "member": _MEMBER,
}


def in_organisation(role: Role) -> frozenset[Right]:
    """What the role allows outside of any project."""
    return frozenset(right for right in OF_ROLE[role] if not right.startswith("project.") or right == "project.create")


def in_project(role: Role, project_role: Role | None) -> frozenset[Right]:
    """What both roles together allow in one project; empty: for this person the project does not exist.

    `role` is that in the organisation. A plain member sees only projects in which they have a role of their own.
    """
    found: frozenset[Right] = frozenset() if role == "member" else OF_ROLE[role]
    if project_role is not None:
        found |= OF_ROLE[project_role]
    return frozenset(right for right in found if right.startswith("project."))


def scopes(wanted: Iterable[str]) -> frozenset[Right]:
    """The rights among `wanted` that an API key may have."""
    return frozenset(right for right in RIGHTS - PEOPLE_ONLY if right in set(wanted))


def may_change_role(actor: Role, before: Role, after: Role | None) -> bool:
    """Whether `actor` may turn somebody's role from `before` to `after` (None: remove). Owners are made by owners only."""
    if "owner" in (before, after):
        return "org.owners" in OF_ROLE[actor]
    return "org.people" in OF_ROLE[actor]
