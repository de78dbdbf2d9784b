"""Signatures of webhooks as Standard Webhooks has them (github.com/standard-webhooks/standard-webhooks, its specification). Pure.

`webhook-signature` has one signature for each secret in force, so that a receiver that knows the new or the old one checks it.
"""

import base64
import hmac
from collections.abc import Sequence
from typing import Final

import msgspec

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32
OVERLAP_MS: Final = 24 * 3_600_000
"""How long the earlier secret still signs, beside the new one."""


class WebhookSecret(msgspec.Struct, frozen=True):
    """`ends_ms` None: the newest, which has no end."""

    text: str
    ends_ms: int | None = None

    @property
    def key(self) -> bytes:
        return base64.b64decode(self.text.removeprefix(PREFIX))


def new_secret(random: bytes) -> WebhookSecret:
    assert len(random) == SECRET_BYTES
    return WebhookSecret(PREFIX + base64.b64encode(random).decode())


def rotated(secrets: Sequence[WebhookSecret], new: WebhookSecret, now_ms: int) -> list[WebhookSecret]:
    """The new one and the newest before it: there are never more than two."""
    return [new, msgspec.structs.replace(secrets[0], ends_ms=now_ms + OVERLAP_MS)]


def headers(secrets: Sequence[WebhookSecret], message_id: str, now_ms: int, body: bytes) -> dict[str, str]:
    """The three headers; `message_id` is the same for every try, the time is that of this one."""
    seconds = now_ms // 1000
    signed = f"{message_id}.{seconds}.".encode() + body
    in_force = [each for each in secrets if each.ends_ms is None or now_ms < each.ends_ms]
    marks = [base64.b64encode(hmac.digest(each.key, signed, "sha256")).decode() for each in in_force]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(f"v1,{mark}" for mark in marks),
    }
