"""The policy as frozen values (decision 2). `load.py` makes them from YAML; `schema.py` prints their JSON Schema.

A Policy is what one database is held to. `Policies` is one whole policy file: what a swap replaces at once.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

Level = Literal["read", "read_write", "deny"]
TableKey = tuple[str, str]  # (schema, name); name "*" stands for every table of the schema


class TableAccess(msgspec.Struct, frozen=True):
    """The section `table_access`: a level for each key, `default` for the rest."""

    default: Level = "read"
    tables: Mapping[TableKey, Level] = {}


class Functions(msgspec.Struct, frozen=True):
    """The section `functions`."""

    allow: frozenset[TableKey] = frozenset()  # (schema, name) or (schema, "*")


class Guardrails(msgspec.Struct, frozen=True):
    """The section `guardrails`; True blocks."""

    block_unqualified_dml: bool = True
    block_ddl: bool = True
    block_dml: bool = False


class Limits(msgspec.Struct, frozen=True):
    """The section `limits`."""

    max_rows: int = 1000
    max_bytes: int = 1_048_576
    statement_timeout_ms: int = 30_000
    lock_timeout_ms: int = 3_000


class Approvals(msgspec.Struct, frozen=True):
    """Which writes need a person's approval, and how long a call is held."""

    writes: bool = False
    row_changes: bool | None = None  # None: as `writes` says
    whole_table_writes: bool | None = None
    schema_changes: bool | None = None
    hold_s: int = 20  # how long a call waits for the decision; 0: it asks and does not wait
    preview: bool = True  # count what the write would touch, for the reviewer


class Contain(msgspec.Struct, frozen=True):
    """What a tainted grant is held to, below what the policy allows."""

    writes: Literal["deny", "hold"] = "deny"
    tables: Mapping[TableKey, Literal["deny", "read"]] = {}


class Taint(msgspec.Struct, frozen=True):
    """The section `taint`: tables whose rows anybody may have written, and what a grant that has read one is held to."""

    sources: frozenset[TableKey] = frozenset()
    contain: Contain = Contain()


class FullRedact(msgspec.Struct, frozen=True, tag="full-redact", tag_field="t"):
    """`***`, whatever the value."""


class NullOut(msgspec.Struct, frozen=True, tag="null-out", tag_field="t"):
    """NULL, whatever the value."""


class ConsistentHash(msgspec.Struct, frozen=True, tag="consistent-hash", tag_field="t"):
    """The beginning of a keyed hash: equal for equal values."""


class Partial(msgspec.Struct, frozen=True, tag="partial", tag_field="t"):
    """The ends kept, the middle replaced."""

    keepStart: int = 0  # noqa: N815 - the policy file's key
    keepEnd: int = 0  # noqa: N815 - the policy file's key
    glyph: str = "•"


class Generalize(msgspec.Struct, frozen=True, tag="generalize", tag_field="t"):
    """A date cut off, or a number rounded down."""

    granularity: Literal["year", "month", "day"] | int | float  # a unit for dates, a width above 0 for numbers


class Pseudonymize(msgspec.Struct, frozen=True, tag="pseudonymize", tag_field="t"):
    """An entry of a dictionary, chosen by a keyed hash."""

    kind: Literal["email", "name", "phone"]


class Noise(msgspec.Struct, frozen=True, tag="noise", tag_field="t"):
    """The number off by at most `ratio`."""

    ratio: float


Mask = FullRedact | NullOut | ConsistentHash | Partial | Generalize | Pseudonymize | Noise


class Policy(msgspec.Struct, frozen=True):
    """What one database is held to."""

    table_access: TableAccess = TableAccess()
    functions: Functions = Functions()
    guardrails: Guardrails = Guardrails()
    limits: Limits = Limits()
    approvals: Approvals = Approvals()
    column_masks: Mapping[TableKey, Mapping[str, Mask]] = {}
    mask_source_rewrite: bool | None = None  # None: as GATEWAY_MASK_SOURCE_REWRITE says
    taint: Taint | None = None  # None: nothing taints, and nothing is contained

    @property
    def hides_something(self) -> bool:
        """Whether any table is denied or masked. Then definitions and statistics are not shown either."""
        access = self.table_access
        return access.default == "deny" or "deny" in access.tables.values() or bool(self.column_masks)


class Named(msgspec.Struct, frozen=True):
    """One entry of `databases:`."""

    name: str
    url: str  # ${VAR} already replaced: a secret
    policy: Policy
    sections: frozenset[str] = frozenset()  # sections present in this entry
    limits: Mapping[str, int] = {}  # as written here; `policy.limits` has them over the file's `limits`

    def __repr__(self) -> str:
        """Without the url: a Named may end up in a log or a traceback."""
        return f"Named(name={self.name!r}, policy={self.policy!r})"


class Policies(msgspec.Struct, frozen=True):
    """A whole policy file. Single-database shape: `databases` is None and `single` speaks; else the other way round."""

    single: Policy | None = None
    databases: tuple[Named, ...] | None = None
    sections: frozenset[str] = frozenset()  # top-level sections present in the text: an omitted one keeps its value on reload
    public_urls: tuple[str, ...] = ()
    limits: Mapping[str, int] = {}  # top-level limits as written
