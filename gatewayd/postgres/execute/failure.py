"""What the database or the way to it did wrong -> ExecutionFailed, without a secret (decisions 4, 5 and 11).

Failures of connecting get general texts: the server's own name user, database and host, which come from the DSN.
"""

import socket
import ssl
from collections.abc import Callable
from typing import Final

import asyncpg

from gatewayd.postgres.execute.result import ExecutionFailed

CONNECTION_FAILED: Final = "08001"
CONNECTION_LOST: Final = "08006"
OUTCOME_UNKNOWN: Final = "08007"
CANCELLED: Final = "57014"
READ_ONLY: Final = "25006"
NO_CONNECTION_FREE: Final = "53300"
FAILURES: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""What asyncpg raises for the world's faults. Everything else is a bug."""

_WHY_NOT_CONNECTED: Final = {
    "28": "the database did not accept the gateway's credentials",
    "3D": "the database that the gateway is configured for does not exist",
}
_OF_A_VALUE: Final = "JSON data, line "
"""How the one context begins that the server gives without running anything further: where a JSON text is wrong."""
_SERVER_WORDS_ARE_SAFE: Final = ("53", "57")  # too many connections, starting up, shutting down: no names in these


def not_connected(error: BaseException) -> ExecutionFailed:
    """A connection could not be opened: nothing ran."""
    match error:
        case asyncpg.ConnectionDoesNotExistError() if isinstance(error.__cause__, asyncpg.PostgresError):
            return not_connected(error.__cause__)
        case asyncpg.PostgresError():
            code = _sqlstate(error)
            if code == "08003":  # the peer hung up before it said anything
                return ExecutionFailed(CONNECTION_FAILED, "the database closed the connection before it was established")
            if code[:2] in _SERVER_WORDS_ARE_SAFE:
                return ExecutionFailed(code, f"the database refused the connection: {_text(error)}")
            return ExecutionFailed(code, _WHY_NOT_CONNECTED.get(code[:2], "the database refused the connection"))
        case socket.gaierror():
            return ExecutionFailed(CONNECTION_FAILED, "the database's host name could not be resolved")
        case ssl.SSLError():
            return ExecutionFailed(CONNECTION_FAILED, "no TLS connection to the database could be agreed on")
        case ConnectionRefusedError():
            return ExecutionFailed(CONNECTION_FAILED, "the database refused the connection: nothing listens on its port")
        case FileNotFoundError():
            return ExecutionFailed(CONNECTION_FAILED, "the database's socket does not exist: it does not run")
        case OSError():
            cause = error.strerror if error.errno else None
            return ExecutionFailed(CONNECTION_FAILED, f"the database could not be reached{f': {cause.lower()}' if cause else ''}")
        case _:
            return ExecutionFailed(CONNECTION_FAILED, "the database's connection settings are not valid")


def failed(error: BaseException, position: Callable[[int], int | None] = lambda _: None) -> ExecutionFailed:
    """A statement failed. `position` maps the server's character position to the agent's own text."""
    if isinstance(error, ExecutionFailed):
        return error
    if isinstance(error, asyncpg.ConnectionDoesNotExistError) or not isinstance(error, asyncpg.PostgresError):
        said = f": {_text(error.__cause__)}" if isinstance(error.__cause__, asyncpg.PostgresError) else ""
        return ExecutionFailed(CONNECTION_LOST, f"the connection to the database was lost{said}")
    at = getattr(error, "position", None)
    return ExecutionFailed(
        _sqlstate(error),
        _text(error),
        getattr(error, "hint", None),
        position(int(at)) if at else None,
        is_inner=not (getattr(error, "context", None) or _OF_A_VALUE).startswith(_OF_A_VALUE),
    )


def outcome_unknown(reason: str) -> ExecutionFailed:
    """The failure of a write that may or may not have been committed."""
    return ExecutionFailed(
        OUTCOME_UNKNOWN,
        f"outcome unknown: {reason} while the transaction was being committed; it may or may not have taken effect",
        "read the data to see whether the change is there before trying again",
    )


def _sqlstate(error: asyncpg.PostgresError) -> str:
    code = getattr(error, "sqlstate", None)
    return code if isinstance(code, str) and len(code) == 5 else "XX000"


def _text(error: asyncpg.PostgresError) -> str:
    detail = getattr(error, "detail", None)
    text = str(error.args[0]) if error.args else type(error).__name__
    return f"{text}: {detail}" if detail else text
