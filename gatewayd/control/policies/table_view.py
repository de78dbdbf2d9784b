"""A policy as tables: for each database its tables with their level, what is masked or should be, and what becomes of writes; and
a choice made there written into the text. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from gatewayd.catalog import Catalog
from gatewayd.control.policies.edit import NotEdited, set_value, value_at
from gatewayd.policy.decide.access import resolve
from gatewayd.policy.decide.guardrails import WriteClass, classes_held
from gatewayd.policy.file.model import Guardrails, Level, Mask, Named, Policies, Policy, TableKey
from gatewayd.policy.file.name_forms import MASKED_TABLE, TABLE
from gatewayd.policy.tools.draft import READABLE, SYSTEM
from gatewayd.policy.tools.sensitive import mask_json, suspects

TABLES_SHOWN: Final = 120
WriteAnswer = Literal["refuse", "ask", "allow"]
CLASSES: Final[Mapping[WriteClass, str]] = {
    "row_changes": "block_dml", "whole_table_writes": "block_unqualified_dml", "schema_changes": "block_ddl",
}  # fmt: skip
"""Each class of writes with the guardrail that refuses it."""
SIMPLE_MASKS: Final = ("full-redact", "null-out", "consistent-hash")


class MaskRow(msgspec.Struct, frozen=True):
    """`mask` and `suggested` as a policy has them, in JSON; "" for none."""

    column: str
    mask: str
    suggested: str
    reason: str


class TableRow(msgspec.Struct, frozen=True):
    """`own` is the level of its own key, None without one; `level` is what holds. `kind` is None where no catalog knows it."""

    name: str
    kind: str | None
    own: Level | None
    level: Level
    masks: list[MaskRow]


class DatabaseView(msgspec.Struct, frozen=True):
    name: str
    default: Level
    writes: dict[WriteClass, WriteAnswer]
    tables: list[TableRow]
    left_out: int
    has_catalog: bool


class Choice(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One choice of the page: `what` of a table, column or class is to be `value`; None: nothing of its own."""

    what: Literal["default", "level", "mask", "writes"]
    database: str
    name: str
    column: str
    value: str | dict[str, Any] | None


def view_of(policies: Policies, catalogs: Mapping[str, Catalog], find: str = "") -> list[DatabaseView]:
    """Tables whose name contains `find`; the policy's own keys first."""
    return [_database(each, catalogs.get(each.name), find.lower()) for each in policies.databases or ()]


def with_choices(text: str, choices: Iterable[Choice]) -> str:
    """The text with what was chosen. What it says already stays as it is written. Raises NotEdited."""
    for choice in choices:
        text = _chosen(text, choice)
    return text


def _database(named: Named, catalog: Catalog | None, find: str) -> DatabaseView:
    policy, access = named.policy, named.policy.table_access
    keys = dict.fromkeys((*access.tables, *policy.column_masks))
    known: dict[TableKey, str | None] = dict(keys)
    for relation in sorted((catalog.relations if catalog is not None else {}).values(), key=lambda each: each.qualified):
        key = (relation.schema, relation.name)
        if key in keys or (relation.kind in READABLE and relation.schema not in SYSTEM and not relation.parents):
            known[key] = relation.kind
    suspected: dict[TableKey, dict[str, tuple[Mask, str]]] = {}
    for each in suspects(catalog) if catalog is not None else ():
        suspected.setdefault((each.schema, each.table), {})[each.column] = each.mask, each.reason
    wanted = [key for key in known if find in ".".join(key).lower()]
    rows = [_table(policy, key, known[key], suspected.get(key, {})) for key in wanted[:TABLES_SHOWN]]
    answers = {name: _answer(policy, name) for name in CLASSES}
    return DatabaseView(named.name, access.default, answers, rows, max(0, len(wanted) - TABLES_SHOWN), catalog is not None)


def _table(policy: Policy, key: TableKey, kind: str | None, suspected: Mapping[str, tuple[Mask, str]]) -> TableRow:
    masks = policy.column_masks.get(key, {})
    level = resolve(policy.table_access, *key).level
    if level == "deny":
        suspected = {}  # nothing of it is shown
    rows = [
        MaskRow(
            column, _mask_text(masks.get(column)), _mask_text(suspected[column][0]) if column in suspected else "",
            suspected[column][1] if column in suspected else "",
        )
        for column in (*masks, *(each for each in suspected if each not in masks))
    ]  # fmt: skip
    return TableRow(".".join(key), kind, policy.table_access.tables.get(key), level, rows)


def _mask_text(mask: Mask | None) -> str:
    return msgspec.json.encode(mask_json(mask)).decode() if mask is not None else ""


def _answer(policy: Policy, name: WriteClass) -> WriteAnswer:
    if getattr(policy.guardrails, CLASSES[name]):
        return "refuse"
    return "ask" if name in classes_held(policy.approvals) else "allow"


def _chosen(text: str, choice: Choice) -> str:
    names = [each.get("name") if isinstance(each, dict) else None for each in value_at(text, ("databases",)) or []]
    if choice.database not in names:
        raise NotEdited(f"the text has no database {choice.database}")
    entry: tuple[str | int, ...] = ("databases", names.index(choice.database))
    path: tuple[str | int, ...]
    match choice.what:
        case "default":
            return set_value(text, (*entry, "table_access", "default"), choice.value)
        case "level":
            path = (*entry, "table_access", "tables")
            return set_value(text, (*path, _spelled(text, path, choice.name, TABLE.parse)), choice.value)
        case "mask":
            path = (*entry, "column_masks")
            return set_value(text, (*path, _spelled(text, path, choice.name, MASKED_TABLE.parse), choice.column), choice.value)
        case "writes":
            return _with_writes(text, entry, choice)


def _with_writes(text: str, entry: tuple[str | int, ...], choice: Choice) -> str:
    guardrail = CLASSES.get(choice.name)  # type: ignore[call-overload]  # any text may have been sent
    if guardrail is None or choice.value not in ("refuse", "ask", "allow"):
        raise NotEdited("a class of writes is refused, asked about or allowed")
    path, blocks = (*entry, "guardrails", guardrail), choice.value == "refuse"
    if value_at(text, path) is not None or getattr(Guardrails(), guardrail) is not blocks:  # a default is not written down
        text = set_value(text, path, blocks)
    approvals = value_at(text, (*entry, "approvals")) or {}
    held = approvals.get(choice.name, approvals.get("writes", False))
    if choice.value == "refuse" or held is (choice.value == "ask"):
        return text
    return set_value(text, (*entry, "approvals", choice.name), choice.value == "ask")


def _spelled(text: str, path: tuple[str | int, ...], name: str, parse: Any) -> str:
    """The key of the text that means this table; `orders` means `public.orders`."""
    for key in value_at(text, path) or {}:
        try:
            if ".".join(parse(key)) == name:
                return str(key)
        except ValueError:
            continue
    return name
