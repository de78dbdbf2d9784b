"""Which columns look as if they held personal data or secrets, by name, type and comment; never by data. What mask would fit.

A guess for a person to judge: `policy suggest-masks` and `policy init` propose it, `policy lint` reminds of it.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from gatewayd.catalog import Catalog, Column, Relation
from gatewayd.policy.file.model import (
    ConsistentHash,
    FullRedact,
    Generalize,
    Mask,
    Noise,
    NullOut,
    Partial,
    Policy,
    Pseudonymize,
)

ValueKind = Literal["text", "integer", "decimal", "uuid", "date", "other"]
Comments = Mapping[tuple[str, str, str], str]  # (schema, table, column) -> its comment

_FAMILIES: Final[Mapping[str, ValueKind]] = {
    **dict.fromkeys(("text", "character varying", "character"), "text"),
    **dict.fromkeys(("smallint", "integer", "bigint"), "integer"),
    **dict.fromkeys(("numeric", "real", "double precision"), "decimal"),
    "uuid": "uuid",
    **dict.fromkeys(("date", "timestamp without time zone", "timestamp with time zone"), "date"),
}
TABLES: Final = ("table", "partitioned table", "foreign table", "materialized view")
"""Kinds that store columns of their own: a mask there covers the views over them."""

_EMAIL: Final = Pseudonymize(kind="email")
_PHONE: Final = Pseudonymize(kind="phone")
_PERSON: Final = Pseudonymize(kind="name")
_LAST_FOUR: Final = Partial(keepEnd=4)
_FIRST_TWO: Final = Partial(keepStart=2)


class Trait(msgspec.Struct, frozen=True):
    """One kind of sensitive column: words (or runs of words) of its name, what fits each type family, and why.

    A family that `masks` does not name is no such column, unless `other` gives a mask for the rest."""

    phrases: str  # with commas between
    reason: str
    masks: Mapping[ValueKind, Mask]
    rest: Mask | None = None
    is_secret: bool = False


TRAITS: Final[tuple[Trait, ...]] = (
    Trait(
        "password, passwd, pwd, passphrase, password hash, secret, token, api key, apikey, private key, access "
        "key, credential, credentials, otp, totp, pin, pin code, cvv, cvc, security code, salt",
        "a secret, whose value no answer needs",
        {"text": FullRedact()},
        NullOut(),
        is_secret=True,
    ),
    Trait(
        "ssn, social security, national id, nino, bsn, cpf, passport, tax id, tin, vat id, identity card, driver "
        "license, drivers license, driving licence, license number, insurance number",
        "a number that identifies a person to the state",
        {"text": FullRedact(), "integer": FullRedact()},
    ),
    Trait(
        "iban, card number, cc number, credit card, account number, bank account, pan, routing number, sort code",
        "an account or card number; its end is enough to recognise it",
        {"text": _LAST_FOUR, "integer": FullRedact()},
    ),
    Trait(
        "email, e mail, mail address, email address",
        "an e-mail address; a pseudonym still groups and joins",
        {"text": _EMAIL},
    ),
    Trait(
        "phone, mobile, cell, telephone, tel, fax, msisdn, phone number",
        "a telephone number; a pseudonym still groups and joins",
        {"text": _PHONE, "integer": ConsistentHash()},
    ),
    Trait(
        "first name, last name, firstname, lastname, surname, given name, family name, full name, fullname, middle "
        "name, maiden name, contact name, holder name, cardholder",
        "the name of a person; a pseudonym still groups and joins",
        {"text": _PERSON},
    ),
    Trait(
        "username, user name, login, nickname, screen name",
        "an account's name; its hash still groups and joins",
        {"text": ConsistentHash()},
    ),
    Trait(
        "dob, birth date, birthdate, birthday, date of birth, born, born on",
        "a date of birth; the year is enough for most questions",
        {"date": Generalize(granularity="year"), "text": FullRedact()},
    ),
    Trait(
        "ip, ip address, ip addr, client ip, remote addr, mac address",
        "an address that leads to a person's device",
        {"text": ConsistentHash()},
        FullRedact(),
    ),
    Trait(
        "zip, zip code, zipcode, postcode, postal code",
        "a postcode; its beginning still tells the region",
        {"text": _FIRST_TWO, "integer": Generalize(granularity=1000)},
    ),
    Trait(
        "street, address, address line, house number",
        "where a person lives",
        {"text": FullRedact()},
    ),
    Trait(
        "latitude, longitude, lat, lng, lon, geolocation",
        "a place on the map; a tenth of a degree still tells the region",
        {"decimal": Generalize(granularity=0.1)},
        NullOut(),
    ),
    Trait(
        "salary, wage, income, compensation, bonus",
        "what a person earns; averages survive a little noise",
        {"integer": Noise(ratio=0.1), "decimal": Noise(ratio=0.1), "text": FullRedact()},
    ),
    Trait(
        "diagnosis, icd, allergy, allergies, blood type, medication, disease, medical, health",
        "says something about a person's health",
        {"text": FullRedact()},
        NullOut(),
    ),
    Trait(
        "religion, ethnicity, race, sexual orientation, political, gender, nationality",
        "belongs to a person's most protected traits",
        {"text": FullRedact()},
        NullOut(),
    ),
    Trait(
        "session id, device id, cookie, fingerprint, user agent",
        "follows one person from page to page",
        {"text": ConsistentHash(), "uuid": ConsistentHash()},
    ),
)
_NAME: Final = Trait("name", "the name of a person, going by the table; a pseudonym still groups and joins", {"text": _PERSON})
_COMMENTED: Final = Trait(
    "pii, personal data, personally identifiable, sensitive, confidential, gdpr, secret",
    "marked so by its comment",
    {"text": FullRedact()},
    NullOut(),
)
_PEOPLE: Final = "user, customer, person, people, employee, patient, contact, member, client, guest, student, applicant, staff"
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


class Suspect(msgspec.Struct, frozen=True):
    """A column that looks sensitive, the mask that would fit it, and why."""

    schema: str
    table: str
    column: str
    type: str
    mask: Mask
    reason: str
    is_secret: bool


def suspects(catalog: Catalog, comments: Comments | None = None) -> tuple[Suspect, ...]:
    """The suspects of every table outside PostgreSQL's own schemas, in order of schema, table and column. A partition or child is
    left out: a mask on its parent covers it."""
    found: list[Suspect] = []
    for relation in sorted(catalog.relations.values(), key=lambda each: (each.schema, each.name)):
        if relation.kind in TABLES and not relation.parents and relation.schema not in ("pg_catalog", "information_schema"):
            found += _of_table(relation, catalog, comments or {})
    return tuple(found)


def unmasked(found: Iterable[Suspect], policy: Policy) -> tuple[Suspect, ...]:
    """Those that the policy neither masks nor hides with a `deny` on their table."""
    access = policy.table_access

    def is_open(each: Suspect) -> bool:
        level = access.tables.get((each.schema, each.table)) or access.tables.get((each.schema, "*")) or access.default
        return level != "deny" and each.column not in policy.column_masks.get((each.schema, each.table), {})

    return tuple(filter(is_open, found))


def _of_table(relation: Relation, catalog: Catalog, comments: Comments) -> Iterable[Suspect]:
    for column in relation.columns:
        kind = family(column.type, catalog)
        trait, why = _trait(relation, column, kind, comments.get((relation.schema, relation.name, column.name), ""))
        if trait is None:
            continue
        mask = trait.masks.get(kind, trait.rest)
        if mask is not None:
            yield Suspect(relation.schema, relation.name, column.name, column.type, mask, why, trait.is_secret)


def _trait(relation: Relation, column: Column, kind: ValueKind, comment: str) -> tuple[Trait | None, str]:
    if column.type in ("boolean", "interval", "tsvector") or column.type.endswith("[]"):
        return None, ""
    words = words_of(column.name)
    if kind == "date" and words and words[-1] in ("at", "on", "until", "since", "expires", "expiry"):
        return None, ""  # a date of an event, not of a person
    if kind in ("integer", "uuid") and words and words[-1] in ("id", "count", "version", "length"):
        return None, ""  # an identifier or a count
    for trait in TRAITS:
        if (trait.rest is not None or kind in trait.masks) and _says(words, trait):
            return trait, trait.reason
    if words in (["name"], ["display", "name"]) and _is_about_people(relation.name) and kind == "text":
        return _NAME, _NAME.reason
    said = words_of(comment)
    if _says(said, _COMMENTED):
        return _COMMENTED, _COMMENTED.reason
    for trait in TRAITS[:4]:  # comments mention many things, so only rare words count there
        if kind in trait.masks and _says(said, trait):
            return trait, f"{trait.reason}, going by its comment"
    return None, ""


def _is_about_people(table: str) -> bool:
    return any(word.removesuffix("s") in _PEOPLE.split(", ") for word in words_of(table))


def _says(words: list[str], trait: Trait) -> bool:
    run = f" {' '.join(words)} "
    return any(f" {phrase} " in run for phrase in trait.phrases.split(", "))


def words_of(name: str) -> list[str]:
    """`customerEmail`, `customer_email` and `Customer e-mail` as words in lower case."""
    return [word.lower() for word in _WORD.findall(name)]


def family(type_: str, catalog: Catalog) -> ValueKind:
    """The family of a type as the catalog prints it; masks are offered by family (decision 10). A domain is of its base's."""
    found = _FAMILIES.get(type_)
    if found is not None:
        return found
    schema, _, name = type_.rpartition(".")
    known = catalog.types.get((schema.replace('"', ""), name.replace('"', "")))
    if known is None:
        return "other"
    if known.kind == "domain":
        return _FAMILIES.get(known.base, "other")
    return "text" if known.name == known.extension == "citext" else "other"


def mask_json(mask: Mask) -> str | dict[str, object]:
    """The mask as a policy file has it: a word where that is enough."""
    fields: dict[str, object] = msgspec.to_builtins(mask)
    if len(fields) == 1:
        return str(fields["t"])
    return {key: value for key, value in fields.items() if key == "t" or value not in (0, "•")}
