"""Old policy, new policy: what a reload makes of them and what its audit rows say (decisions 4, 7). Values in, values out.

A reload is: load the body, `replace(current, body)`, commit one POLICY_RELOADED row per `DatabaseChange`, swap the reference.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec

from gatewayd.policy.file.model import Approvals, Guardrails, Limits, Named, Policies, Policy, TableAccess, TableKey, Taint
from gatewayd.policy.file.problem import PolicyErrors, Problem
from gatewayd.policy.file.shape import SECTIONS

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class DatabaseChange(msgspec.Struct, frozen=True):
    """The parts of one POLICY_RELOADED payload that differ by database, under the payload's own names."""

    database: str
    table_access: Json  # {default, tables}; None when the swap carried none
    sections_changed: tuple[str, ...]
    guardrails: Json
    diff: Json  # section -> its changes; None for a section that did not change, a new or removed database


class Replacement(msgspec.Struct, frozen=True):
    """What a body makes of the current policies: the policies to swap in and the rows to write first.

    `databases_changed` names every database the swap touches, removed ones last.
    """

    policies: Policies
    databases_changed: tuple[str, ...]
    changes: tuple[DatabaseChange, ...]


def replace(current: Policies, body: Policies, *, single_name: str) -> Replacement:
    """The current policies with the body's sections; an omitted section keeps its value, an omitted database goes.

    `single_name` is what the database of a single-database policy is called in the audit.
    Raises PolicyErrors for a body of the other shape, and for a single-database body without table_access.
    """
    if (current.databases is None) != (body.databases is None):
        found, expected = ("several databases", "one") if current.databases is None else ("one database", "several")
        raise _refused(f"found a policy of {found}; expected the shape started with, that of {expected}")
    public_urls = body.public_urls if "public_urls" in body.sections else current.public_urls
    limits = body.limits if "limits" in body.sections else current.limits
    if current.databases is None or body.databases is None:
        if "table_access" not in body.sections:
            raise _refused("found no table_access; expected one (without it every table would be readable)")
        assert current.single is not None
        assert body.single is not None
        single = _with_sections(current.single, body.single, body.sections)
        change = _change(single_name, current.single, single, body.sections)
        policies = msgspec.structs.replace(
            current, single=single, sections=current.sections | body.sections, public_urls=public_urls, limits=limits
        )
        return Replacement(policies, (single_name,), (change,))

    before = {named.name: named for named in current.databases}
    databases = tuple(_merged(before.get(named.name), named, limits) for named in body.databases)
    removed = [named for name, named in before.items() if name not in {named.name for named in databases}]
    changes = [
        _change(new.name, before[new.name].policy if new.name in before else None, new.policy, given.sections)
        for given, new in zip(body.databases, databases, strict=True)
    ]
    changes += [DatabaseChange(old.name, None, (), guardrails_json(old.policy.guardrails), diff(None, None)) for old in removed]
    policies = Policies(databases=databases, sections=current.sections | body.sections, public_urls=public_urls, limits=limits)
    return Replacement(policies, tuple(change.database for change in changes), tuple(changes))


def replace_whole(current: Policies, whole: Policies) -> Replacement:
    """`whole` as it is, whatever was before: a section that it leaves out has its default. Both of the shape with databases."""
    before = {named.name: named for named in current.databases or ()}
    databases = whole.databases or ()
    names = {named.name for named in databases}
    every = frozenset(SECTIONS)
    changes = [_change(new.name, before[new.name].policy if new.name in before else None, new.policy, every) for new in databases]
    changes += [
        DatabaseChange(old.name, None, (), guardrails_json(old.policy.guardrails), diff(None, None))
        for name, old in before.items()
        if name not in names
    ]
    return Replacement(whole, tuple(change.database for change in changes), tuple(changes))


def _refused(message: str) -> PolicyErrors:
    return PolicyErrors([Problem("", 0, message)])


def _with_sections(old: Policy, new: Policy, sections: frozenset[str]) -> Policy:
    return msgspec.structs.replace(old, **{section: getattr(new, section) for section in SECTIONS if section in sections})


def _merged(old: Named | None, new: Named, shared: Mapping[str, int]) -> Named:
    """A database's entry over what it was. Its limits are laid over the file's anew: either may have come from before."""
    if old is None:
        own, policy, sections = new.limits, new.policy, new.sections
    else:
        own = new.limits if "limits" in new.sections else old.limits
        policy, sections = _with_sections(old.policy, new.policy, new.sections), old.sections | new.sections
    policy = msgspec.structs.replace(policy, limits=Limits(**{**shared, **own}))
    return Named(name=new.name, url=new.url, policy=policy, sections=sections, limits=own)


def _change(database: str, old: Policy | None, new: Policy, given: frozenset[str]) -> DatabaseChange:
    return DatabaseChange(
        database=database,
        table_access=table_access_json(new.table_access) if "table_access" in given else None,
        sections_changed=sections_changed(old, new),
        guardrails=guardrails_json(new.guardrails),
        diff=diff(old, new),
    )


def sections_changed(old: Policy | None, new: Policy) -> tuple[str, ...]:
    """The sections whose effective value differs, in the file's order. A new database is compared with the policy of no file."""
    before = old if old is not None else Policy()
    return tuple(section for section in SECTIONS if _section_json(before, section) != _section_json(new, section))


def diff(old: Policy | None, new: Policy | None) -> Json:
    """{section: what changed in it}, None for a section that did not; all None for a database that was or is not there."""
    changes: dict[str, Json] = dict.fromkeys(SECTIONS)
    if old is None or new is None:
        return changes
    for section in sections_changed(old, new):
        if section == "table_access":
            changes[section] = _table_access_diff(old.table_access, new.table_access)
        else:
            changes[section] = _leaves_diff(_section_json(old, section), _section_json(new, section))
    return changes


def _table_access_diff(old: TableAccess, new: TableAccess) -> Json:
    before, after = tables_json(old.tables), tables_json(new.tables)
    changed: dict[str, Json] = {
        table: {"from": before[table], "to": level} for table, level in after.items() if before.get(table, level) != level
    }
    default: dict[str, Json] = {} if old.default == new.default else {"default": {"from": old.default, "to": new.default}}
    return {
        **default,
        "tables_added": {table: level for table, level in after.items() if table not in before},
        "tables_removed": {table: level for table, level in before.items() if table not in after},
        "tables_changed": changed,
    }


def _leaves_diff(old: Json, new: Json) -> Json:
    """{dotted leaf: {from, to}}; a section that is one leaf gives {from, to} itself. None stands for a leaf that is not there."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return {"from": old, "to": new}
    before, after = dict(_leaves(old, ())), dict(_leaves(new, ()))
    return {
        ".".join(path): {"from": before.get(path), "to": after.get(path)}
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    }


def _leaves(value: dict[str, Json], path: tuple[str, ...]) -> list[tuple[tuple[str, ...], Json]]:
    found: list[tuple[tuple[str, ...], Json]] = []
    for key, inner in value.items():
        # A mask is one leaf: half of a mask says nothing.
        if isinstance(inner, dict) and not isinstance(inner.get("t"), str):
            found += _leaves(inner, (*path, key))
        else:
            found.append(((*path, key), inner))
    return found


_HASH_DIGITS: Final = 16


def policy_hash(policy: Policy) -> str:
    """The first 16 hex digits of `policy_sha256`."""
    return policy_sha256(policy)[:_HASH_DIGITS]


def policy_sha256(policy: Policy) -> str:
    """64 hex digits over the whole effective policy: equal however its text was ordered or which defaults it spelt out."""
    effective = {section: _section_json(policy, section) for section in SECTIONS}
    effective["approvals"] = _as_hashed(policy.approvals)
    if policy.taint is None:  # came later: the hash of a policy without it stays
        del effective["taint"]
    return hashlib.sha256(msgspec.json.encode(effective, order="sorted")).hexdigest()


def table_access_json(access: TableAccess) -> Json:
    """{default, tables}: the effective table access, each key with its schema."""
    return {"default": access.default, "tables": dict(tables_json(access.tables))}


def guardrails_json(guardrails: Guardrails) -> Json:
    """All three flags, always."""
    return {name: getattr(guardrails, name) for name in guardrails.__struct_fields__}


def tables_json(tables: Mapping[TableKey, str]) -> dict[str, str]:
    """Each key as `schema.name` with its level."""
    return {f"{schema}.{name}": level for (schema, name), level in sorted(tables.items())}


def _section_json(policy: Policy, section: str) -> Json:
    """The section as JSON values, defaults filled in and what follows another key resolved."""
    match section:
        case "table_access":
            return table_access_json(policy.table_access)
        case "functions":
            return {"allow": [f"{schema}.{name}" for schema, name in sorted(policy.functions.allow)]}
        case "guardrails":
            return guardrails_json(policy.guardrails)
        case "limits":
            return {name: getattr(policy.limits, name) for name in policy.limits.__struct_fields__}
        case "approvals":
            return _approvals_json(policy.approvals)
        case "column_masks":
            return {
                f"{schema}.{table}": {column: _mask_json(mask) for column, mask in sorted(columns.items())}
                for (schema, table), columns in sorted(policy.column_masks.items())
            }
        case "mask_source_rewrite":
            return policy.mask_source_rewrite
        case "taint":
            return _taint_json(policy.taint) if policy.taint is not None else None
    raise AssertionError(f"{section} is a section without a JSON form")


def _approvals_json(approvals: Approvals) -> dict[str, Json]:
    classes: dict[str, Json] = {
        name: value if (value := getattr(approvals, name)) is not None else approvals.writes
        for name in ("row_changes", "whole_table_writes", "schema_changes")
    }
    return {"writes": approvals.writes, **classes, "hold_s": approvals.hold_s, "preview": approvals.preview}


def _taint_json(taint: Taint) -> dict[str, Json]:
    tables: dict[str, Json] = dict(tables_json(taint.contain.tables))
    sources: list[Json] = [f"{schema}.{name}" for schema, name in sorted(taint.sources)]
    return {"sources": sources, "contain": {"writes": taint.contain.writes, "tables": tables}}


def _as_hashed(approvals: Approvals) -> Json:
    """Without the keys that came later, where they have their defaults: the hash of a policy that does not use them stays."""
    unset = {name for name in ("hold_s", "preview") if getattr(approvals, name) == getattr(Approvals(), name)}
    return {name: value for name, value in _approvals_json(approvals).items() if name not in unset}


def _mask_json(mask: msgspec.Struct) -> Json:
    fields: dict[str, Json] = msgspec.to_builtins(mask)
    return {key: int(value) if isinstance(value, float) and value.is_integer() else value for key, value in fields.items()}
