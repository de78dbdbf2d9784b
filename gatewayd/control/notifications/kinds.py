"""What people and their systems can be told of, and which acts of the trail are told. Pure."""

from typing import Final, Literal, get_args

Kind = Literal[
    "approval.waiting",
    "approval.decided",
    "approval.expired",
    "policy.published",
    "gateway.halted",
    "gateway.duplicated",
    "gateway.forked",
    "gateway.cut",
    "gateway.silent",
    "audit.unproved",
    "keys.changed",
    "people.changed",
    "channel.disabled",
    "test",
]

WORDS: Final[dict[Kind, str]] = {
    "approval.waiting": "a write waits for a person",
    "approval.decided": "a write was approved or denied",
    "approval.expired": "nobody decided about a write in time",
    "policy.published": "a policy was published",
    "gateway.halted": "a gateway has halted",
    "gateway.duplicated": "two processes use one gateway's identity",
    "gateway.forked": "a gateway's audit began anew before its end",
    "gateway.cut": "a gateway was cut off",
    "gateway.silent": "a gateway is not heard any more",
    "audit.unproved": "a gateway's audit cannot be proved",
    "keys.changed": "a key, token or webhook was made, changed or revoked",
    "people.changed": "people or their roles have changed",
    "channel.disabled": "a webhook was disabled because it fails",
    "test": "a test",
}
"""Kind to words, for pages, chat and mail."""

CHOICES: Final[tuple[Kind, ...]] = tuple(kind for kind in get_args(Kind) if kind != "test")

OF_ACT: Final[dict[str, Kind]] = {
    "approval.approved": "approval.decided",
    "approval.denied": "approval.decided",
    "policy.published": "policy.published",
    "gateway.cut": "gateway.cut",
    "notification.disabled": "channel.disabled",
    "api_key.made": "keys.changed",
    "api_key.revoked": "keys.changed",
    "approval_bearer.made": "keys.changed",
    "approval_bearer.rotated": "keys.changed",
    "approval_bearer.revoked": "keys.changed",
    "gateway.token_made": "keys.changed",
    "gateway.enrolled": "keys.changed",
    "gateway.rotated": "keys.changed",
    "token.made": "keys.changed",
    "token.revoked": "keys.changed",
    "notification.added": "keys.changed",
    "notification.changed": "keys.changed",
    "notification.secret_rotated": "keys.changed",
    "notification.removed": "keys.changed",
    "provider.added": "keys.changed",
    "provider.removed": "keys.changed",
    "invitation.accepted": "people.changed",
    "invitation.withdrawn": "people.changed",
    "person.invited": "people.changed",
    "person.joined": "people.changed",
    "person.linked": "people.changed",
    "person.removed": "people.changed",
    "project.role_changed": "people.changed",
    "recovery.begun_at_the_machine": "people.changed",
    "recovery.asked": "people.changed",
    "role.changed": "people.changed",
}
"""An act that is not listed is told to nobody."""

OF_FINDING: Final[dict[str, Kind]] = {
    "duplicated": "gateway.duplicated",
    "fork": "gateway.forked",
    "conflict": "audit.unproved",
    "gap": "audit.unproved",
    "head": "audit.unproved",
    "lost": "audit.unproved",
}


def is_kind(text: str) -> bool:
    return text in CHOICES
