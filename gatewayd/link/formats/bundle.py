"""The policy bundle: all that a linked gateway enforces, in one signed document (docs/link-protocol.md, Bundles)."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from gatewayd.keys.ed25519 import SigningKey
from gatewayd.link.formats.documents import digest, encode, seal
from gatewayd.policy.file.features import FEATURES

FORMAT: Final = 1

LINK_FEATURES: Final = frozenset(
    {"agents", "bundle_tests", "public_urls", "audit_projection", "view_definitions", "token_budgets"}
)
"""What a bundle may ask for beside the policy's own features."""
SUPPORTED: Final = LINK_FEATURES | {name for name, missing in FEATURES.items() if missing is None}


class BundleHead(msgspec.Struct, frozen=True):
    """What is read of a bundle before it is known to be ours: any later format has these, and more."""

    format: int
    issuer: str
    project: str
    version: int
    requires_features: tuple[str, ...] = ()


class AgentToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`mac` is HMAC-SHA256 of the token under the project's token key, in hex; `expires_at` in milliseconds, None: never.

    `used_up_until`, in milliseconds: until then it is refused, because it has used what it may in a day.
    """

    id: str
    mac: str
    name: str
    person: str | None = None
    expires_at: int | None = None
    used_up_until: int | None = None


class Agents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The agents that may come in; `token_key` is the project's, 32 bytes in hex. A bundle without agents asks for no token."""

    token_key: str
    tokens: tuple[AgentToken, ...] = ()


class AuditTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What of each row leaves the machine, and how long acknowledged rows stay on it."""

    statements: Literal["full", "redacted", "none"] = "full"
    retention_h: int = 24


class Bundle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`policy` is YAML of the shape with `databases:`, without `url`. `tests` is the text of a file of cases (`policy test`)."""

    format: int
    issuer: str
    project: str
    tenant_id: str
    version: int
    issued_at: int
    policy: str
    previous_sha256: str | None = None
    fresh_for_s: int = 3600
    on_stale: Literal["keep", "halt"] = "keep"
    requires_features: tuple[str, ...] = ()
    state: Literal["enforced", "paused"] = "enforced"
    tests: str | None = None
    agents: Agents | None = None
    public_urls: tuple[str, ...] = ()
    audit: AuditTerms = AuditTerms()
    view_definitions: bool = True


class Seen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The version ratchet: the highest version ever seen of a project, and which bytes it was. `version` 0: none yet."""

    issuer: str
    project: str
    version: int = 0
    sha256: str = ""


def sign_bundle(bundle: Bundle, keys: Sequence[SigningKey]) -> bytes:
    """The signed envelope of a bundle."""
    return seal("bundle", bundle, keys)


def bundle_sha256(bundle: Bundle) -> str:
    """What `previous_sha256`, `Seen.sha256` and `Freshness.sha256` name: of the payload, not of the envelope."""
    return digest(encode(bundle))


def address_variable(database: str) -> str:
    """The variable that holds the address of the database that a bundle calls so."""
    return "GATEWAY_DATABASE_URL_" + database.upper().replace("-", "_")


def addresses(names: Sequence[str], variables: Mapping[str, str]) -> dict[str, str | None]:
    """The address of each database; DATABASE_URL serves a bundle with one. None: it has none."""
    only = variables.get("DATABASE_URL") if len(names) == 1 else None
    return {name: variables.get(address_variable(name)) or only for name in names}
