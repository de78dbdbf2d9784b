"""`mcp client`: each new client is logged once, where there is a file also over restarts.

What is remembered is a digest of who it was: names are the clients' own words, and neither memory nor file may grow with them.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from gatewayd import log
from gatewayd.audit.events import Agent

REMEMBERED: Final = 1024
_DIGITS: Final = 16


class KnownClients:
    """`person_of` gives the person behind a token's id, where tokens have one."""

    def __init__(self, file: Path | None = None, person_of: Callable[[str | None], str | None] = lambda _: None) -> None:
        self._file = file
        self._person_of = person_of
        self._known: dict[str, None] = dict.fromkeys(_read(file)) if file is not None else {}

    def note(self, agent: Agent, protocol_version: str) -> None:
        """Logs a client that was not seen before."""
        person = self._person_of(agent.token_id)
        who = msgspec.json.encode([agent.name, agent.version, person, protocol_version])
        key = hashlib.sha256(who).hexdigest()[:_DIGITS]
        if key in self._known:
            return
        while len(self._known) >= REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[key] = None
        fields: dict[str, str | None] = {"client": agent.name, "version": agent.version, "protocol_version": protocol_version}
        if person is not None:
            fields["person"] = person
        log.info(log.MCP_CLIENT, **fields)
        if self._file is not None:
            _write(self._file, list(self._known))


def _read(file: Path) -> list[str]:
    """What is not there, or damaged, is nothing: clients are then logged once more."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[str])[-REMEMBERED:]
    except (OSError, ValueError):
        return []


def _write(file: Path, known: list[str]) -> None:
    """Some KiB, only when a client is new. Not synced: what a power cut loses is logged once more."""
    temporary = file.with_name(f".{file.name}.new")
    with contextlib.suppress(OSError):
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(msgspec.json.encode(known))
        temporary.rename(file)
