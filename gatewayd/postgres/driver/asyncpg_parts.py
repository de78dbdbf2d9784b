"""What is used of asyncpg beyond its documented interface, looked at when this is imported.

The version is pinned exactly (pyproject.toml). Where another one is installed all the same, the first statement would fail
somewhere inside, or do something else. This names the missing part at the start, and nothing runs."""

import inspect
from collections.abc import Iterable
from typing import Any, Final

import asyncpg
from asyncpg import connect_utils, protocol
from asyncpg.connection import Connection
from asyncpg.prepared_stmt import PreparedStatement

ATTRIBUTES: Final[tuple[tuple[Any, str], ...]] = (
    (connect_utils, "_connect"),
    (connect_utils, "_cancel"),
    (Connection, "_protocol"),
    (Connection, "_addr"),
    (Connection, "_params"),
    (PreparedStatement, "_state"),
    (protocol.Protocol, "backend_pid"),
    (protocol.Protocol, "backend_secret"),
    (protocol.Protocol, "copy_out"),
    (protocol.Protocol, "bind_execute"),
    (protocol.Protocol, "execute"),
    (protocol.Protocol, "query"),
    (protocol.Protocol, "is_in_transaction"),
)
PARAMETERS: Final[tuple[tuple[Any, str, frozenset[str]], ...]] = (
    (connect_utils, "_cancel", frozenset({"loop", "addr", "params", "backend_pid", "backend_secret"})),
    (connect_utils, "_connect", frozenset({"loop", "connection_class", "record_class"})),
    (Connection, "prepare", frozenset({"query", "name"})),
)


class OtherAsyncpg(ImportError):
    """The installed asyncpg lacks a part that is used here."""


def missing(
    attributes: Iterable[tuple[Any, str]] = ATTRIBUTES, parameters: Iterable[tuple[Any, str, frozenset[str]]] = PARAMETERS
) -> list[str]:
    """Names of what is not there, as `asyncpg.connect_utils._cancel` or `asyncpg.connect_utils._cancel(addr)`."""
    found = [f"{_name(owner)}.{name}" for owner, name in attributes if not hasattr(owner, name)]
    for owner, name, wanted in parameters:
        function = getattr(owner, name, None)
        if function is not None:
            lacking = wanted - inspect.signature(function).parameters.keys()
            found += [f"{_name(owner)}.{name}({parameter})" for parameter in sorted(lacking)]
    return found


def check(lacking: Iterable[str]) -> None:
    """Raises OtherAsyncpg naming them."""
    names = ", ".join(lacking)
    if names:
        raise OtherAsyncpg(
            f"asyncpg {asyncpg.__version__} has no {names}, which gatewayd uses: install the version its pyproject.toml names"
        )


def _name(owner: Any) -> str:
    return getattr(owner, "__name__", "") if inspect.ismodule(owner) else f"{owner.__module__}.{owner.__qualname__}"


check(missing())
