"""The shape of a policy file: its keys, ranges and words, once. `load.py` reads by it, `schema.py` prints it as JSON Schema."""

from collections.abc import Mapping
from typing import Final, get_args

import msgspec

from gatewayd.policy.file import name_forms as names
from gatewayd.policy.file.features import FEATURES
from gatewayd.policy.file.model import Approvals, Guardrails, Level, Limits
from gatewayd.policy.file.name_forms import NameForm


class Flag(msgspec.Struct, frozen=True):
    """true or false."""

    expected = "true or false"
    doc: str = ""


class Integer(msgspec.Struct, frozen=True):
    """A whole number from `low` to `high`."""

    low: int
    high: int
    doc: str = ""

    @property
    def expected(self) -> str:
        return f"a whole number from {self.low} to {self.high}"


class Ratio(msgspec.Struct, frozen=True):
    """A number above 0, at most `high` when there is one."""

    high: int | None = None
    doc: str = ""

    @property
    def expected(self) -> str:
        return "a number above 0" + (f", at most {self.high}" if self.high is not None else "")


class Choice(msgspec.Struct, frozen=True):
    """One of a few words."""

    words: tuple[str, ...]
    doc: str = ""

    @property
    def expected(self) -> str:
        return self.words[0] if len(self.words) == 1 else f"{', '.join(self.words[:-1])} or {self.words[-1]}"


class Text(msgspec.Struct, frozen=True):
    """A text of a certain form."""

    form: NameForm
    doc: str = ""

    @property
    def expected(self) -> str:
        return self.form.expected


class Address(msgspec.Struct, frozen=True):
    """A database's url: a secret, never quoted in a problem."""

    expected = "an address such as ${DATABASE_URL_MAIN}"
    doc: str = ""


class Each(msgspec.Struct, frozen=True):
    """A list whose items have one shape."""

    item: "Shape"
    least: int = 0
    doc: str = ""
    expected: str = "a list"


class KeyedObject(msgspec.Struct, frozen=True):
    """A mapping whose keys are names of one form."""

    key: NameForm
    value: "Shape"
    doc: str = ""

    @property
    def expected(self) -> str:
        return f"a mapping of {self.key.expected}"


class Object(msgspec.Struct, frozen=True):
    """A mapping with known keys."""

    fields: Mapping[str, "Shape"]
    required: frozenset[str] = frozenset()
    doc: str = ""

    @property
    def expected(self) -> str:
        return f"a mapping of {', '.join(self.fields)}"


class MaskRule(msgspec.Struct, frozen=True):
    """A word, or {t: word, …} with the fields of that word (decision 10)."""

    rules: Mapping[str, Object]
    doc: str = ""

    @property
    def expected(self) -> str:
        return f"one of {', '.join(self.rules)}"


class Either(msgspec.Struct, frozen=True):
    """A word, or a number."""

    choice: Choice
    number: Ratio
    doc: str = ""

    @property
    def expected(self) -> str:
        return f"{', '.join(self.choice.words)} or {self.number.expected}"


Shape = Flag | Integer | Ratio | Choice | Text | Address | Each | KeyedObject | Object | MaskRule | Either

LEVELS: Final = Choice(get_args(Level), "read: SELECT only; read_write: also writes; deny: nothing")

MASK: Final = MaskRule(
    {
        "full-redact": Object({}, doc="*** instead of the value"),
        "null-out": Object({}, doc="NULL instead of the value"),
        "consistent-hash": Object({}, doc="32 hex digits, equal for equal values"),
        "partial": Object(
            {
                "keepStart": Integer(0, 1000, "characters kept at the start"),
                "keepEnd": Integer(0, 1000, "characters kept at the end"),
                "glyph": Text(names.GLYPH, "what stands for each other character; • when left out"),
            },
            doc="the ends of a text, the rest covered",
        ),
        "generalize": Object(
            {"granularity": Either(Choice(("year", "month", "day")), Ratio(), "a unit for dates, a width for numbers")},
            frozenset({"granularity"}),
            "a date cut to a unit, or a number cut to a multiple of a width",
        ),
        "pseudonymize": Object(
            {"kind": Choice(("email", "name", "phone"))}, frozenset({"kind"}), "an invented value, the same one for equal values"
        ),
        "noise": Object({"ratio": Ratio(1)}, frozenset({"ratio"}), "the number, off by at most this share of itself"),
    },
    "how the column's values are masked",
)

_GUARDRAILS: Final = {
    "block_unqualified_dml": "refuse UPDATE and DELETE without WHERE",
    "block_ddl": "refuse DROP, TRUNCATE and ALTER",
    "block_dml": "refuse every INSERT, UPDATE, DELETE and MERGE",
}
_LIMITS: Final = {
    "max_rows": (10_000_000, "rows of one answer"),
    "max_bytes": (268_435_456, "bytes of row text of one answer"),
    "statement_timeout_ms": (86_400_000, "longest run of one statement"),
    "lock_timeout_ms": (86_400_000, "longest wait for one lock"),
}
LIMITS: Final = Object(
    {key: Integer(1, high, f"{doc}; {getattr(Limits(), key)} when left out") for key, (high, doc) in _LIMITS.items()},
    doc="what one answer and one statement may take",
)

SECTIONS: Final[Mapping[str, Shape]] = {
    "table_access": Object(
        {
            "default": Choice(LEVELS.words, "level of every table without a key of its own; read when left out"),
            "tables": KeyedObject(names.TABLE, LEVELS, "levels by table: name (schema public), schema.name, or schema.*"),
        },
        doc="who may read and write what; information_schema is always readable",
    ),
    "functions": Object(
        {"allow": Each(Text(names.FUNCTION), doc="user-defined functions that agents may call: schema.name or schema.*")},
        doc="functions beyond the built-in ones that gatewayd knows to be harmless",
    ),
    "guardrails": Object(
        {key: Flag(f"{doc}; {str(getattr(Guardrails(), key)).lower()} when left out") for key, doc in _GUARDRAILS.items()},
        doc="refusals that hold also where table_access allows",
    ),
    "limits": LIMITS,
    "column_masks": KeyedObject(names.MASKED_TABLE, KeyedObject(names.COLUMN, MASK), "masks by table, then by column"),
    "mask_source_rewrite": Flag("mask inside the query instead of its result; as GATEWAY_MASK_SOURCE_REWRITE says when left out"),
    "approvals": Object(
        {
            "writes": Flag("hold every write until a human approves it; false when left out"),
            "row_changes": Flag("writes of rows; as `writes` when left out"),
            "whole_table_writes": Flag("writes of a whole table; as `writes` when left out"),
            "schema_changes": Flag("changes of the schema; as `writes` when left out"),
            "hold_s": Integer(0, 50, f"seconds a call waits for the decision; {Approvals().hold_s} when left out"),
            "preview": Flag("count what the write would touch, for the reviewer; true when left out"),
        },
        doc="writes that wait for a human; needs GATEWAY_APPROVAL_URL",
    ),
    "taint": Object(
        {
            "sources": Each(Text(names.TABLE), doc="tables with text that anybody may have written: who reads one is tainted"),
            "contain": Object(
                {
                    "writes": Choice(
                        ("deny", "hold"), "writes of a tainted grant: denied, or held for a human; deny when left out"
                    ),
                    "tables": KeyedObject(
                        names.TABLE, Choice(("deny", "read")), "tables by the level that a tainted grant has at most"
                    ),
                },
                doc="what a tainted grant is held to",
            ),
        },
        doc="containment: after reading text that may steer it, an agent may do less until a person clears it",
    ),
}

_COMMON: Final[Mapping[str, Shape]] = {
    "requires_features": Each(
        Choice(tuple(FEATURES)), doc="features this file relies on: a gatewayd without one refuses the file"
    ),
    "public_urls": Each(Text(names.PUBLIC_URL), doc="addresses of hosted agents"),
}
DATABASE: Final = Object(
    {
        "name": Text(names.DATABASE, "how agents call this database"),
        "url": Address("connection string; ${NAME} is replaced from the environment or a credential file"),
        "dialect": Choice(("postgres",)),
        **SECTIONS,
    },
    frozenset({"name", "url"}),
    "one database and the policy it is held to",
)

LINKED_DATABASE: Final = Object(
    {key: field for key, field in DATABASE.fields.items() if key != "url"},
    frozenset({"name"}),
    "one database of a bundle: its address stays on the gateway's machine",
)

SINGLE: Final = Object({**_COMMON, **SECTIONS}, doc="policy of the database in DATABASE_URL")
SEVERAL: Final = Object(
    {**_COMMON, "limits": LIMITS, "databases": Each(DATABASE, 1, "the databases, each with its own sections")},
    frozenset({"databases"}),
    "policies of several databases",
)
LINKED: Final = Object(
    {**SEVERAL.fields, "databases": Each(LINKED_DATABASE, 1, "the databases, each with its own sections, without addresses")},
    frozenset({"databases"}),
    "policies of a bundle",
)
