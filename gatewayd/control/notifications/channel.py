"""Webhooks as the store has them. Address and secrets are sealed: an address in Slack's shape is itself a secret."""

import contextlib
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.keyring.sealing import NONCE_BYTES, Unsealable, key_id, seal, unseal
from gatewayd.control.notifications.bodies import Shape
from gatewayd.control.notifications.signing import WebhookSecret
from gatewayd.control.organisation.every import every_organisation
from gatewayd.control.store.statement import Statement

MOST: Final = 20
"""Webhooks of one organisation."""
DisabledWhy = Literal["person", "failing", "gone"]

OF_ORGANISATION: Final = Statement(
    "SELECT channel_id, project_id, shape, name, host_shown, sealed_url, sealed_secrets, kinds, made_ms, disabled_ms,"
    " disabled_why, failing_since_ms FROM notification_channels WHERE org_id = $1 ORDER BY channel_id LIMIT 100"
)
FIND: Final = Statement(
    "SELECT channel_id, project_id, shape, name, host_shown, sealed_url, sealed_secrets, kinds, made_ms, disabled_ms,"
    " disabled_why, failing_since_ms FROM notification_channels WHERE org_id = $1 AND channel_id = $2"
)
FIND_LOCKED: Final = Statement(
    "SELECT channel_id, project_id, shape, name, host_shown, sealed_url, sealed_secrets, kinds, made_ms, disabled_ms,"
    " disabled_why, failing_since_ms FROM notification_channels WHERE org_id = $1 AND channel_id = $2 FOR UPDATE"
)
ADD: Final = Statement(
    "INSERT INTO notification_channels (org_id, channel_id, project_id, shape, name, host_shown, sealed_url, sealed_secrets,"
    " kinds, made_ms, made_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
)
SET_KINDS: Final = Statement(
    "UPDATE notification_channels SET name = $3, kinds = $4 WHERE org_id = $1 AND channel_id = $2"
)  # fmt: skip
SET_SECRETS: Final = Statement("UPDATE notification_channels SET sealed_secrets = $3 WHERE org_id = $1 AND channel_id = $2")
DISABLE: Final = Statement(
    "UPDATE notification_channels SET disabled_ms = $3, disabled_why = $4"
    " WHERE org_id = $1 AND channel_id = $2 AND disabled_ms IS NULL"
)
ENABLE: Final = Statement(
    "UPDATE notification_channels SET disabled_ms = NULL, disabled_why = NULL, failing_since_ms = NULL"
    " WHERE org_id = $1 AND channel_id = $2 AND disabled_ms IS NOT NULL"
)
FAILS: Final = Statement(
    "UPDATE notification_channels SET failing_since_ms = $3 WHERE org_id = $1 AND channel_id = $2 AND failing_since_ms IS NULL"
)
WORKS: Final = Statement(
    "UPDATE notification_channels SET failing_since_ms = NULL"
    " WHERE org_id = $1 AND channel_id = $2 AND failing_since_ms IS NOT NULL"
)
SEAL_ANEW: Final = Statement(
    "UPDATE notification_channels SET sealed_url = $4, sealed_secrets = $6"
    " WHERE org_id = $1 AND channel_id = $2 AND sealed_url = $3 AND sealed_secrets = $5"
)
REMOVE: Final = Statement("DELETE FROM notification_channels WHERE org_id = $1 AND channel_id = $2")
COUNT: Final = Statement("SELECT count(*) FROM (SELECT 1 FROM notification_channels WHERE org_id = $1 LIMIT $2) AS few")


class Channel(msgspec.Struct, frozen=True):
    channel_id: str
    project_id: str | None
    shape: Shape
    name: str
    host_shown: str
    sealed_url: bytes
    sealed_secrets: bytes
    kinds: str
    made_ms: int
    disabled_ms: int | None
    disabled_why: DisabledWhy | None
    failing_since_ms: int | None

    @property
    def kind_list(self) -> list[str]:
        return msgspec.json.decode(self.kinds, type=list[str])


def sealed_url(console: Console, org_id: str, channel_id: str, url: str) -> bytes:
    return seal(console.secrets.kms, "webhook url", url.encode(), console.entropy(NONCE_BYTES), org_id, channel_id)


def sealed_secrets(console: Console, org_id: str, channel_id: str, secrets: Sequence[WebhookSecret]) -> bytes:
    text = msgspec.json.encode(list(secrets))
    return seal(console.secrets.kms, "webhook secrets", text, console.entropy(NONCE_BYTES), org_id, channel_id)


def url_of(console: Console, org_id: str, channel: Channel) -> str:
    """Raises Unsealable."""
    return unseal(console.secrets.kms, "webhook url", channel.sealed_url, org_id, channel.channel_id).decode()


def secrets_of(console: Console, org_id: str, channel: Channel) -> list[WebhookSecret]:
    """Raises Unsealable."""
    text = unseal(console.secrets.kms, "webhook secrets", channel.sealed_secrets, org_id, channel.channel_id)
    return msgspec.json.decode(text, type=list[WebhookSecret])


async def seal_webhooks_anew(console: Console) -> None:
    """Every address and secret under the current key. What cannot be opened stays as it is; its deliveries say so."""
    current = console.secrets.kms.current.key_id
    for org_id in await every_organisation(console.store):
        for each in await console.store.rows(Channel, OF_ORGANISATION, org_id):
            if key_id(each.sealed_url) == key_id(each.sealed_secrets) == current:
                continue
            with contextlib.suppress(Unsealable):
                url = sealed_url(console, org_id, each.channel_id, url_of(console, org_id, each))
                secrets = sealed_secrets(console, org_id, each.channel_id, secrets_of(console, org_id, each))
                held = (each.sealed_url, url, each.sealed_secrets, secrets)
                await console.store.run(SEAL_ANEW, org_id, each.channel_id, *held)
