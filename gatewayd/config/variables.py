"""The environment variables of gatewayd: name, default, meaning, since when. The table in docs/operations.md is the same."""

from typing import Final

import msgspec


class Variable(msgspec.Struct, frozen=True):
    """`default` is the text that an unset variable stands for, None when it has no default; `shown` is the default in words,
    where that text is not clear alone. A secret is also read from a credential file and from the file named by NAME_FILE."""

    name: str
    default: str | None
    meaning: str
    shown: str = ""
    secret: bool = False
    since: str = ""

    @property
    def default_in_words(self) -> str:
        """The default as the table in docs/operations.md has it."""
        return self.shown or (self.default if self.default is not None else "none")


VARIABLES: Final[tuple[Variable, ...]] = (
    Variable(
        "DATABASE_URL",
        None,
        "connection string of the database; required unless the policy has `databases:`, ignored when it has",
        secret=True,
    ),
    Variable("GATEWAY_POLICY_FILE", None, "path of the YAML policy file; without one every read is allowed, every write denied"),
    Variable("PORT", "8080", "HTTP port, 1 to 65535"),
    Variable(
        "GATEWAY_HOST",
        "0.0.0.0",
        "address the HTTP listener binds; `::` is IPv6 and IPv4, `unix:/path` a Unix socket",
        since="0.7.1",
    ),
    Variable(
        "DB_PATH",
        "/data/audit.db",
        "path of the audit file",
        shown="`$STATE_DIRECTORY/audit.db` under systemd, else `/data/audit.db`",
    ),
    Variable(
        "GATEWAY_STATE_DIR",
        None,
        "folder of the identity, `identity.json`, made at the first start, and of what a link keeps",
        shown="`$STATE_DIRECTORY` under systemd, else the folder of DB_PATH",
    ),
    Variable("GATEWAY_TRANSPORT", "http", "`http` or `stdio`"),
    Variable(
        "GATEWAY_MASK_SALT",
        None,
        "salt of the mask transforms; required where a policy has column_masks; changing it changes every masked value",
        secret=True,
        since="0.12.0",
    ),
    Variable("GATEWAY_MASK_SOURCE_REWRITE", "0", "mask inside the query instead of its result; boolean", since="0.14.0"),
    Variable(
        "INDEXER_TOKEN", None, "bearer token of the audit and admin routes; while unset those routes answer 404", secret=True
    ),
    Variable("GATEWAY_DENY_WEBHOOK", None, "http(s) URL that receives a JSON POST per denial"),
    Variable(
        "GATEWAY_DENY_WEBHOOK_RULES",
        None,
        "comma list of the rules that fire the webhook: table_access, multi_statement, dangerous_statement, parse_error",
        shown="all rules",
    ),
    Variable(
        "GATEWAY_TELEMETRY",
        "1",
        "anonymous usage telemetry: `1`, `true`, `on` send; `debug` writes payloads to stderr instead; anything else is off",
        shown="enabled",
    ),
    Variable("DO_NOT_TRACK", None, "`1` or `true` switches telemetry off whatever GATEWAY_TELEMETRY says", shown="unset"),
    Variable("GATEWAY_TELEMETRY_ENDPOINT", None, "http(s) URL of the telemetry collector; without one nothing is sent"),
    Variable(
        "GATEWAY_TELEMETRY_HEARTBEAT_MS",
        "86400000",
        "heartbeat interval in ms, 1 to 604800000; anything else falls back to the default",
    ),
    Variable("GATEWAY_LOG_LEVEL", "info", "`debug`, `info`, `warning` or `error`"),
    Variable("GATEWAY_AUDIT_SYNCHRONOUS", "normal", "`normal` or `full`; `full` makes each audit commit survive a power cut"),
    Variable("GATEWAY_AUDIT_ERASABLE", "0", "allow `gatewayd audit erase` and `POST /audit/erase`; boolean"),
    Variable(
        "GATEWAY_ALLOWED_HOSTS",
        None,
        "comma list checked against `Host` on /mcp: `name` (any port), `name:port`, or `*`",
        shown="loopback names when bound to loopback, else any",
    ),
    Variable(
        "GATEWAY_ALLOWED_ORIGINS",
        None,
        "comma list checked against `Origin` on /mcp: `https://name`, `https://name:port`, or `*`; "
        "a request without the header passes",
        shown="loopback origins",
    ),
    Variable("GATEWAY_SHUTDOWN_GRACE_S", "10", "seconds that calls in flight may still take after a stop signal, 0 to 3600"),
    Variable(
        "GATEWAY_APPROVAL_URL", None, "http(s) URL of the approval gate; together with GATEWAY_APPROVAL_TOKEN", since="0.16.0"
    ),
    Variable(
        "GATEWAY_APPROVAL_TOKEN",
        None,
        "bearer token for the approval gate; together with GATEWAY_APPROVAL_URL",
        secret=True,
        since="0.16.0",
    ),
    Variable(
        "GATEWAY_CONTROL_URL",
        None,
        "https URL of the control plane (http for loopback only); switches linked mode on; excludes GATEWAY_POLICY_FILE",
    ),
    Variable("GATEWAY_ENROL_TOKEN", None, "enrolment token, read only while the gateway is not linked yet", secret=True),
    Variable("GATEWAY_CONTROL_CA", None, "path of a PEM file: the private authority of the control plane's certificate"),
    Variable(
        "GATEWAY_PROXY_SECRET",
        None,
        "what a proxy before gatewayd sends in `X-Gateway-Proxy-Secret` once it has checked the agent's token; "
        "`X-Gateway-Token-Id` then counts from it alone",
        secret=True,
    ),
)

DEFAULTS: Final = {variable.name: variable.default for variable in VARIABLES}
NAMES: Final = frozenset(DEFAULTS)
DATABASE_URL_PREFIX: Final = "GATEWAY_DATABASE_URL_"
"""Linked: GATEWAY_DATABASE_URL_<NAME>, a secret, is the address of the database that the bundle calls NAME (`-` as `_`)."""

# Variables of the control plane. gatewayd knows the names, so that they are no typing errors, and reads none of them.
CONTROL_PLANE: Final = frozenset({"GATEWAY_SELF_HOST", "GATEWAY_ENGINE_BIN", "GATEWAY_MASK_SALT_MASTER"})
