"""The directory: where an id or a secret that comes from outside belongs, found before its organisation is known.

A secret stands here as a keyed hash under the ring CONTROL_TOKEN_PEPPER. It is added under the current value and looked for under
each, so that the value can be changed while tokens are in use.
"""

from typing import Final, Literal, TypeVar

import msgspec

from gatewayd.audit.ids import ulid_value
from gatewayd.control.keyring.ring import Key, Ring
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store, Transaction

Kind = Literal["api_key", "agent_token", "approval_token", "enrol_token", "gateway", "project"]
SecretKind = Literal["api_key", "agent_token", "approval_token"]

_ADD: Final = Statement("INSERT INTO directory (kind, lookup, org_id, project_id, id) VALUES ($1, $2, $3, $4, $5)")
_FIND: Final = Statement("SELECT org_id, project_id, id FROM directory WHERE kind = $1 AND lookup = $2")


class Place(msgspec.Struct, frozen=True):
    """`project_id` is None for what belongs to the whole organisation."""

    org_id: str
    project_id: str | None
    id: str


class ProjectPlace(msgspec.Struct, frozen=True):
    """The same of what always belongs to a project."""

    org_id: str
    project_id: str
    id: str


P = TypeVar("P", Place, ProjectPlace)


async def add(tx: Transaction, kind: Kind, lookup: bytes, place: Place | ProjectPlace) -> None:
    """`lookup` is a hash, or `lookup_of_id`."""
    await tx.run(_ADD, kind, lookup, place.org_id, place.project_id, place.id)


async def find(asked: Store | Transaction, shape: type[P], kind: Kind, lookup: bytes) -> P | None:
    return await asked.row(shape, _FIND, kind, lookup)


async def add_secret(tx: Transaction, pepper: Ring, kind: SecretKind, text: str, place: Place | ProjectPlace) -> None:
    await add(tx, kind, secret_hash(pepper.current, kind, text), place)


async def find_secret(tx: Transaction, shape: type[P], pepper: Ring, kind: SecretKind, text: str) -> P | None:
    for key in pepper.keys:
        place = await find(tx, shape, kind, secret_hash(key, kind, text))
        if place is not None:
            return place
    return None


def secret_hash(key: Key, kind: SecretKind, text: str) -> bytes:
    """32 bytes that nobody without the ring's value can compute from the text."""
    return key.mac(kind.replace("_", " "), text.encode())


def lookup_of_id(ulid: str) -> bytes | None:
    """An id's 16 bytes; None for what is no id."""
    value = ulid_value(ulid)
    return None if value is None else value.to_bytes(16, "big")
