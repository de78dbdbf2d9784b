"""The enrolment token: for one use, one project, one hour. It carries the fingerprint of the root key, so that a wrong or faked
control plane is noticed before anything of it is believed. Pure."""

import re
from typing import Final

import msgspec

_FORM: Final = re.compile(r"gw_enrol_([0-9a-f]{32})_([0-9a-f]{64})", re.ASCII)


class EnrolmentToken(msgspec.Struct, frozen=True):
    """`secret` is what the control plane knows the token by, `fingerprint` the root key's; both in hex."""

    secret: str
    fingerprint: str

    def __repr__(self) -> str:
        return "EnrolmentToken(…)"


def token_text(token: EnrolmentToken) -> str:
    """The token as the control plane shows it: `gw_enrol_` with its secret and the fingerprint."""
    return f"gw_enrol_{token.secret}_{token.fingerprint}"


def read_token(text: str) -> EnrolmentToken:
    """Raises ValueError, which quotes nothing."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise ValueError("found no enrolment token; expected gw_enrol_ with 32 and 64 hex digits, as the control plane shows it")
    return EnrolmentToken(match[1], match[2])
