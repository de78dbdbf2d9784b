"""Which addresses of databases engines may use: none of the control plane's own store, none at all where no engines run.

Engines run under the account of the control plane, and a Unix socket asks that account for no password. So the address of the
store would give every policy's author, and every API key that may set addresses, all organisations, sessions and approvals.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from gatewayd.control.database import DATABASE, FOLDER
from gatewayd.control.settings import ControlSettings
from gatewayd.policy.file import dsn

_DEFAULT_FOLDERS: Final = ("/run/postgresql", "/var/run/postgresql", "/var/pgsql_socket", "/private/tmp", "/tmp")
"""Where asyncpg looks when an address names no host."""
_OF_THE_READER: Final = (Path("/proc"), Path("/dev/fd"))
"""Paths in these mean another place to each process that opens them."""


def address_problem(url: str, settings: ControlSettings) -> str | None:
    """What keeps this text from being an address that engines may use; None when nothing does. Quotes nothing of it.

    Looks at the file system, where links are followed: not for the event loop.
    """
    wrong = dsn.check(url)
    if wrong is not None:
        return wrong
    if not settings.self_host:
        return "this control plane runs no engines: the project's gateways hold the address"
    parts = urlsplit(url)
    own = _own_store(settings)
    is_same_name = _database(parts) == _database(own)
    for folder in _socket_folders(parts):
        if ".." in folder.parts or any(folder.is_relative_to(each) for each in _OF_THE_READER):
            return "the folder of the socket is named by a way around; expected its own absolute path"
        real = Path(os.path.realpath(folder))
        is_ours = any(real.is_relative_to(os.path.realpath(each)) for each in (settings.state, settings.runtime))
        is_store = is_same_name and any(real == Path(os.path.realpath(each)) for each in _socket_folders(own))
        if is_ours or is_store:
            return "the address leads to the control plane's own store; expected a database of yours"
    return None


def _own_store(settings: ControlSettings) -> SplitResult:
    if settings.database_url is not None:
        return urlsplit(settings.database_url.reveal())
    return urlsplit(f"postgresql:///{DATABASE}?host={quote(str(settings.state / FOLDER))}")


def _socket_folders(parts: SplitResult) -> Iterator[Path]:
    """The folders of Unix sockets among an address's hosts, in the netloc and in `host`: asyncpg decodes both."""
    hosts = [unquote(spec) for spec in parts.netloc.rpartition("@")[2].split(",") if spec]
    hosts += [spec for spec in _parameter(parts, "host").split(",") if spec]
    for host in hosts or _DEFAULT_FOLDERS:
        if host.startswith("/"):
            folder, socket_name, _ = host.partition("/.s.PGSQL.")
            yield Path("/" + (folder if socket_name else host).lstrip("/"))


def _database(parts: SplitResult) -> str:
    """As asyncpg and the server find it: PostgreSQL takes the role's name for an empty one."""
    named = unquote(parts.path[1:]) if parts.path else _parameter(parts, "dbname") or _parameter(parts, "database")
    role = parts.netloc.rpartition("@")[0].partition(":")[0]
    return named or unquote(role) or _parameter(parts, "user")


def _parameter(parts: SplitResult, name: str) -> str:
    return parse_qs(parts.query).get(name, [""])[-1]
