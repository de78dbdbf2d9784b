"""The control plane's environment variables. The table of docs/control-plane.md is checked against this one."""

from typing import Final

from gatewayd.config.variables import Variable

VARIABLES: Final[tuple[Variable, ...]] = (
    Variable("GATEWAY_SELF_HOST", "0", "one organisation, no caps, secrets made at the first start, engines run here; boolean"),
    Variable(
        "CONTROL_DATABASE_URL",
        None,
        "PostgreSQL of the control plane",
        shown="self-host: an embedded one in the state folder; else required",
        secret=True,
    ),
    Variable(
        "CONTROL_PUBLIC_URL",
        None,
        "address that people and gateways use; https, or http for a loopback name",
        shown="self-host: http://localhost:PORT; else required",
    ),
    Variable("CONTROL_HOST", "127.0.0.1", "address the listener binds"),
    Variable("CONTROL_PORT", "8090", "port, 1 to 65535"),
    Variable(
        "CONTROL_STATE_DIR",
        None,
        "folder of secrets made here, engines and the embedded PostgreSQL",
        shown="`$STATE_DIRECTORY`, else `~/.local/state/gatewayd-control` (root: `/var/lib/gatewayd-control`)",
    ),
    Variable(
        "CONTROL_AUTH_SECRET", None, "what sign-in is protected with", shown="self-host: made at the first start", secret=True
    ),
    Variable(
        "CONTROL_KMS_KEY",
        None,
        "what database addresses are sealed with",
        shown="self-host: made at the first start",
        secret=True,
    ),
    Variable(
        "CONTROL_TOKEN_PEPPER",
        None,
        "what tokens and API keys are hashed with",
        shown="self-host: made at the first start",
        secret=True,
    ),
    Variable(
        "CONTROL_SIGNING_KEY",
        None,
        "what bundles and acknowledgements are signed with",
        shown="self-host: made at the first start",
        secret=True,
    ),
    Variable(
        "GATEWAY_MASK_SALT_MASTER", None, "master of the projects' mask salts; needed once a project declares masks", secret=True
    ),
    Variable(
        "GATEWAY_ENGINE_BIN", None, "program that is run as a project's engine", shown="the `gatewayd` of this installation"
    ),
    Variable("CONTROL_METRICS_TOKEN", None, "bearer token of /metrics; while unset that route answers 404", secret=True),
    Variable("CONTROL_CAPS_FILE", None, "YAML file with the caps of organisations; not in self-host"),
    Variable("CONTROL_SIGN_UP", "invitation", "hosted: `open` or `invitation`; kept, and not used yet"),
    Variable(
        "CONTROL_SMTP_URL", None, "where mail is sent: smtp(s)://user:password@host:port; kept, and not used yet", secret=True
    ),
    Variable("CONTROL_TRUSTED_PROXIES", None, "comma list of addresses or networks whose X-Forwarded-For counts"),
    Variable(
        "CONTROL_OUTBOUND_NETWORKS",
        None,
        "comma list of addresses or networks, beside the public internet, that webhooks and sign-in providers may be in",
    ),
    Variable("CONTROL_LOG_LEVEL", "info", "`debug`, `info`, `warning` or `error`"),
    Variable("CONTROL_SHUTDOWN_GRACE_S", "10", "seconds that requests in progress may still take after a stop signal, 0 to 3600"),
)

DEFAULTS: Final = {variable.name: variable.default for variable in VARIABLES}
NAMES: Final = frozenset(DEFAULTS)
