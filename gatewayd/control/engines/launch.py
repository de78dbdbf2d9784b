"""What an engine is started with: program, environment and secrets, made from nothing. Pure.

Nothing of the control plane's own environment is passed on: it holds the store's address and the keys of every project.
"""

import hashlib
import hmac
import sys
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import msgspec

from gatewayd.config.environment import is_address, is_loopback
from gatewayd.control.settings import ControlSettings
from gatewayd.link.formats.bundle import address_variable

ENGINE_HOST: Final = b"localhost"
"""What the proxy sends as Host: an engine that is bound to loopback takes no other names."""
_PASSED_ON: Final = ("JOURNAL_STREAM", "LANG", "LC_ALL", "TZ")
"""Of the control plane's environment: where log lines go, and in which words. None of it is secret."""


class Launch(msgspec.Struct, frozen=True):
    """`secrets` go in as credential files, by variable."""

    program: tuple[str, ...]
    environment: Mapping[str, str]
    secrets: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Launch({self.program[0]})"


def launch_of(
    settings: ControlSettings,
    project_id: str,
    folder: Path,
    credentials: Path,
    addresses: Mapping[str, str],
    *,
    proxy_secret: str,
    enrol_token: str | None,
    environ: Mapping[str, str],
) -> Launch:
    """`environ`: the control plane's own, of which only what is named here is read."""
    secrets = {address_variable(name): url for name, url in addresses.items()}
    secrets["GATEWAY_PROXY_SECRET"] = proxy_secret
    if enrol_token is not None:
        secrets["GATEWAY_ENROL_TOKEN"] = enrol_token
    salt = mask_salt(settings, project_id)
    if salt is not None:
        secrets["GATEWAY_MASK_SALT"] = salt
    program = (settings.engine_bin,) if settings.engine_bin is not None else (sys.executable, "-m", "gatewayd")
    environment = {name: environ[name] for name in _PASSED_ON if environ.get(name)}
    environment |= {
        "CREDENTIALS_DIRECTORY": str(credentials),
        "DB_PATH": str(folder / "audit.db"),
        "GATEWAY_CONTROL_URL": link_url(settings),
        "GATEWAY_HOST": "127.0.0.1",  # nothing is bound to it: the socket is passed on
        "GATEWAY_LOG_LEVEL": settings.log_level,
        "GATEWAY_SHUTDOWN_GRACE_S": f"{settings.shutdown_grace_s:g}",
        "GATEWAY_STATE_DIR": str(folder),
        "GATEWAY_TELEMETRY": "0",
        "HOME": str(folder),  # the driver looks there for passwords and certificates: those of the control plane are not its own
        "LISTEN_FDS": "1",
        "PATH": "/usr/bin:/bin",
    }
    return Launch((*program, "serve", "--stop-at-eof"), environment, secrets)


def mask_salt(settings: ControlSettings, project_id: str) -> str | None:
    """The salt of a project's masks; None while there is no master."""
    master = settings.secrets.mask_salt_master if settings.secrets is not None else None
    if master is None:
        return None
    return hmac.new(master.reveal().encode(), project_id.encode(), hashlib.sha256).hexdigest()


def link_url(settings: ControlSettings) -> str:
    """Where an engine on this machine finds the control plane: straight at its listener where that is reached by loopback."""
    host = settings.host
    if is_loopback(host):
        return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"
    if is_address(host) and ip_address(host).is_unspecified:
        return f"http://127.0.0.1:{settings.port}" if ":" not in host else f"http://[::1]:{settings.port}"
    return settings.public_url
