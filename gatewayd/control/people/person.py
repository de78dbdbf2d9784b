"""People and their place in organisations: shapes, and the statements that several of the folder need."""

import re
from typing import Final

import msgspec

from gatewayd.control.people.rights import Role
from gatewayd.control.store.statement import Statement

NAME_CHARACTERS: Final = 200
_EMAIL: Final = re.compile(r"[^@\s<>,;:\"\\]{1,64}@[^@\s<>,;:\"\\]{1,255}")

BY_ID: Final = Statement(
    "SELECT person_id, email, name, password, zone, created_ms, disabled_ms FROM people WHERE person_id = $1"
)
BY_EMAIL: Final = Statement(
    "SELECT person_id, email, name, password, zone, created_ms, disabled_ms FROM people WHERE email_key = $1"
)
NAME_OF: Final = Statement("SELECT name FROM people WHERE person_id = $1")
NAMES: Final = Statement("SELECT person_id, name FROM people WHERE person_id = ANY($1) ORDER BY name LIMIT 10000")
ADD: Final = Statement(
    "INSERT INTO people (person_id, email, email_key, name, password, password_ms, created_ms)"
    " VALUES ($1, $2, $3, $4, $5, $6, $6)"
)
MEMBERSHIPS: Final = Statement(
    "SELECT m.org_id, o.name AS organisation, m.role FROM memberships AS m JOIN organisations AS o ON o.org_id = m.org_id"
    " WHERE m.person_id = $1 ORDER BY m.org_id"
)
JOIN_ORGANISATION: Final = Statement(
    "INSERT INTO memberships (person_id, org_id, role, since_ms) VALUES ($1, $2, $3, $4)"
    " ON CONFLICT (person_id, org_id) DO NOTHING"
)
SET_PASSWORD: Final = Statement("UPDATE people SET password = $2, password_ms = $3 WHERE person_id = $1")
SET_PROFILE: Final = Statement("UPDATE people SET name = $2, zone = $3 WHERE person_id = $1")
ANYBODY: Final = Statement("SELECT person_id FROM people LIMIT 1")


class Person(msgspec.Struct, frozen=True):
    person_id: str
    email: str
    name: str
    password: str | None
    zone: str
    created_ms: int
    disabled_ms: int | None


class Named(msgspec.Struct, frozen=True):
    """A person's name, of `NAMES`."""

    person_id: str
    name: str


class Membership(msgspec.Struct, frozen=True):
    org_id: str
    organisation: str
    role: Role


def email_key(email: str) -> str:
    """Two spellings of one address are one account."""
    return email.strip().casefold()


def email_problem(email: str) -> str | None:
    if not _EMAIL.fullmatch(email.strip()) or "\0" in email:
        return "this is no mail address; expected one like ada@example.com"
    return None


def name_problem(name: str) -> str | None:
    if not name.strip() or len(name) > NAME_CHARACTERS or not name.isprintable():
        return f"expected a name of 1 to {NAME_CHARACTERS} characters without line breaks"
    return None
