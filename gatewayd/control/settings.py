"""Environment and state folder to one frozen ControlSettings, or every problem at once. Opens no socket and no database.

Secrets come, in this order, from a credential file of systemd, NAME_FILE, NAME, and in self-host from the state folder, where
`with_secrets` makes them at the first start.
"""

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, cast, get_args
from urllib.parse import urlsplit

import msgspec

from gatewayd.config.credentials import CredentialProblem, ReadFile, Secret, read_credential
from gatewayd.config.environment import Environment, is_address, is_loopback
from gatewayd.config.settings import SettingsErrors, read_bytes
from gatewayd.control.keyring.ring import Ring, RingProblem, read_ring
from gatewayd.control.keyring.stored import MASK_SALT_MASTER, RINGS, make_missing, read_stored
from gatewayd.control.organisation.caps import NO_CAPS, CapsProblem, Plans, read_caps
from gatewayd.control.outbound.addresses import Network
from gatewayd.control.variables import DEFAULTS, NAMES
from gatewayd.log import LogLevel
from gatewayd.policy.file import dsn
from gatewayd.policy.file.problem import did_you_mean, quoted

SignUp = Literal["open", "invitation"]

UNFINISHED_RESTORE: Final = "restore.unfinished"
"""In the state folder while a restore is on its way there, or was cut short."""
_GRACE_S_MAX: Final = 3600


class Secrets(msgspec.Struct, frozen=True):
    """`auth`: sign-in. `kms`: sealed texts. `pepper`: tokens and keys. `signing`: bundles, acknowledgements, checkpoints."""

    auth: Ring
    kms: Ring
    pepper: Ring
    signing: Ring
    mask_salt_master: Secret | None = None


class ControlSettings(msgspec.Struct, frozen=True):
    """All that a control plane is configured with."""

    self_host: bool
    database_url: Secret | None  # None: the embedded PostgreSQL
    public_url: str  # scheme, host and port, without a path or a slash at the end
    host: str
    port: int
    state: Path
    runtime: Path  # of what must not outlast the engines that use it
    given: Mapping[str, Ring]  # the rings that the environment gives
    mask_salt_master: Secret | None
    secrets: Secrets | None  # set by `with_secrets`
    engine_bin: str | None
    metrics_token: Secret | None
    plans: Plans
    sign_up: SignUp
    smtp_url: Secret | None
    trusted_proxies: tuple[Network, ...]
    outbound_networks: tuple[Network, ...]  # beside the public internet, for addresses that people give
    log_level: LogLevel
    shutdown_grace_s: float
    warnings: tuple[str, ...] = ()

    @property
    def is_https(self) -> bool:
        return self.public_url.startswith("https:")

    def cookie(self, name: str) -> str:
        """A cookie's whole name. Over https `__Host-` keeps other hosts of the domain from setting it. Over http the port tells
        the consoles of one machine apart: a browser sends a host's cookies to all its ports."""
        if self.is_https:
            return f"__Host-{name}"
        _, has_port, port = self.public_host.rpartition(":")
        return f"{name}-{port}" if has_port and port.isdigit() else name

    @property
    def public_host(self) -> str:
        """As the Host header has it: host, and the port where it is not the scheme's own."""
        return self.public_url.partition("://")[2]


def load_control_settings(environ: Mapping[str, str], read_file: ReadFile = read_bytes) -> ControlSettings:
    """Raises SettingsErrors with all problems."""
    return _Loader(environ, read_file, DEFAULTS).load()


def with_secrets(settings: ControlSettings) -> ControlSettings:
    """Make the state folder, and in self-host the secrets that are missing. Raises SettingsErrors."""
    if (settings.state / UNFINISHED_RESTORE).exists():
        wrong = f"CONTROL_STATE_DIR: a restore into `{settings.state}` did not end"
        raise SettingsErrors((f"{wrong}; run `gatewayd control restore` again with the same file",))
    try:
        make_state(settings.state)
        rings = dict(settings.given)
        salt = settings.mask_salt_master
        if settings.self_host:
            make_missing(settings.state, tuple(name for name in (*RINGS, MASK_SALT_MASTER) if name not in rings), os.urandom)
            rings |= {name: read_stored(settings.state, name) for name in RINGS if name not in rings}
            salt = salt or Secret(read_stored(settings.state, MASK_SALT_MASTER).current.value.hex())
    except OSError as error:
        raise SettingsErrors((f"CONTROL_STATE_DIR: `{settings.state}` cannot be used ({error.strerror})",)) from None
    except RingProblem as problem:
        raise SettingsErrors((f"CONTROL_STATE_DIR: a secret in `{settings.state}` {problem}",)) from None
    auth, kms, pepper, signing = (rings[name] for name in RINGS)
    return msgspec.structs.replace(settings, secrets=Secrets(auth, kms, pepper, signing, salt))


def make_state(state: Path) -> None:
    """Others may pass through root's folder, because its embedded PostgreSQL runs as another account; they read nothing there."""
    state.mkdir(parents=True, exist_ok=True)
    state.chmod(0o711 if os.geteuid() == 0 else 0o700)


class _Loader(Environment):
    def load(self) -> ControlSettings:
        self_host = self.flag("GATEWAY_SELF_HOST")
        port = self.integer("CONTROL_PORT", 1, 65535)
        state = self.state()
        settings = ControlSettings(
            self_host=self_host,
            database_url=self.database_url(self_host=self_host),
            public_url=self.public_url(port, self_host=self_host),
            host=self.host(),
            port=port,
            state=state,
            runtime=self.runtime(state),
            given=self.rings(self_host=self_host),
            mask_salt_master=self.secret(MASK_SALT_MASTER),
            secrets=None,
            engine_bin=self.text("GATEWAY_ENGINE_BIN"),
            metrics_token=self.secret("CONTROL_METRICS_TOKEN", header=True),
            plans=self.plans(self_host=self_host),
            sign_up=cast(SignUp, self.choice("CONTROL_SIGN_UP", get_args(SignUp))),
            smtp_url=self.smtp_url(),
            trusted_proxies=self.networks("CONTROL_TRUSTED_PROXIES"),
            outbound_networks=self.networks("CONTROL_OUTBOUND_NETWORKS"),
            log_level=cast(LogLevel, self.choice("CONTROL_LOG_LEVEL", get_args(LogLevel))),
            shutdown_grace_s=float(self.integer("CONTROL_SHUTDOWN_GRACE_S", 0, _GRACE_S_MAX)),
        )
        self.unknown_names()
        if self.problems:
            raise SettingsErrors(tuple(self.problems))
        return msgspec.structs.replace(settings, warnings=tuple(self.warnings))

    def state(self) -> Path:
        named = self.text("CONTROL_STATE_DIR") or self.environ.get("STATE_DIRECTORY", "").split(":")[0]
        if "\0" in named or (named and not named.startswith("/")):
            self.report("CONTROL_STATE_DIR", f"found {quoted(named, 200)}", "an absolute path")
            return Path("/nonexistent")
        if named:
            return Path(named)
        if os.geteuid() == 0:
            return Path("/var/lib/gatewayd-control")
        home = self.environ.get("HOME") or "/nonexistent"
        return Path(self.environ.get("XDG_STATE_HOME") or f"{home}/.local/state") / "gatewayd-control"

    def runtime(self, state: Path) -> Path:
        """systemd's folder in memory, which ends with the service."""
        named = self.environ.get("RUNTIME_DIRECTORY", "").split(":")[0]
        return Path(named) / "engines" if named.startswith("/") else state / "run"

    def database_url(self, *, self_host: bool) -> Secret | None:
        try:
            value = read_credential("CONTROL_DATABASE_URL", self.environ, self.read_file)
        except CredentialProblem as problem:
            self.problems.append(f"CONTROL_DATABASE_URL: {problem}")
            return None
        if not value:
            if not self_host:
                self.report("CONTROL_DATABASE_URL", "is unset", f"{dsn.EXPECTED}, or GATEWAY_SELF_HOST=1")
            return None
        wrong = dsn.check(value)
        if wrong:
            self.problems.append(f"CONTROL_DATABASE_URL: {wrong}")
        return Secret(value)

    def public_url(self, port: int, *, self_host: bool) -> str:
        value = self.web_address("CONTROL_PUBLIC_URL")
        if value is None:
            if not self_host:
                self.report("CONTROL_PUBLIC_URL", "is unset", "the https address of the console, or GATEWAY_SELF_HOST=1")
            return f"http://localhost:{port}"
        parts = urlsplit(value)
        if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None:
            self.report("CONTROL_PUBLIC_URL", f"found {quoted(value, 200)}", "scheme, host and port alone")
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            self.report("CONTROL_PUBLIC_URL", "found http for a name that is not loopback", "https")
        if is_address(parts.hostname or ""):
            self.warnings.append("CONTROL_PUBLIC_URL is an IP address: passkeys will not work; expected a name such as localhost")
        return f"{parts.scheme}://{parts.netloc.lower()}"

    def host(self) -> str:
        value = self.text("CONTROL_HOST") or ""
        if not is_address(value) and value != "localhost":
            self.report("CONTROL_HOST", f"found {quoted(value)}", "an IP address without brackets, or localhost")
        return value

    def rings(self, *, self_host: bool) -> dict[str, Ring]:
        found = {}
        for name in RINGS:
            secret = self.secret(name)
            if secret is None:
                if not self_host:
                    self.report(name, "is unset", "a secret, as `gatewayd control key new` prints it")
                continue
            try:
                found[name] = read_ring(secret.reveal())
            except RingProblem as problem:
                self.problems.append(f"{name}: {problem}")
        return found

    def plans(self, *, self_host: bool) -> Plans:
        path = self.text("CONTROL_CAPS_FILE")
        if path is None or self_host:
            return NO_CAPS
        try:
            return read_caps(self.read_file(path))
        except OSError as error:
            self.report("CONTROL_CAPS_FILE", f"cannot read {quoted(path, 200)} ({error.strerror})", "a readable YAML file")
        except CapsProblem as problem:
            self.problems.append(f"CONTROL_CAPS_FILE: {problem}")
        return NO_CAPS

    def smtp_url(self) -> Secret | None:
        secret = self.secret("CONTROL_SMTP_URL")
        if secret is not None:
            parts = urlsplit(secret.reveal())
            if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
                self.report("CONTROL_SMTP_URL", "is no address of a mail server", "smtp(s)://user:password@host:port")
        return secret

    def networks(self, name: str) -> tuple[Network, ...]:
        found: list[Network] = []
        for entry in (self.text(name) or "").split(","):
            if not entry.strip():
                continue
            try:
                found.append(ipaddress.ip_network(entry.strip(), strict=False))
            except ValueError:
                self.report(name, f"found {quoted(entry.strip())}", "addresses or networks, with commas between")
        return tuple(found)

    def unknown_names(self) -> None:
        known = sorted(NAMES)
        for name in sorted(self.environ):
            if name.startswith("CONTROL_") and name not in NAMES and name.removesuffix("_FILE") not in NAMES:
                self.warnings.append(f"{name} is not a variable of the control plane{did_you_mean(name, known)}")
