"""How the store fails, by SQLSTATE and never by the name of a constraint: what runs again, what is told, what is a bug."""

from typing import Final

from asyncpg.exceptions import InterfaceError, PostgresError

AGAIN: Final = frozenset(
    {
        "40001",  # serialization_failure
        "40P01",  # deadlock_detected
        "0A000",  # a cached statement after a migration: "cached plan must not change result type"
    }
)
DUPLICATE: Final = "23505"
_LOCKED: Final = "55P03"
"""lock_not_available: somebody held it for longer than our lock_timeout."""
_CONNECTION_CLASSES: Final = ("08", "57P", "53")
"""Connection exceptions, operator intervention (a restart), insufficient resources (disk full, too many connections)."""
_READ_ONLY: Final = "25006"


class StoreUnavailable(Exception):
    """The store cannot be used now. The text names no host, user or database."""


class StoreLocked(StoreUnavailable):
    """Somebody else holds what the transaction wants, and for longer than it waits: a replica that was stopped in the middle."""


class OutcomeUnknown(StoreUnavailable):
    """The connection was lost while COMMIT ran: the transaction may have happened. Ask the store what is true."""


def sqlstate(error: BaseException) -> str:
    """The five characters; empty for what PostgreSQL did not say."""
    return str(getattr(error, "sqlstate", None) or "") if isinstance(error, PostgresError) else ""


def is_again(error: BaseException) -> bool:
    return sqlstate(error) in AGAIN


def is_duplicate(error: BaseException) -> bool:
    """A row with this key is there already."""
    return sqlstate(error) == DUPLICATE


def is_locked(error: BaseException) -> bool:
    return sqlstate(error) == _LOCKED


def is_lost(error: BaseException) -> bool:
    """The connection is of no more use, or the server takes no work: another try may find it well again."""
    state = sqlstate(error)
    return isinstance(error, OSError | InterfaceError) or state.startswith(_CONNECTION_CLASSES) or state == _READ_ONLY
