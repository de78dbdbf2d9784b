"""The signed documents of the link: taken in one form, for one purpose, in one order of checks."""

import random
from typing import Final, get_args

import msgspec
import pytest

from gatewayd.keys.ed25519 import SigningKey
from gatewayd.link.formats import answers, bundle, checks, enrolment, requests, states, trust, verdicts
from gatewayd.link.formats.documents import DocumentKind, DocumentRefused, digest, opened, payload_type, public_text, read, seal
from tests.keys.mutated import mutated
from tests.link import link_documents as made
from tests.link.link_documents import NOW_MS, OTHER, REQUEST, ROOT, WORKING

KINDS: Final = get_args(DocumentKind)
SIGNERS: Final = {"trust": ROOT, "request": made.IDENTITY}


def check_of(data: bytes, *, seen: bundle.Seen | None = None, held: trust.Trust | None = None, now_ms: int = NOW_MS) -> str:
    """The check that stops this bundle, or `passed`."""
    try:
        found = checks.authentic(data, held or made.trust(), seen or made.seen(), now_ms)
        checks.enforceable(found)
    except DocumentRefused as refused:
        return refused.check
    return "passed"


def test_there_is_one_good_document_of_each_kind() -> None:
    assert set(made.every_document()) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_no_document_stands_for_another_kind(kind: DocumentKind) -> None:
    signer = SIGNERS.get(kind, WORKING).public
    for other, data in made.every_document().items():
        if other == kind:
            opened(kind, data, [signer])
            continue
        with pytest.raises(DocumentRefused) as caught:
            opened(kind, data, [signer])
        assert caught.value.check in ("envelope", "type")


@pytest.mark.parametrize("kind", KINDS)
def test_every_bit_of_every_document_counts(kind: DocumentKind) -> None:
    good, signer = made.every_document()[kind], SIGNERS.get(kind, WORKING).public
    for place in range(0, len(good) * 8, 3 if kind == "bundle" else 1):
        changed = bytearray(good)
        changed[place // 8] ^= 1 << place % 8
        with pytest.raises(DocumentRefused):
            opened(kind, bytes(changed), [signer])


@pytest.mark.parametrize("times", [2000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_no_mutation_of_a_document_is_taken(times: int) -> None:
    dice = random.Random(times)
    documents = list(made.every_document().items())
    for turn in range(times):
        kind, good = documents[turn % len(documents)]
        with pytest.raises(DocumentRefused):
            opened(kind, mutated(good, dice), [SIGNERS.get(kind, WORKING).public])


@pytest.mark.parametrize(
    "payload",
    [b'{"version":1,"version":2}', b"{} {}", b"[1]", b"", b'{"version":NaN}', b"\xff", b"[" * 99_999, b'{"version":"1"}'],
)
def test_a_payload_has_one_reading_or_none(payload: bytes) -> None:
    class Shape(msgspec.Struct, forbid_unknown_fields=True):
        version: int

    with pytest.raises(DocumentRefused):
        read(payload, Shape)


# ---- bundles


def test_a_good_bundle_passes_and_moves_the_ratchet() -> None:
    found = checks.authentic(bundle.sign_bundle(made.bundle(), [WORKING]), made.trust(), made.seen(), NOW_MS)
    assert found.seen == made.seen(version=7, sha256=bundle.bundle_sha256(made.bundle()))
    assert checks.enforceable(found) == made.bundle()


@pytest.mark.parametrize(
    ("check", "data", "seen"),
    [
        ("envelope", b"<html>", None),
        ("envelope", bundle.sign_bundle(made.bundle(), [OTHER]), None),
        ("type", made.every_document()["ack"], None),
        ("issuer", bundle.sign_bundle(made.bundle(issuer="https://else.example.com"), [WORKING]), None),
        ("project", bundle.sign_bundle(made.bundle(project="other"), [WORKING]), None),
        ("version", bundle.sign_bundle(made.bundle(), [WORKING]), made.seen(version=8, sha256="00")),
        ("version", bundle.sign_bundle(made.bundle(), [WORKING]), made.seen(version=7, sha256="00")),
        ("version", bundle.sign_bundle(made.bundle(version=0), [WORKING]), None),
        ("features", bundle.sign_bundle(made.bundle(format=2), [WORKING]), None),
        ("features", bundle.sign_bundle(made.bundle(requires_features=("time_travel",)), [WORKING]), None),
        ("enforceable", bundle.sign_bundle(made.bundle(state="other"), [WORKING]), None),
    ],
)
def test_the_first_check_that_fails_is_told(check: str, data: bytes, seen: bundle.Seen | None) -> None:
    assert check_of(data, seen=seen) == check


def test_the_same_bundle_again_passes() -> None:
    data = bundle.sign_bundle(made.bundle(), [WORKING])
    again = made.seen(version=7, sha256=bundle.bundle_sha256(made.bundle()))
    assert check_of(data, seen=again) == "passed"


def test_a_bundle_of_a_later_format_is_authentic_and_not_enforceable() -> None:
    """What a newer control plane signs halts an older gateway; it is never enforced by half."""

    class Later(msgspec.Struct):
        format: int = 2
        issuer: str = made.ISSUER
        project: str = made.PROJECT
        version: int = 9
        something: str = "new"

    found = checks.authentic(seal("bundle", Later(), [WORKING]), made.trust(), made.seen(version=8), NOW_MS)
    assert found.seen.version == 9
    with pytest.raises(DocumentRefused) as caught:
        checks.enforceable(found)
    assert caught.value.check == "features"


def test_a_bundle_above_four_mib_is_not_read() -> None:
    assert check_of(bundle.sign_bundle(made.bundle(policy="#" * (4 * 1024 * 1024 + 8192)), [WORKING])) == "envelope"


def test_a_key_signs_what_it_may_and_until_its_end() -> None:
    data = bundle.sign_bundle(made.bundle(), [WORKING])
    text = public_text(WORKING.public)
    acks_only = made.trust(keys=(trust.WorkingKey(text, ("ack",), NOW_MS + 1),))
    ended = made.trust(keys=(trust.WorkingKey(text, trust.USES, NOW_MS - trust.CLOCK_SLACK_MS - 1),))
    assert check_of(data, held=acks_only) == "envelope"
    assert check_of(data, held=ended) == "envelope"
    assert check_of(data, held=ended, now_ms=NOW_MS - 1) == "passed"


def test_addresses_come_from_variables_and_one_database_may_use_the_plain_one() -> None:
    variables = {"DATABASE_URL": "plain", "GATEWAY_DATABASE_URL_MY_SHOP": "own"}
    assert bundle.addresses(["my-shop", "other"], variables) == {"my-shop": "own", "other": None}
    assert bundle.addresses(["other"], variables) == {"other": "plain"}
    assert bundle.addresses(["my-shop"], variables) == {"my-shop": "own"}


# ---- trust


def test_trust_is_taken_from_the_pinned_root_and_only_forwards() -> None:
    held = made.trust()
    newer = made.trust(version=2)
    assert trust.next_trust(trust.sign_trust(newer, ROOT), held) == newer
    for check, data in (
        ("version", trust.sign_trust(made.trust(), ROOT)),
        ("envelope", trust.sign_trust(newer, OTHER)),
        ("issuer", trust.sign_trust(made.trust(version=2, issuer="x"), ROOT)),
        ("issuer", trust.sign_trust(made.trust(version=2, root=public_text(OTHER.public)), ROOT)),
    ):
        with pytest.raises(DocumentRefused) as caught:
            trust.next_trust(data, held)
        assert caught.value.check == check


def test_two_changes_of_root_are_walked_through() -> None:
    first, second, third = (SigningKey(bytes([number]) * 32) for number in (1, 60, 61))
    texts = [public_text(key.public) for key in (first, second, third)]
    v2 = trust.sign_trust(made.trust(version=2, next_root=texts[1]), first, second)
    v3 = trust.sign_trust(made.trust(version=3, root=texts[1], next_root=texts[2]), second, third)
    v4 = trust.sign_trust(made.trust(version=4, root=texts[2]), third)
    newest, kept = trust.walked([v2, v3, v4], made.trust())
    assert (newest.version, newest.root_from_now_on, kept) == (4, texts[2], v4)
    assert trust.walked([v2, v2, v3], made.trust())[0].root_from_now_on == texts[2]
    assert trust.again(v3, texts[2]).version == 3
    for broken in ([v3, v4], [v4]):  # a step left out
        with pytest.raises(DocumentRefused):
            trust.walked(broken, made.trust())
    with pytest.raises(DocumentRefused):
        trust.again(v3, texts[0])


def test_a_change_of_root_needs_both_signatures() -> None:
    document = made.trust(version=2, next_root=public_text(OTHER.public))
    with pytest.raises(DocumentRefused):
        trust.next_trust(trust.sign_trust(document, ROOT), made.trust())
    with pytest.raises(DocumentRefused):
        trust.next_trust(trust.sign_trust(document, OTHER), made.trust())
    assert trust.next_trust(trust.sign_trust(document, ROOT, OTHER), made.trust()).version == 2


def test_a_weak_key_in_a_trust_document_refuses_it() -> None:
    weak = (trust.WorkingKey("AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", trust.USES, NOW_MS),)
    with pytest.raises(DocumentRefused):
        trust.next_trust(trust.sign_trust(made.trust(version=2, keys=weak), ROOT), made.trust())


def test_the_token_says_which_root_is_believed() -> None:
    document = trust.sign_trust(made.trust(), ROOT)
    assert trust.first_trust(document, trust.fingerprint_of(ROOT.public)) == made.trust()
    with pytest.raises(DocumentRefused):
        trust.first_trust(document, trust.fingerprint_of(OTHER.public))
    faked = trust.sign_trust(made.trust(root=public_text(ROOT.public)), OTHER)
    with pytest.raises(DocumentRefused):
        trust.first_trust(faked, trust.fingerprint_of(ROOT.public))


def test_an_enrolment_token_has_one_form_and_hides_itself() -> None:
    token = enrolment.EnrolmentToken("ab" * 16, "cd" * 32)
    assert enrolment.read_token(enrolment.token_text(token) + "\n") == token
    assert "ab" not in repr(token)
    for text in ("", "gw_enrol_", enrolment.token_text(token)[:-1], enrolment.token_text(token).upper()):
        with pytest.raises(ValueError, match=r"expected gw_enrol_"):
            enrolment.read_token(text)


# ---- answers


def test_an_answer_is_for_one_request_of_one_gateway() -> None:
    data = made.every_document()["refusal"]
    found = answers.read_answer(data, answers.RefusalAnswer, made.trust(), NOW_MS, gateway=made.GATEWAY, request=REQUEST)
    assert found.reason == "cut"
    for gateway, request in (("other", REQUEST), (made.GATEWAY, "00" * 32)):
        with pytest.raises(DocumentRefused):
            answers.read_answer(data, answers.RefusalAnswer, made.trust(), NOW_MS, gateway=gateway, request=request)


def test_a_verdict_is_for_one_grant() -> None:
    data = made.every_document()["verdict"]
    asked = {"gateway": made.GATEWAY, "request": REQUEST, "query_id": "q", "grant": "aa"}
    assert verdicts.read_verdict(data, made.trust(), NOW_MS, **asked).status == "approved"
    for name in asked:
        with pytest.raises(DocumentRefused):
            verdicts.read_verdict(data, made.trust(), NOW_MS, **{**asked, name: "other"})


def test_a_taint_answer_is_for_one_grant() -> None:
    data = made.every_document()["taint"]
    asked = {"gateway": made.GATEWAY, "request": REQUEST, "query_id": "q", "grant": "g"}
    assert not verdicts.read_taint(data, made.trust(), NOW_MS, **asked).tainted
    for name in asked:
        with pytest.raises(DocumentRefused):
            verdicts.read_taint(data, made.trust(), NOW_MS, **{**asked, name: "other"})


def test_grant_keys_do_not_run_into_each_other() -> None:
    one = verdicts.grant_sha256(sql="a", intent="bc", database="d", token_id=None)
    assert one != verdicts.grant_sha256(sql="ab", intent="c", database="d", token_id=None)
    assert one != verdicts.grant_sha256(sql="a", intent="bc", database="d", token_id="x")
    assert one == verdicts.grant_sha256(sql="a", intent="bc", database="d", token_id="")


# ---- requests


def poll(run: str, n: int, ts: int = NOW_MS, body: bytes = b"{}") -> requests.ReadRequest:
    request = requests.LinkRequest(made.ISSUER, made.GATEWAY, "poll", run, n, ts, msgspec.Raw(body))
    return requests.read_request(requests.sign_request(request, made.IDENTITY).data, made.IDENTITY.public)


def orders(*polls: requests.ReadRequest, now_ms: int = NOW_MS) -> list[str]:
    before: requests.PollsBefore | None = None
    found: list[str] = []
    for each in polls:
        order = requests.order_of(each, before, now_ms)
        if order == "next":
            before = requests.after(each, before)
        found.append(order)
    return found


def test_a_request_is_what_the_identity_signed() -> None:
    sent = requests.sign_request(
        requests.LinkRequest(made.ISSUER, made.GATEWAY, "poll", "r", 1, NOW_MS, msgspec.Raw(b'{"x":1}')), made.IDENTITY
    )
    found = requests.read_request(sent.data, made.IDENTITY.public)
    assert found.digest == sent.digest == digest(sent.data)
    assert bytes(found.request.body) == b'{"x":1}'
    assert requests.claimed(sent.data).gateway == made.GATEWAY
    with pytest.raises(DocumentRefused):
        requests.read_request(sent.data, OTHER.public)


def test_polls_of_one_gateway_raise_no_alarm() -> None:
    lost_answer = poll("a", 2)
    assert orders(poll("a", 1), lost_answer, lost_answer, poll("a", 4), poll("a", 3)) == ["next", "next", "same", "next", "late"]
    restarted = orders(poll("a", 5), poll("b", 1, NOW_MS + 1), poll("a", 6, NOW_MS))
    assert restarted == ["next", "next", "late"]
    assert orders(poll("a", 5), poll("b", 1, NOW_MS - 1000)) == ["next", "next"]  # its clock was set back


def test_a_copied_identity_is_a_duplicate() -> None:
    assert orders(poll("a", 1), poll("a", 1, body=b'{"x":1}')) == ["next", "duplicated"]
    assert orders(poll("a", 1), poll("b", 1, NOW_MS + 1), poll("a", 2, NOW_MS + 2)) == ["next", "next", "duplicated"]


def test_a_clock_that_is_off_is_told_before_anything_else_but_a_retry() -> None:
    assert orders(poll("a", 1, NOW_MS - requests.CLOCK_MS - 1)) == ["clock"]
    assert orders(poll("a", 1, NOW_MS + 86_400_000)) == ["clock"]
    assert orders(poll("a", 1, NOW_MS + requests.CLOCK_MS)) == ["next"]


def test_every_kind_of_request_has_its_path() -> None:
    assert set(requests.PATHS) == set(get_args(requests.RequestKind))
    assert len(set(requests.PATHS.values())) == len(requests.PATHS)
    assert payload_type("ack") == "application/vnd.gatewayd.ack+json"


# ---- states


def test_what_a_state_answers() -> None:
    assert states.tool_error(states.Enforcing(7)) is None
    paused, halted = states.tool_error(states.Paused(7)), states.tool_error(states.Halted("why", "bundle"))
    assert paused is not None
    assert paused[0] == "gateway_paused"
    assert halted is not None
    assert halted[0] == "gateway_halted"
    assert "why" in halted[1]
    assert states.state_under(made.bundle()) == states.Enforcing(7)
    assert states.state_under(made.bundle(state="paused")) == states.Paused(7)
    assert [
        states.name_of(each) for each in (states.Waiting(), states.Enforcing(1), states.Paused(1), states.Halted("", "cut"))
    ] == [
        "waiting",
        "enforcing",
        "paused",
        "halted",
    ]
