"""Which columns look sensitive, by name, type and comment, and which masks are proposed for them."""

import msgspec
import pytest

from gatewayd.catalog import Catalog, Column, Relation, Type
from gatewayd.masking.rules.families import family as masked_family
from gatewayd.masking.rules.families import misfit
from gatewayd.policy.file.model import FullRedact, Policy, TableAccess
from gatewayd.policy.tools.sensitive import TRAITS, Suspect, mask_json, suspects, unmasked


def catalog(*columns: tuple[str, str], table: str = "t", kind: str = "table", parents: tuple[int, ...] = ()) -> Catalog:
    relation = Relation(20000, "public", table, kind, tuple(Column(*each) for each in columns), parents)  # type: ignore[arg-type]  # a test writes kinds as text
    return Catalog(revision=1, database="d", relations={("public", table): relation})


def found(name: str, type_: str, *, table: str = "t", comment: str = "") -> Suspect | None:
    every = suspects(catalog((name, type_), table=table), {("public", table, name): comment})
    assert len(every) < 2
    return every[0] if every else None


@pytest.mark.parametrize(
    ("name", "type_", "mask"),
    [
        ("email", "text", {"t": "pseudonymize", "kind": "email"}),
        ("customerEmail", "character varying", {"t": "pseudonymize", "kind": "email"}),
        ("e_mail", "character", {"t": "pseudonymize", "kind": "email"}),
        ("phone_number", "text", {"t": "pseudonymize", "kind": "phone"}),
        ("mobile", "bigint", "consistent-hash"),
        ("first_name", "text", {"t": "pseudonymize", "kind": "name"}),
        ("date_of_birth", "date", {"t": "generalize", "granularity": "year"}),
        ("iban", "text", {"t": "partial", "keepEnd": 4}),
        ("zip_code", "text", {"t": "partial", "keepStart": 2}),
        ("latitude", "double precision", {"t": "generalize", "granularity": 0.1}),
        ("salary", "numeric", {"t": "noise", "ratio": 0.1}),
        ("ssn", "text", "full-redact"),
        ("ip_address", "inet", "full-redact"),
        ("api_key", "text", "full-redact"),
        ("api_key", "bytea", "null-out"),
    ],
)
def test_names_and_types(name: str, type_: str, mask: object) -> None:
    suspect = found(name, type_)
    assert suspect is not None
    assert mask_json(suspect.mask) == mask


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("email_verified", "boolean"),
        ("email_sent_at", "timestamp with time zone"),
        ("password_changed_on", "date"),
        ("phone_id", "integer"),
        ("token_count", "integer"),
        ("name", "text"),
        ("amount", "numeric"),
        ("shipping", "text"),
        ("mailbox", "text"),
        ("emails", "text[]"),
        ("panel", "text"),
        ("description", "text"),
    ],
)
def test_what_only_sounds_like_it(name: str, type_: str) -> None:
    assert found(name, type_) is None


def test_a_name_in_a_table_of_people() -> None:
    assert found("name", "text", table="order_customers") is not None
    assert found("name", "text", table="products") is None


def test_a_comment_speaks_where_the_name_does_not() -> None:
    suspect = found("note", "text", comment="Free text; contains PII.")
    assert suspect is not None
    assert (suspect.mask, suspect.reason) == (FullRedact(), "marked so by its comment")
    told = found("handle", "text", comment="the e-mail address of the buyer")
    assert told is not None
    assert told.reason.endswith("going by its comment")


@pytest.mark.parametrize(("kind", "parents"), [("view", ()), ("sequence", ()), ("table", (1,))])
def test_what_stores_nothing_of_its_own_is_left_out(kind: str, parents: tuple[int, ...]) -> None:
    assert not suspects(catalog(("email", "text"), kind=kind, parents=parents))


def test_what_is_masked_or_denied_is_left_out() -> None:
    every = suspects(catalog(("email", "text"), ("phone", "text")))
    assert [each.column for each in unmasked(every, Policy())] == ["email", "phone"]
    masked = Policy(column_masks={("public", "t"): {"email": FullRedact()}})
    assert [each.column for each in unmasked(every, masked)] == ["phone"]
    assert not unmasked(every, Policy(table_access=TableAccess("deny")))
    assert not unmasked(every, Policy(table_access=TableAccess("read", {("public", "*"): "deny"})))
    assert unmasked(every, Policy(table_access=TableAccess("deny", {("public", "t"): "read"})))


TYPES = (
    *("text", "character varying", "character", "name", "smallint", "integer", "bigint", "numeric", "real", "double precision"),
    *(
        "money",
        "uuid",
        "date",
        "timestamp without time zone",
        "timestamp with time zone",
        "json",
        "jsonb",
        "inet",
        "bytea",
        "point",
    ),
    *("public.citext", "public.address", "public.mood", "other.citext"),
)
OWN = {
    ("public", "citext"): Type("public", "citext", "base", extension="citext"),
    ("public", "address"): Type("public", "address", "domain", base="character varying"),
    ("public", "mood"): Type("public", "mood", "enum"),
}


@pytest.mark.parametrize("type_", TYPES)
def test_every_mask_proposed_fits_its_column(type_: str) -> None:
    names = [phrase.replace(" ", "_") for trait in TRAITS for phrase in trait.phrases.split(", ")]
    source = msgspec.structs.replace(catalog(*((name, type_) for name in names)), types=OWN)
    for suspect in suspects(source):
        assert misfit(suspect.mask, masked_family(type_, source)) is None, suspect
    if type_ in ("text", "public.citext", "public.address"):
        assert len(suspects(source)) > len(names) * 0.9
