"""What can be said from the configuration and the machine alone: policy, audit file, listener, token."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gatewayd.audit.events import DEFAULT_DATABASE
from gatewayd.cli.check import unwritable
from gatewayd.cli.doctor.finding import Check, fail, ok, warn
from gatewayd.cli.policyfile import DatabaseEntry
from gatewayd.config.environment import UNIX_HOST, is_loopback
from gatewayd.config.settings import Settings
from gatewayd.policy.tools.lint import lint

_FREE_LOW: Final = 1024**3
_FREE_NONE: Final = 64 * 1024**2
_TOKEN_CHARACTERS: Final = 24


def configured(settings: Settings) -> tuple[DatabaseEntry, ...]:
    """The databases that this configuration serves."""
    policies = settings.policies
    if policies.databases is not None:
        return tuple(DatabaseEntry(named.name, named.policy, named.url) for named in policies.databases)
    assert policies.single is not None
    assert settings.database_url is not None, "load_settings asks for one"
    return (DatabaseEntry(DEFAULT_DATABASE, policies.single, settings.database_url.reveal()),)


def checks(settings: Settings) -> Iterator[Check]:
    """The checks of the configuration, in order."""
    yield ok("configuration", "valid")
    for warning in settings.warnings:
        yield warn("configuration", warning, "correct it, or leave it out")
    yield from _policy(settings)
    yield from _audit_file(settings.db_path)
    if settings.transport == "stdio":
        yield Check("listener", "SKIP", "stdio: nothing listens")
    else:
        yield _listener(settings)
        yield _token(settings)


def _policy(settings: Settings) -> Iterator[Check]:
    file = settings.policy_file
    if settings.link is not None:
        return  # it comes in a bundle: see `link.py`
    if file is None:
        yield warn(
            "policy",
            "no policy file: every read is allowed, every write denied",
            "gatewayd policy init > policy.yaml, then set GATEWAY_POLICY_FILE",
        )
        return
    grave = sum(finding.severity == "high" for entry in configured(settings) for finding in lint(entry.policy))
    if grave:
        yield warn(
            "policy", f"{file}: valid, with {grave} grave finding{'s' if grave > 1 else ''}", f"gatewayd policy lint {file}"
        )
    else:
        yield ok("policy", f"{file}: valid")
    if os.access(file, os.W_OK) and os.geteuid() != 0:
        yield warn(
            "policy", f"{file} can be written by this account", "let root own it: who is gatewayd should not change its policy"
        )


def _audit_file(path: str) -> Iterator[Check]:
    problem = unwritable(Path(path))
    if problem:
        yield fail("audit file", problem, "name a place that this account may write to in DB_PATH")
        return
    nearest = next(folder for folder in (Path(path), *Path(path).parents) if folder.exists())
    space = os.statvfs(nearest)
    free = space.f_bavail * space.f_frsize
    size = Path(path).stat().st_size if Path(path).exists() else 0
    words = f"{path}: {_bytes(size) if size else 'not there yet'}, {_bytes(free)} free"
    remedy = "make room, or pull and delete old events (GET /audit/since, DELETE /audit/before): without it nothing runs"
    if free < _FREE_NONE:
        yield fail("audit file", words, remedy)
    elif free < _FREE_LOW:
        yield warn("audit file", words, remedy)
    else:
        yield ok("audit file", words)
    if size and stat.S_IMODE(os.stat(path).st_mode) & 0o077:
        yield warn("audit file", f"{path} can be read by other accounts", f"chmod 600 {path}: it holds every statement")


def _listener(settings: Settings) -> Check:
    if settings.host.startswith(UNIX_HOST):
        return ok("listener", f"{settings.host}: this machine only, those who may open the socket")
    where = f"{settings.host} port {settings.port}"
    if is_loopback(settings.host):
        return ok("listener", f"{where}: this machine only")
    if settings.allowed_hosts is None:
        return warn(
            "listener",
            f"{where}: open to the network, without encryption or authentication, under any host name",
            "set GATEWAY_HOST=127.0.0.1, or put a proxy with TLS and authentication before it and set GATEWAY_ALLOWED_HOSTS",
        )
    return ok("listener", f"{where}: open to the network under {', '.join(settings.allowed_hosts)}; a proxy must authenticate")


def _token(settings: Settings) -> Check:
    if settings.indexer_token is None:
        return warn(
            "operators' token",
            "INDEXER_TOKEN is unset: audit, admin and metrics routes answer 404",
            "set INDEXER_TOKEN, best from a credential file, to pull the audit and change the policy",
        )
    if len(settings.indexer_token.reveal()) < _TOKEN_CHARACTERS:
        return warn("operators' token", f"INDEXER_TOKEN is shorter than {_TOKEN_CHARACTERS} characters", "openssl rand -hex 32")
    return ok("operators' token", "set")


def _bytes(count: int) -> str:
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
