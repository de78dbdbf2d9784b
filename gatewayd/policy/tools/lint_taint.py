"""What a policy's containment leaves open (docs/policy.md, Containment). Pure."""

from collections.abc import Iterator
from typing import Final

from gatewayd.catalog import Catalog
from gatewayd.policy.decide.access import RANK, resolve
from gatewayd.policy.file.model import Policy, TableKey
from gatewayd.policy.file.problem import Path
from gatewayd.policy.tools.finding import Finding

_SOURCES: Final[Path] = ("taint", "sources")


def containment(policy: Policy, catalog: Catalog | None) -> Iterator[Finding]:
    """Findings about the policy's sources of foreign text and its containment."""
    if policy.taint is None:
        return
    levels, contain = policy.table_access, policy.taint.contain
    for key in sorted(policy.taint.sources):
        if resolve(levels, *key).level == "deny":
            yield Finding("low", _SOURCES, f"{'.'.join(key)} cannot be read anyway", "leave it out, or permit reading it")
        elif catalog is not None and not _is_there(key, catalog):
            yield Finding(
                "high", _SOURCES, f"no table {'.'.join(key)} is there, so nobody is tainted by it", "correct its spelling"
            )
    for key, level in sorted(contain.tables.items()):
        path: Path = ("taint", "contain", "tables", ".".join(key))
        if RANK[resolve(levels, *key).level] <= RANK[level]:
            yield Finding("low", path, f"its level is not above {level} anyway, so nothing is contained", "leave it out")
        elif catalog is not None and not _is_there(key, catalog):
            yield Finding(
                "high", path, f"no table {'.'.join(key)} is there, so this key protects nothing", "correct its spelling"
            )
    for key in sorted(policy.taint.sources & contain.tables.keys()):
        if contain.tables[key] == "deny":
            yield Finding(
                "medium",
                ("taint", "contain", "tables", ".".join(key)),
                "it is a source as well: a statement that reads it counts as tainted, so nobody can read it",
                "leave one of the two out",
            )
    for schema, name in sorted(policy.functions.allow):
        if policy.taint.sources:
            yield Finding(
                "low",
                ("functions", "allow"),
                f"a function that is not IMMUTABLE counts as reading a source, so {schema}.{name} may taint who calls it",
                "declare it IMMUTABLE where it looks at no table",
            )


def _is_there(key: TableKey, catalog: Catalog) -> bool:
    schema, name = key
    if name == "*":
        return any(each.schema == schema for each in catalog.relations.values())
    return catalog.relation(schema, name) is not None
