"""Databases of a project: a name, and where an engine runs here, its address, sealed.

The sealed text is bound to project and database, so a row that is copied elsewhere does not open. A database without an address
belongs to gateways that hold it themselves.
"""

from typing import Final
from urllib.parse import urlsplit

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.keyring.sealing import NONCE_BYTES, key_id, seal, unseal
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction

_PURPOSE: Final = "database address"

OF_PROJECT: Final = Statement(
    "SELECT database_id, name, sealed_url, host_shown, checked_ms, check_result, created_ms FROM databases"
    " WHERE project_id = $1 ORDER BY name LIMIT 1000"
)
FIND: Final = Statement(
    "SELECT database_id, name, sealed_url, host_shown, checked_ms, check_result, created_ms FROM databases"
    " WHERE project_id = $1 AND database_id = $2"
)
NAMED: Final = Statement("SELECT database_id FROM databases WHERE project_id = $1 AND name = $2")
ADD: Final = Statement("INSERT INTO databases (project_id, database_id, name, created_ms) VALUES ($1, $2, $3, $4)")
SET_ADDRESS: Final = Statement(
    "UPDATE databases SET sealed_url = $3, host_shown = $4, checked_ms = NULL, check_result = NULL"
    " WHERE project_id = $1 AND database_id = $2"
)
SET_CHECKED: Final = Statement(
    "UPDATE databases SET checked_ms = $3, check_result = $4 WHERE project_id = $1 AND database_id = $2"
)
SEAL_ANEW: Final = Statement(
    "UPDATE databases SET sealed_url = $4 WHERE project_id = $1 AND database_id = $2 AND sealed_url = $3"
)
REMOVE: Final = Statement("DELETE FROM databases WHERE project_id = $1 AND database_id = $2")


class Database(msgspec.Struct, frozen=True):
    """`check_result` is JSON: the findings of the last connection test (`Finding`)."""

    database_id: str
    name: str
    sealed_url: bytes | None
    host_shown: str | None
    checked_ms: int | None
    check_result: str | None
    created_ms: int


class Addresses(msgspec.Struct, frozen=True):
    """The addresses of a project's databases by name, as an engine needs them. Never shown, logged or stored open."""

    by_name: dict[str, str]

    def __repr__(self) -> str:
        return f"Addresses({', '.join(sorted(self.by_name))})"


def sealed_address(console: Console, project_id: str, database_id: str, url: str, nonce: bytes) -> bytes:
    """`nonce`: NONCE_BYTES fresh random bytes."""
    assert len(nonce) == NONCE_BYTES
    return seal(console.secrets.kms, _PURPOSE, url.encode(), nonce, project_id, database_id)


def address_of(console: Console, project_id: str, database: Database) -> str | None:
    """The address, None where gateways hold it. Raises Unsealable."""
    if database.sealed_url is None:
        return None
    return unseal(console.secrets.kms, _PURPOSE, database.sealed_url, project_id, database.database_id).decode()


def sealed_anew(console: Console, project_id: str, database: Database, nonce: bytes) -> bytes | None:
    """The address under the current key; None where it is so already. Raises Unsealable."""
    if database.sealed_url is None or key_id(database.sealed_url) == console.secrets.kms.current.key_id:
        return None
    return sealed_address(console, project_id, database.database_id, address_of(console, project_id, database) or "", nonce)


async def addresses(tx: Transaction, console: Console, project_id: str) -> Addresses:
    """Of all databases that have one. Raises Unsealable."""
    found = await tx.rows(Database, OF_PROJECT, project_id)
    opened = {database.name: address_of(console, project_id, database) for database in found}
    return Addresses({name: url for name, url in opened.items() if url is not None})


def shown_host(url: str) -> str:
    """Host and database for people: no role, no password, no parameters."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2] or "a socket"
    return f"{place[:200]}{parts.path[:100]}"
