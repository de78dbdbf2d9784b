"""From a relation's name to its level, by the names in the policy alone (decision 2).

First match wins: `information_schema`, the exact key, `schema.*`, the default. What needs the catalog (views, partitions, which
schema a bare name means) is in `relation_rules.py`."""

from typing import Final, Literal

import msgspec

from gatewayd.policy.file.model import Level, TableAccess
from gatewayd.sql.builtins import lookup as builtins

PERMITS: Final[dict[Level, str]] = {
    "deny": "permits neither reads nor writes",
    "read": "permits reads, not writes",
    "read_write": "permits reads and writes",
}
RANK: Final[dict[Level, int]] = {"deny": 0, "read": 1, "read_write": 2}


class Resolved(msgspec.Struct, frozen=True, gc=False):
    """The level of one relation, and `label`: what gave it, as dry-run's matched_rule prints it (decision 7)."""

    level: Level
    label: str
    source: Literal["carved out", "exact", "schema", "default", "system"]
    why: str = ""  # set for `system`: why the names in the policy do not open it

    @property
    def is_exact(self) -> bool:
        return self.source == "exact"


def resolve(access: TableAccess, schema: str, name: str, columns: frozenset[str] | None = None) -> Resolved:
    """The level that the policy's names give `schema.name`. `columns` are those that are read, None where that is not known.

    Temporary and TOAST schemas are closed to every key. A relation of `pg_catalog` that is not on the reviewed list of
    `sql/builtins/lookup.py` opens for its own exact key only.
    """
    if schema == "information_schema" and name not in builtins.INFORMATION_SCHEMA_PASSWORDS:
        return Resolved("read", "information_schema:read", "carved out")
    if schema.startswith("pg_") and schema != "pg_catalog":
        return Resolved("deny", "table_access", "system", "temporary and TOAST schemas are never accessible")
    exact = access.tables.get((schema, name)) if name != "*" else None  # a relation may be called "*"; the key means all
    if exact is not None:
        return Resolved(exact, f"table:{schema}.{name}→{exact}", "exact")
    if schema == "information_schema":  # information_schema is always open but for these: passwords are not schema discovery
        return Resolved("deny", "table_access", "system", "it shows passwords of user mappings")
    if schema == "pg_catalog":
        known = reviewed(name, columns)
        if known.clearance is builtins.Clearance.REFUSED:
            return Resolved("deny", "table_access", "system", f"it {known.reason}")
    whole = access.tables.get((schema, "*"))
    if whole is not None:
        return Resolved(whole, f"table:{schema}.*→{whole}", "schema")
    return Resolved(access.default, f"default:{access.default}", "default")


def reviewed(name: str, columns: frozenset[str] | None) -> builtins.Builtin:
    """The verdict on reading a relation of pg_catalog, or only these columns of it."""
    known = builtins.relation(name)
    if known is None:
        return builtins.Builtin(builtins.Clearance.REFUSED, "is not on the reviewed list of pg_catalog relations")
    if known.columns and columns is not None and not columns & known.columns:
        return builtins.ALLOWED
    return known


def strictest(candidates: list[Resolved]) -> Resolved:
    """The lowest level among them; the first one where several are equally low."""
    return min(candidates, key=lambda resolved: RANK[resolved.level])
