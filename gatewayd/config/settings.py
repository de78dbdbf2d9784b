"""Makes one frozen Settings of the environment and the policy file, or reports all problems of both at once (decision 1).

`serve`, `check` and `demo` share this path. Nothing here opens a socket or a database; files are read through `read_file` alone.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, cast, get_args
from urllib.parse import urlsplit

import msgspec

from gatewayd.config.credentials import CredentialProblem, ReadFile, Secret, Variables, read_credential
from gatewayd.config.environment import ANY, UNIX_HOST, Environment, is_address, is_decimal, is_loopback
from gatewayd.config.variables import CONTROL_PLANE, DATABASE_URL_PREFIX, DEFAULTS, NAMES
from gatewayd.log import LogLevel
from gatewayd.policy.file import dsn
from gatewayd.policy.file.load import PolicyErrors, load_policies
from gatewayd.policy.file.model import Policies, Policy
from gatewayd.policy.file.problem import did_you_mean, quoted
from gatewayd.policy.file.yaml import MAX_BYTES

McpTransport = Literal["http", "stdio"]
TelemetryMode = Literal["on", "off", "debug"]
DenyRule = Literal["table_access", "multi_statement", "dangerous_statement", "parse_error"]

DENY_RULES: Final[frozenset[DenyRule]] = frozenset(get_args(DenyRule))
NO_BUNDLE: Final = Policies(databases=())
"""The policies with which a linked gateway starts: it serves no database until it has a bundle."""
UNIX_PATH_BYTES: Final = 107  # sun_path, unix(7)
LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")

_HEARTBEAT_MS_MAX: Final = 604_800_000
_GRACE_S_MAX: Final = 3600
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?", re.ASCII)
_ALLOWED_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::([0-9]{1,5}))?", re.ASCII)
_ALLOWED_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::([0-9]{1,5}))?", re.ASCII)


class LinkSettings(msgspec.Struct, frozen=True):
    """The settings of a linked gateway. `ca_file` is the path of a PEM file."""

    control_url: str  # without a slash at its end
    enrol_token: Secret | None = None
    ca_file: str | None = None


class Settings(msgspec.Struct, frozen=True):
    """The whole configuration of a process. `variables` reads the variables that a reloaded policy's `url` may name."""

    database_url: Secret | None
    policy_file: str | None
    policies: Policies
    variables: Variables
    port: int
    host: str
    db_path: str
    state_dir: str
    credentials_dir: str | None  # of systemd
    transport: McpTransport
    mask_salt: Secret | None
    mask_source_rewrite: bool
    indexer_token: Secret | None
    deny_webhook: Secret | None  # secret because its path or query may hold a key, like the two addresses below
    deny_webhook_rules: frozenset[DenyRule]
    telemetry: TelemetryMode
    telemetry_endpoint: Secret | None
    telemetry_heartbeat_ms: int
    log_level: LogLevel
    audit_synchronous: Literal["normal", "full"]
    audit_erasable: bool
    allowed_hosts: tuple[str, ...] | None  # lower case; "name" (any port) or "name:port"; None: any
    allowed_origins: tuple[str, ...] | None  # lower case; "scheme://name[:port]", or "*" alone; None: loopback, any port
    shutdown_grace_s: float
    approval_url: Secret | None
    approval_token: Secret | None
    link: LinkSettings | None = None  # None: standalone
    proxy_secret: Secret | None = None
    warnings: tuple[str, ...] = ()  # settings that are legal and probably a mistake, one sentence each


class SettingsErrors(Exception):
    """The configuration is refused. `problems` are lines `NAME: what is wrong; what is expected`, without any secret."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__(problems)

    def __str__(self) -> str:
        return "\n".join(self.problems)


def read_bytes(path: str) -> bytes:
    """The file's bytes, as many as a policy may have and one more. Raises OSError."""
    with Path(path).open("rb") as file:
        return file.read(MAX_BYTES + 1)


def audit_path(environ: Mapping[str, str]) -> str:
    """The path of the audit file, for commands that read it and need no further configuration."""
    state = environ.get("STATE_DIRECTORY", "").split(":")[0]  # systemd lists several with colons between
    return environ.get("DB_PATH") or (f"{state}/audit.db" if state else DEFAULTS["DB_PATH"]) or ""


def state_dir(environ: Mapping[str, str]) -> str:
    """The folder of the identity, for commands that read it and need no further configuration."""
    state = environ.get("STATE_DIRECTORY", "").split(":")[0]
    return environ.get("GATEWAY_STATE_DIR") or state or str(Path(audit_path(environ)).parent)


def load_settings(environ: Mapping[str, str], read_file: ReadFile = read_bytes) -> Settings:
    """Everything from the environment and the files it names. Raises SettingsErrors with all problems of both."""
    return _Loader(environ, read_file).load()


class _Loader(Environment):
    """The variables that have rules of their own, and how all of them make one Settings."""

    def load(self) -> Settings:
        mask_salt = self.secret("GATEWAY_MASK_SALT")
        approval_url = self.secret_address("GATEWAY_APPROVAL_URL")
        if approval_url is not None and "@" in re.split("[/?#]", approval_url.reveal().partition("://")[2])[0]:
            self.report("GATEWAY_APPROVAL_URL", "holds a user or password", "none there: GATEWAY_APPROVAL_TOKEN is what is sent")
        approval_token = self.secret("GATEWAY_APPROVAL_TOKEN", header=True)
        if (approval_url is None) != (approval_token is None):
            unset = "GATEWAY_APPROVAL_URL" if approval_url is None else "GATEWAY_APPROVAL_TOKEN"
            self.report(unset, "is unset while its partner is set", "GATEWAY_APPROVAL_URL and GATEWAY_APPROVAL_TOKEN, or neither")
        variables = Variables(self.environ, self.read_file)
        link = self.link()
        gate = approval_url is not None and approval_token is not None
        policies, multiple = (
            self.policies(variables, gate=gate, salt=mask_salt is not None) if link is None else (NO_BUNDLE, False)
        )
        host = self.host()
        settings = Settings(
            database_url=self.database_url(multiple=multiple, linked=link is not None),
            policy_file=self.text("GATEWAY_POLICY_FILE"),
            policies=policies,
            variables=variables,
            port=self.integer("PORT", 1, 65535),
            host=host,
            db_path=self.db_path(),
            state_dir=state_dir(self.environ),
            credentials_dir=self.environ.get("CREDENTIALS_DIRECTORY") or None,
            transport=cast(McpTransport, self.choice("GATEWAY_TRANSPORT", get_args(McpTransport))),
            mask_salt=mask_salt,
            mask_source_rewrite=self.flag("GATEWAY_MASK_SOURCE_REWRITE"),
            indexer_token=self.secret("INDEXER_TOKEN", header=True),
            deny_webhook=self.secret_address("GATEWAY_DENY_WEBHOOK"),
            deny_webhook_rules=self.deny_webhook_rules(),
            telemetry=self.telemetry(),
            telemetry_endpoint=self.secret_address("GATEWAY_TELEMETRY_ENDPOINT"),
            telemetry_heartbeat_ms=self.heartbeat_ms(),
            log_level=cast(LogLevel, self.choice("GATEWAY_LOG_LEVEL", get_args(LogLevel))),
            audit_synchronous=cast(Literal["normal", "full"], self.choice("GATEWAY_AUDIT_SYNCHRONOUS", ("normal", "full"))),
            audit_erasable=self.flag("GATEWAY_AUDIT_ERASABLE"),
            allowed_hosts=self.allowed_hosts(host),
            allowed_origins=self.allowed("GATEWAY_ALLOWED_ORIGINS", _ALLOWED_ORIGIN, "origins such as https://app.example.com"),
            shutdown_grace_s=self.grace_s(),
            approval_url=approval_url,
            approval_token=approval_token,
            link=link,
            proxy_secret=self.secret("GATEWAY_PROXY_SECRET", header=True),
            warnings=(),
        )
        self.unknown_names()
        if self.problems:
            raise SettingsErrors(tuple(self.problems))
        return msgspec.structs.replace(settings, warnings=tuple(self.warnings))

    def policies(self, variables: Variables, *, gate: bool, salt: bool) -> tuple[Policies, bool]:
        """The policy file, and whether it is of the shape with several databases. A refused file gives the no-file policy."""
        path = self.text("GATEWAY_POLICY_FILE")
        if path is None:
            return Policies(single=Policy()), False
        try:
            data = self.read_file(path)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "no path"
            self.report("GATEWAY_POLICY_FILE", f"cannot read {quoted(path, 200)} ({why})", "a readable YAML file")
            return Policies(single=Policy()), self.environ.get("DATABASE_URL") is None
        try:
            policies = load_policies(data, variables, approval_gate=gate, mask_salt=salt)
        except PolicyErrors as errors:
            self.problems += [f"GATEWAY_POLICY_FILE: {problem}" for problem in errors.problems]
            return Policies(single=Policy()), errors.multiple
        return policies, policies.databases is not None

    def link(self) -> LinkSettings | None:
        """The link's settings. A linked gateway's policy comes from the control plane, so a policy file beside it is a
        problem."""
        url = self.web_address("GATEWAY_CONTROL_URL")
        if url is None:
            if self.environ.get("GATEWAY_ENROL_TOKEN"):
                self.warnings.append("GATEWAY_ENROL_TOKEN is ignored: GATEWAY_CONTROL_URL is unset")
            return None
        parts = urlsplit(url)
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            self.report("GATEWAY_CONTROL_URL", "found http", "an https:// URL (http:// for a loopback address only)")
        if parts.username or parts.password or parts.query or parts.fragment:
            self.report(
                "GATEWAY_CONTROL_URL",
                "found more than scheme, host, port and path",
                "an address such as https://control.example.com",
            )
        if self.text("GATEWAY_POLICY_FILE") is not None:
            self.report("GATEWAY_POLICY_FILE", "is set beside GATEWAY_CONTROL_URL", "one of the two: a link brings its policy")
        if self.text("GATEWAY_APPROVAL_URL") is not None:
            self.report(
                "GATEWAY_APPROVAL_URL", "is set beside GATEWAY_CONTROL_URL", "one of the two: a link is the approval gate"
            )
        ca_file = self.text("GATEWAY_CONTROL_CA")
        if ca_file is not None:
            try:
                self.read_file(ca_file)
            except (OSError, ValueError):
                self.report("GATEWAY_CONTROL_CA", f"cannot read {quoted(ca_file, 200)}", "a readable PEM file")
        return LinkSettings(url.rstrip("/"), self.secret("GATEWAY_ENROL_TOKEN", header=True), ca_file)

    def database_url(self, *, multiple: bool, linked: bool) -> Secret | None:
        if multiple:
            if self.environ.get("DATABASE_URL"):
                self.warnings.append("DATABASE_URL is ignored: the policy has `databases:`")
            return None
        try:
            value = read_credential("DATABASE_URL", self.environ, self.read_file)
        except CredentialProblem as problem:
            self.problems.append(f"DATABASE_URL: {problem}")
            return None
        if not value and linked:
            return None
        if not value:
            self.report("DATABASE_URL", "is unset", f"{dsn.EXPECTED}, or a policy file with `databases:`")
            return None
        problem_text = dsn.check(value)
        if problem_text:
            self.problems.append(f"DATABASE_URL: {problem_text}")
        return Secret(value)

    def host(self) -> str:
        value = self.text("GATEWAY_HOST") or ""
        if value.startswith(UNIX_HOST):
            path = value.removeprefix(UNIX_HOST)
            if not path.startswith("/") or "\0" in path or len(os.fsencode(path)) > UNIX_PATH_BYTES:
                self.report("GATEWAY_HOST", f"found {quoted(value)}", f"unix:/path of at most {UNIX_PATH_BYTES} bytes")
            return value
        if not is_address(value) and not _HOST_NAME.fullmatch(value):
            self.report("GATEWAY_HOST", f"found {quoted(value)}", "an IP address without brackets, a host name, or unix:/path")
        return value

    def allowed_hosts(self, bound: str) -> tuple[str, ...] | None:
        """The allowed hosts. Bound to loopback only loopback names are allowed, because of DNS rebinding by web pages."""
        hosts = self.allowed("GATEWAY_ALLOWED_HOSTS", _ALLOWED_HOST, "host names such as gateway.example.com")
        if hosts is not None:
            return None if hosts == ANY else hosts
        if not is_loopback(bound):
            return None
        return LOOPBACK_HOSTS if bound in ("::1", *LOOPBACK_HOSTS) else (*LOOPBACK_HOSTS, bound)

    def db_path(self) -> str:
        value = audit_path(self.environ)
        if "\0" in value or value.endswith("/"):
            self.report("DB_PATH", f"found {quoted(value, 200)}", "the path of a file")
        return value

    def secret_address(self, name: str) -> Secret | None:
        value = self.web_address(name)
        return None if value is None else Secret(value)

    def deny_webhook_rules(self) -> frozenset[DenyRule]:
        value = self.text("GATEWAY_DENY_WEBHOOK_RULES")
        if value is None:
            return DENY_RULES
        rules = [rule.strip() for rule in value.split(",") if rule.strip()]
        known = sorted(DENY_RULES)
        for rule in rules:
            if rule not in DENY_RULES:
                self.report("GATEWAY_DENY_WEBHOOK_RULES", f"found {quoted(rule)}{did_you_mean(rule, known)}", ", ".join(known))
        if not rules:
            self.report("GATEWAY_DENY_WEBHOOK_RULES", "holds no rule", f"{', '.join(known)}, or the variable unset")
        return frozenset(cast(DenyRule, rule) for rule in rules)

    def telemetry(self) -> TelemetryMode:
        """The mode of telemetry. An unknown value switches it off and is not a problem."""
        if self.environ.get("DO_NOT_TRACK", "").strip().lower() in ("1", "true"):
            return "off"
        value = (self.text("GATEWAY_TELEMETRY") or "").strip().lower()
        if value == "debug":
            return "debug"
        return "on" if value in ("1", "true", "on") else "off"

    def heartbeat_ms(self) -> int:
        value = self.text("GATEWAY_TELEMETRY_HEARTBEAT_MS") or ""
        default = int(DEFAULTS["GATEWAY_TELEMETRY_HEARTBEAT_MS"] or 0)
        return int(value) if is_decimal(value) and 1 <= int(value) <= _HEARTBEAT_MS_MAX else default

    def grace_s(self) -> float:
        value = self.text("GATEWAY_SHUTDOWN_GRACE_S") or ""
        if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,6})?", value, re.ASCII) or float(value) > _GRACE_S_MAX:
            self.report("GATEWAY_SHUTDOWN_GRACE_S", f"found {quoted(value)}", f"seconds from 0 to {_GRACE_S_MAX}")
            return 0.0
        return float(value)

    def unknown_names(self) -> None:
        """Warns of unknown GATEWAY_… names, because a misspelt one may mean more access than intended. It is not an error: a
        service manager may set variables of its own."""
        known = sorted(NAMES)
        for name in sorted(self.environ):
            if (
                not name.startswith("GATEWAY_")
                or name.startswith(DATABASE_URL_PREFIX)
                or name in NAMES | CONTROL_PLANE
                or name.removesuffix("_FILE") in NAMES
            ):
                continue
            meant = did_you_mean(name, known)
            self.warnings.append(f"{name} is not a variable of gatewayd{meant}")
