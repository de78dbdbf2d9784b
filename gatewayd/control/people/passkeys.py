"""Passkeys: registered by somebody signed in, and then a way to sign in. The library checks; challenges are used once."""

from typing import Any, Final

import msgspec
from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    options_to_json,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import base64url_to_bytes
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from gatewayd.audit.ids import ulid_value
from gatewayd.control.people.person import Person
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store, Transaction

CHALLENGE_MS: Final = 5 * 60_000
AT_MOST: Final = 20

ADD_CHALLENGE: Final = Statement("INSERT INTO challenges (challenge, kind, person_id, ends_ms) VALUES ($1, $2, $3, $4)")
TAKE_CHALLENGE: Final = Statement(
    "DELETE FROM challenges WHERE challenge = $1 AND kind = $2 AND ends_ms > $3 RETURNING person_id AS person_id"
)
SWEEP: Final = Statement("DELETE FROM challenges WHERE ends_ms <= $1")
ADD: Final = Statement(
    "INSERT INTO passkeys (credential_id, passkey_id, person_id, public_key, sign_count, name, created_ms)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7)"
)
OF_PERSON: Final = Statement(
    "SELECT credential_id, passkey_id, person_id, public_key, sign_count, name, created_ms, used_ms FROM passkeys"
    " WHERE person_id = $1 ORDER BY passkey_id LIMIT 100"
)
BY_CREDENTIAL: Final = Statement(
    "SELECT credential_id, passkey_id, person_id, public_key, sign_count, name, created_ms, used_ms FROM passkeys"
    " WHERE credential_id = $1"
)
USED: Final = Statement("UPDATE passkeys SET sign_count = $2, used_ms = $3 WHERE credential_id = $1 AND sign_count <= $2")
REMOVE: Final = Statement("DELETE FROM passkeys WHERE person_id = $1 AND passkey_id = $2")


class Passkey(msgspec.Struct, frozen=True):
    credential_id: bytes
    passkey_id: str
    person_id: str
    public_key: bytes
    sign_count: int
    name: str
    created_ms: int
    used_ms: int | None


class PasskeyRefused(Exception):
    """What the browser sent does not hold; the text is for its person."""


class _Challenge(msgspec.Struct, frozen=True):
    person_id: str | None


class Site(msgspec.Struct, frozen=True):
    """Where passkeys are valid: the public address, and its host name as the relying party."""

    origin: str
    host: str


def site_of(public_url: str) -> Site:
    host = public_url.partition("://")[2]
    return Site(public_url, host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0])


async def begin_registration(store: Store, site: Site, person: Person, challenge: bytes, now_ms: int) -> bytes:
    """The options, as JSON for the browser."""
    held = await store.rows(Passkey, OF_PERSON, person.person_id)
    await store.run(ADD_CHALLENGE, challenge, "registration", person.person_id, now_ms + CHALLENGE_MS)
    value = ulid_value(person.person_id)
    assert value is not None
    options = generate_registration_options(
        rp_id=site.host,
        rp_name="gatewayd",
        user_id=value.to_bytes(16, "big"),
        user_name=person.email,
        user_display_name=person.name,
        challenge=challenge,
        exclude_credentials=[PublicKeyCredentialDescriptor(id=each.credential_id) for each in held],
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.REQUIRED
        ),
    )
    return options_to_json(options).encode()


async def finish_registration(
    store: Store, site: Site, person: Person, answer: bytes, name: str, passkey_id: str, now_ms: int
) -> None:
    """Raises PasskeyRefused."""
    challenge = _challenge_of(answer)

    async def work(tx: Transaction) -> None:
        found = await tx.row(_Challenge, TAKE_CHALLENGE, challenge, "registration", now_ms)
        if found is None or found.person_id != person.person_id:
            raise PasskeyRefused("this took too long; begin again")
        if len(await tx.rows(Passkey, OF_PERSON, person.person_id)) >= AT_MOST:
            raise PasskeyRefused(f"there are {AT_MOST} passkeys already; remove one first")
        try:
            verified = verify_registration_response(
                credential=answer.decode(),
                expected_challenge=challenge,
                expected_rp_id=site.host,
                expected_origin=site.origin,
                require_user_verification=True,
            )
        except (WebAuthnException, ValueError):
            raise PasskeyRefused("the browser's answer does not hold; begin again") from None
        if await tx.row(Passkey, BY_CREDENTIAL, verified.credential_id) is not None:
            raise PasskeyRefused("this passkey is registered already")
        await tx.run(
            ADD, verified.credential_id, passkey_id, person.person_id, verified.credential_public_key, verified.sign_count, name,
            now_ms,
        )  # fmt: skip

    await store.transaction(work)


async def begin_sign_in(store: Store, site: Site, challenge: bytes, now_ms: int) -> bytes:
    """The options, as JSON for the browser. They name no account."""
    await store.run(ADD_CHALLENGE, challenge, "sign in", None, now_ms + CHALLENGE_MS)
    options = generate_authentication_options(
        rp_id=site.host, challenge=challenge, user_verification=UserVerificationRequirement.REQUIRED
    )
    return options_to_json(options).encode()


async def finish_sign_in(tx: Transaction, site: Site, answer: bytes, now_ms: int) -> str:
    """Whose passkey it is. Raises PasskeyRefused; the challenge is used up when the transaction commits."""
    challenge = _challenge_of(answer)
    if await tx.row(_Challenge, TAKE_CHALLENGE, challenge, "sign in", now_ms) is None:
        raise PasskeyRefused("this took too long; begin again")
    passkey = await tx.row(Passkey, BY_CREDENTIAL, _credential_of(answer))
    if passkey is None:
        raise PasskeyRefused("this passkey is not known here")
    try:
        verified = verify_authentication_response(
            credential=answer.decode(),
            expected_challenge=challenge,
            expected_rp_id=site.host,
            expected_origin=site.origin,
            credential_public_key=passkey.public_key,
            credential_current_sign_count=passkey.sign_count,
            require_user_verification=True,
        )
    except (WebAuthnException, ValueError):
        raise PasskeyRefused("the browser's answer does not hold; begin again") from None
    if not await tx.run(USED, passkey.credential_id, verified.new_sign_count, now_ms):
        raise PasskeyRefused("this passkey was used elsewhere meanwhile; begin again")
    return passkey.person_id


def _challenge_of(answer: bytes) -> bytes:
    """The challenge that the browser says it answers; whether it does is checked by the library."""
    client_data: Any = _field(answer, "response", "clientDataJSON")
    try:
        found = msgspec.json.decode(base64url_to_bytes(client_data))["challenge"]
        return base64url_to_bytes(found)
    except (msgspec.DecodeError, ValueError, KeyError, TypeError):
        raise PasskeyRefused("the browser's answer is not that of a passkey") from None


def _credential_of(answer: bytes) -> bytes:
    try:
        return base64url_to_bytes(_field(answer, "rawId"))
    except ValueError:
        raise PasskeyRefused("the browser's answer is not that of a passkey") from None


def _field(answer: bytes, *names: str) -> str:
    try:
        found = msgspec.json.decode(answer)
        for name in names:
            found = found[name]
    except (msgspec.DecodeError, KeyError, TypeError):
        found = None
    if not isinstance(found, str):
        raise PasskeyRefused("the browser's answer is not that of a passkey")
    return found
