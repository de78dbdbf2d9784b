"""What a valid policy leaves open that was perhaps not meant, and what to do about it (decision 14). Pure.

Rules that need only the policy, then rules that hold its names against a catalog. A finding is advice: nothing here changes
what is decided.
"""

import difflib
from collections.abc import Iterable, Iterator
from typing import Final

from gatewayd.catalog import Catalog, Relation
from gatewayd.policy.decide import access
from gatewayd.policy.decide.guardrails import classes_held
from gatewayd.policy.file.model import Level, Limits, Policy, TableKey
from gatewayd.policy.file.problem import Path
from gatewayd.policy.tools.draft import READABLE, SYSTEM
from gatewayd.policy.tools.finding import Finding, Severity
from gatewayd.policy.tools.lint_taint import containment
from gatewayd.policy.tools.sensitive import Suspect, suspects, unmasked
from gatewayd.sql.builtins.lookup import Clearance

RANK: Final[dict[Severity, int]] = {"low": 0, "medium": 1, "high": 2}
NAMED: Final = 5

# limit, above which value it is remarked upon, why
_HUGE: Final = (
    ("max_rows", 10_000, "an agent drowns in so many rows, and a leak has no bound"),
    ("max_bytes", 16 * 1024 * 1024, "each call may hold so much memory here and in the agent"),
    ("statement_timeout_ms", 300_000, "a runaway statement burdens the database for so long"),
    ("lock_timeout_ms", 30_000, "a write that waits for a lock makes others wait behind it"),
)


def lint(policy: Policy, catalog: Catalog | None = None) -> tuple[Finding, ...]:
    """Findings, the gravest first, else in the order of the policy file. Without a catalog the names are taken as they stand."""
    found = [*_posture(policy), *_keys(policy, catalog), *_limits(policy), *_approvals(policy)]
    found += containment(policy, catalog)
    if catalog is not None:
        found += [
            *_against(policy, catalog),
            *_views(policy, catalog),
            *_listed_functions(policy, catalog),
            *_bare_columns(policy, catalog),
        ]
    return tuple(sorted(found, key=lambda finding: -RANK[finding.severity]))


# --- the policy alone


def _posture(policy: Policy) -> Iterator[Finding]:
    tables = policy.table_access
    default: Path = ("table_access", "default")
    writable = tables.default == "read_write" or "read_write" in tables.tables.values()
    if tables.default == "read_write":
        yield Finding(
            "high",
            default,
            "default is read_write: every table can be written, also those made later",
            "set read or deny, and name the tables to be written",
        )
    elif tables.default == "read":
        hidden = "deny" in tables.tables.values() or bool(policy.column_masks)
        if not hidden:
            yield Finding(
                "medium",
                default,
                "every table and column can be read: nothing is denied or masked",
                "deny what agents should not see, or set default: deny and list what they may",
            )
        else:
            yield Finding(
                "low",
                default,
                "default is read: a table made later is readable at once",
                "set default: deny and list what may be read",
            )
    for flag, what in (("block_unqualified_dml", "UPDATE and DELETE without WHERE"), ("block_ddl", "DROP, TRUNCATE and ALTER")):
        if not getattr(policy.guardrails, flag):
            severity: Severity = "high" if writable else "low"
            where = "on the tables that can be written" if writable else "as soon as a table can be written"
            yield Finding(severity, ("guardrails", flag), f"{what} may run {where}", f"set {flag}: true")
    if not writable and not policy.guardrails.block_dml:
        yield Finding(
            "low",
            ("guardrails", "block_dml"),
            "no table can be written, and only the levels say so",
            "set block_dml: true as a second wall",
        )


def _keys(policy: Policy, catalog: Catalog | None) -> Iterator[Finding]:
    for (schema, name), level in policy.table_access.tables.items():
        path = _table_path(schema, name)
        if name == "*" and level == "read_write":
            yield Finding(
                "medium", path, f"every table of schema {schema} can be written, also those made later", "name the tables instead"
            )
        if schema == "pg_catalog" and level != "deny":
            known = access.reviewed(name, None) if name != "*" else None
            if known is not None and known.clearance is Clearance.REFUSED:
                yield Finding("high", path, f"opens a relation of PostgreSQL that {known.reason}", "leave the key out")
        if catalog is None and f"{schema}.{name}" != f"{schema}.{name}".lower():
            yield _folded(path, f"{schema}.{name}", level)
    for schema, name in sorted(policy.functions.allow):
        if name == "*":
            yield Finding(
                "medium",
                ("functions", "allow"),
                f"{schema}.* allows every function of the schema, also volatile ones and those made later",
                "name the functions whose code you know",
            )
    for table, columns in policy.column_masks.items():
        if policy.table_access.tables.get(table) == "deny":
            yield Finding(
                "low",
                _mask_path(table),
                f"masks {len(columns)} columns of a table that is denied anyway",
                "leave one of the two out",
            )


def _folded(path: Path, name: str, level: Level) -> Finding:
    bare = name.rpartition(".")[2]
    open_now = "; as it is, that table is not denied" if level == "deny" else ""
    return Finding(
        "medium",
        path,
        f'has capital letters: it means the table that SQL writes as "{bare}", in double quotes, and no other',
        f"write {name.lower()} if the table was made without double quotes (PostgreSQL stores small letters then){open_now}",
    )


def _limits(policy: Policy) -> Iterator[Finding]:
    for name, most, why in _HUGE:
        value = getattr(policy.limits, name)
        if value > most:
            usual = getattr(Limits(), name)
            yield Finding("medium", ("limits", name), f"{name} is {value}: {why}", f"at most {most}; {usual} when left out")


def _approvals(policy: Policy) -> Iterator[Finding]:
    held = classes_held(policy.approvals)
    if not held:
        return
    access_ = policy.table_access
    if policy.guardrails.block_dml or (access_.default != "read_write" and "read_write" not in access_.tables.values()):
        yield Finding(
            "low", ("approvals",), "no write is permitted, so none waits for a person", "leave approvals out, or permit writes"
        )
        return
    if "row_changes" in held and "whole_table_writes" not in held and not policy.guardrails.block_unqualified_dml:
        yield Finding(
            "medium",
            ("approvals", "whole_table_writes"),
            "changes of some rows wait for a person, and writes of whole tables do not",
            "set whole_table_writes: true, or guardrails.block_unqualified_dml: true",
        )
    if not policy.approvals.preview:
        yield Finding(
            "low",
            ("approvals", "preview"),
            "reviewers do not see how many rows a write would touch",
            "set preview: true; without a count there is no bound to set on rows",
        )


# --- against a catalog


def _against(policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    """Keys that match nothing. A deny that protects no table is worse than none, because people rely on it."""
    names = {(each.schema, each.name) for each in catalog.relations.values()}
    schemas = {schema for schema, _ in names}
    folded: dict[str, list[str]] = {}
    for each in catalog.relations.values():
        if each.kind in READABLE:
            folded.setdefault(each.qualified.lower(), []).append(each.qualified)
    for (schema, name), level in policy.table_access.tables.items():
        path = _table_path(schema, name)
        for other in folded.get(f"{schema}.{name}".lower(), ()):
            key = tuple(other.split(".", 1))
            if other != f"{schema}.{name}" and (schema, name) in names and key not in policy.table_access.tables:
                yield Finding(
                    "medium",
                    path,
                    f"{other} is another table, and this key does not speak about it",
                    f'give "{other}" a key of its own',
                )
        if schema in SYSTEM or (name == "*" and schema in schemas) or (schema, name) in names:
            continue
        protects = level == "deny"
        what = f"no schema {schema} is there" if name == "*" else f"no table {schema}.{name} is there"
        yield Finding(
            "high" if protects else "medium",
            path,
            f"{what}, so this key {'protects' if protects else 'opens'} nothing",
            _meant(schema, name, catalog) or "leave it out, or correct its spelling",
        )


def _meant(schema: str, name: str, catalog: Catalog) -> str:
    """What the key may have been meant to say."""
    if name == "*":
        close = difflib.get_close_matches(schema, sorted({each.schema for each in catalog.relations.values()} - set(SYSTEM)), n=1)
        return f'write "{close[0]}.*" if that is meant' if close else ""
    elsewhere = sorted(each.qualified for each in catalog.relations.values() if each.name == name and each.schema not in SYSTEM)
    if elsewhere:
        return f'write "{elsewhere[0]}": a table of that name is there'
    own = [each.qualified for each in catalog.relations.values() if each.schema not in SYSTEM and each.kind in READABLE]
    folded = [each for each in own if each.lower() == f"{schema}.{name}".lower()]
    close = folded or difflib.get_close_matches(f"{schema}.{name}", own, n=1)
    return f'write "{close[0]}" if that is meant' if close else ""


def _views(policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    """A view's own key shows parts of tables that are denied: intended in most cases, and worth checking."""
    tables = policy.table_access
    for (schema, name), level in tables.tables.items():
        view = catalog.relation(schema, name)
        if level == "deny" or view is None or view.kind not in ("view", "materialized view"):
            continue
        denied = [each for each in _reached(view, catalog) if access.resolve(tables, each.schema, each.name).level == "deny"]
        if denied:
            yield Finding(
                "medium",
                _table_path(schema, name),
                f"{view.kind} {view.qualified} shows something of {_listed(each.qualified for each in denied)}, which is denied",
                "look at what it shows; without a key of its own the view is denied like its tables",
            )
            if view.kind == "view" and not view.is_barrier:
                yield Finding(
                    "medium",
                    _table_path(schema, name),
                    f"view {view.qualified} is no security barrier, so it is read behind a fence: PostgreSQL would run a query's "
                    "conditions on rows that the view leaves out. Behind the fence no index serves those conditions",
                    f"ALTER VIEW {view.qualified} SET (security_barrier)",
                )


def _reached(view: Relation, catalog: Catalog) -> Iterable[Relation]:
    seen: dict[int, Relation] = {}
    todo = list(view.reads)
    while todo:
        relation = catalog.by_oid.get(todo.pop())
        if relation is not None and relation.oid not in seen and relation.schema not in SYSTEM:
            seen[relation.oid] = relation
            todo += relation.reads
    return sorted(seen.values(), key=lambda each: each.qualified)


def _listed_functions(policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    path: Path = ("functions", "allow")
    for schema, name in sorted(policy.functions.allow):
        matching = [each for each in catalog.functions.values() if each.schema == schema and name in ("*", each.name)]
        if not matching:
            yield Finding("low", path, f"no function {schema}.{name} is there", "leave it out, or correct its spelling")
        definers = sorted({each.name for each in matching if each.security_definer})
        if definers:
            yield Finding(
                "medium",
                path,
                f"{schema}.{_listed(definers)} runs with its owner's rights (SECURITY DEFINER), past those of gatewayd's role",
                "read its code, or leave it out",
            )


def _bare_columns(policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    by_table: dict[tuple[TableKey, bool], list[Suspect]] = {}
    for each in unmasked(suspects(catalog), policy):
        by_table.setdefault(((each.schema, each.table), each.is_secret), []).append(each)
    for (table, is_secret), columns in by_table.items():
        names = _listed(each.column for each in columns)
        kinds = "secrets" if is_secret else "personal data"
        yield Finding(
            "high" if is_secret else "medium",
            _mask_path(table),
            f"{'.'.join(table)} can be read, and {names} look{'s' if len(columns) == 1 else ''} like {kinds}",
            "mask them (gatewayd policy suggest-masks), or deny the table",
        )


def _listed(names: Iterable[str]) -> str:
    """The first few names."""
    every = list(names)
    return ", ".join(every[:NAMED]) + (", ..." if len(every) > NAMED else "")


def _table_path(schema: str, name: str) -> Path:
    return "table_access", "tables", f"{schema}.{name}"


def _mask_path(table: TableKey) -> Path:
    return "column_masks", ".".join(table)
