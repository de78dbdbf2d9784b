"""Secrets that are nowhere else in the world, and the search for them in every form that a program might print them in."""

import base64
import json
from collections.abc import Mapping
from html import escape
from urllib.parse import quote, quote_plus

# With what breaks URLs, shells, JSON and HTML.
PASSWORD = 'pw-canary7f3a/@:?#%&="<é>'
SECRETS = {
    "password of the DSN": PASSWORD,
    "INDEXER_TOKEN": "indexer-canary91c2",
    "GATEWAY_MASK_SALT": "salt-canary55e0 with a blank",
    "user part of the webhook": "hookuser-canary3b",
    "password of the webhook": "hookpass-canary3c",
    "path of the webhook": "hookpath-canary3d",
    "query of the webhook": "hookquery-canary3e",
    "path of the telemetry collector": "telepath-canary4f",
    "query of the telemetry collector": "telequery-canary50",
    "GATEWAY_APPROVAL_TOKEN": "approval-canary61",
    "query of the approval gate": "gatequery-canary62",
    "a token that is wrong": "wrong-canary73",
    "an address in a policy": "policypass-canary84",
    "a session of somebody": "session-canary95",
}
ENCODED_PASSWORD = quote(PASSWORD, safe="")
ADDRESS = f"postgresql://someone:{SECRETS['an address in a policy']}@127.0.0.1:1/db"
POLICY = """
table_access: {default: read, tables: {secrets: deny, written: read_write}}
column_masks:
  customers: {name: consistent-hash, email: {t: pseudonymize, kind: email}}
"""
BAD_POLICIES = [
    f"databases: [{{name: x, url: '{ADDRESS}', urls: '{ADDRESS}'}}]",
    f"url: '{ADDRESS}'",
    f"'{ADDRESS}': read",
    f"table_access: {{default: '{ADDRESS}'}}",
    f"table_access: {{tables: {{'{ADDRESS}': read}}}}",
    f"table_access: {{tables: {{orders: '{ADDRESS}'}}}}",
    f"limits: {{max_rows: '{ADDRESS}'}}",
    f"functions: {{allow: ['{ADDRESS}']}}",
    f"column_masks: {{customers: {{name: '{ADDRESS}'}}}}",
    f"requires_features: ['{ADDRESS}']",
    f"public_urls: ['{ADDRESS}']",
    f"a: !!python/object {ADDRESS}",
    f"a: &x '{ADDRESS}'\nb: *x",
    f"a: '{ADDRESS}'\na: '{ADDRESS}'",
    f"\t{ADDRESS}: [",
    f"databases: [{{name: '{ADDRESS}', url: '{ADDRESS}', dialect: '{ADDRESS}'}}, '{ADDRESS}']",
]


def secret_variables() -> dict[str, str]:
    """Everything that can be set to a secret but the database, with addresses at which nobody answers."""
    hook = f"http://{SECRETS['user part of the webhook']}:{SECRETS['password of the webhook']}@127.0.0.1:1"
    return {
        "INDEXER_TOKEN": SECRETS["INDEXER_TOKEN"],
        "GATEWAY_MASK_SALT": SECRETS["GATEWAY_MASK_SALT"],
        "GATEWAY_DENY_WEBHOOK": f"{hook}/{SECRETS['path of the webhook']}?key={SECRETS['query of the webhook']}",
        "GATEWAY_TELEMETRY": "1",
        "GATEWAY_TELEMETRY_HEARTBEAT_MS": "200",
        "GATEWAY_TELEMETRY_ENDPOINT": (
            f"http://127.0.0.1:1/{SECRETS['path of the telemetry collector']}?k={SECRETS['query of the telemetry collector']}"
        ),
        "GATEWAY_APPROVAL_URL": f"http://127.0.0.1:1/?k={SECRETS['query of the approval gate']}",
        "GATEWAY_APPROVAL_TOKEN": SECRETS["GATEWAY_APPROVAL_TOKEN"],
        "GATEWAY_LOG_LEVEL": "debug",
    }


def forms(secret: str) -> set[bytes]:
    """The secret as it is, and as URLs, JSON, HTML, Python, base64 and hexadecimal dumps would show it."""
    data = secret.encode()
    texts = {
        secret, quote(secret, safe=""), quote(secret), quote_plus(secret), json.dumps(secret)[1:-1], escape(secret),
        repr(secret)[1:-1], repr(data)[2:-1], data.hex(),
    }  # fmt: skip
    whole = [base64.b64encode(bytes(lead) + data)[4 if lead else 0 : -4] for lead in range(3)]
    return {text.encode() for text in texts} | set(whole)


def found_in(outputs: Mapping[str, bytes]) -> list[str]:
    """Each `where: which secret` that was found; to be empty."""
    return [
        f"{where}: {name}"
        for where, output in outputs.items()
        for name, secret in SECRETS.items()
        if any(form in output for form in forms(secret))
    ]
