"""What the link service gives back: a status and bytes, signed where the gateway must believe it."""

from typing import Final

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.trust.signing import signers
from gatewayd.link.formats.answers import RefusalAnswer, RefusalReason, sign_answer


class Reply(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()


BAD: Final = Reply(400, b'{"error":"this is no request of a gateway"}')
NOT_KNOWN: Final = Reply(404, b'{"error":"there is nothing here"}')
"""One answer for an unknown gateway and for one that somebody else speaks for."""


def refused(status: int, text: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Reply:
    return Reply(status, msgspec.json.encode({"error": text}), headers)


def refusal(console: Console, gateway_id: str, digest: str, reason: RefusalReason, message: str = "") -> Reply:
    """A signed refusal of the request with this digest."""
    said = RefusalAnswer(gateway_id, digest, reason, console.now_ms(), message)
    return Reply(403, sign_answer(said, signers(console.secrets.signing)))
