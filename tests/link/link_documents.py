"""Keys and documents for tests of the link: one issuer, one project, one gateway, all of them valid until a test changes one."""

from typing import Any, Final

import msgspec

from gatewayd.keys.ed25519 import SigningKey
from gatewayd.link.formats.answers import Ack, Conflict, Enrolment, Freshness, RefusalAnswer, TreeHead, sign_answer
from gatewayd.link.formats.bundle import Bundle, Seen, sign_bundle
from gatewayd.link.formats.documents import DocumentKind, public_text
from gatewayd.link.formats.requests import LinkRequest, sign_request
from gatewayd.link.formats.trust import USES, Trust, WorkingKey, sign_trust
from gatewayd.link.formats.verdicts import ApprovalVerdict, TaintAnswer, sign_taint, sign_verdict

NOW_MS: Final = 1_800_000_000_000
YEAR_MS: Final = 365 * 24 * 3600 * 1000
ISSUER: Final = "https://control.example.com"
PROJECT: Final = "01JPROJECT0000000000000000"
GATEWAY: Final = "01JGATEWAY0000000000000000"
TENANT: Final = "01JTENANT00000000000000000"
REQUEST: Final = "ab" * 32
POLICY: Final = "databases:\n  - name: shop\n    table_access: {default: read}\n"


def key(number: int) -> SigningKey:
    return SigningKey(bytes([number]) * 32)


ROOT, NEXT_ROOT, WORKING, OTHER, IDENTITY = (key(number) for number in range(1, 6))


def trust(**changes: Any) -> Trust:
    whole = Trust(1, ISSUER, public_text(ROOT.public), (WorkingKey(public_text(WORKING.public), USES, NOW_MS + YEAR_MS),), NOW_MS)
    return msgspec.structs.replace(whole, **changes)


def bundle(**changes: Any) -> Bundle:
    return msgspec.structs.replace(Bundle(1, ISSUER, PROJECT, TENANT, 7, NOW_MS, POLICY), **changes)


def seen(**changes: Any) -> Seen:
    return msgspec.structs.replace(Seen(ISSUER, PROJECT), **changes)


def every_document() -> dict[DocumentKind, bytes]:
    """One good envelope of each kind."""
    keys = [WORKING]
    head = TreeHead("01JINSTANCE000000000000000", 3, "cd" * 32)
    request = LinkRequest(ISSUER, GATEWAY, "poll", "01JRUN00000000000000000000", 1, NOW_MS, msgspec.Raw(b'{"a":1}'))
    return {
        "bundle": sign_bundle(bundle(), keys),
        "freshness": sign_answer(Freshness(GATEWAY, PROJECT, 7, "ef" * 32, NOW_MS, REQUEST, "run", 1, head), keys),
        "ack": sign_answer(Ack(GATEWAY, head.instance, 1, 3, REQUEST, 3, head.root, NOW_MS), keys),
        "conflict": sign_answer(Conflict(GATEWAY, head.instance, REQUEST, 2, "01" * 32, (), head, 1, NOW_MS), keys),
        "verdict": sign_verdict(ApprovalVerdict(GATEWAY, REQUEST, "q", "aa", "approved", NOW_MS), keys),
        "taint": sign_taint(TaintAnswer(GATEWAY, REQUEST, "q", "g", False, NOW_MS), keys),
        "trust": sign_trust(trust(version=2), ROOT),
        "refusal": sign_answer(RefusalAnswer(GATEWAY, REQUEST, "cut", NOW_MS), keys),
        "request": sign_request(request, IDENTITY).data,
        "enrolment": sign_answer(Enrolment(GATEWAY, PROJECT, ISSUER, TENANT, REQUEST, "nonce", NOW_MS), keys),
    }
