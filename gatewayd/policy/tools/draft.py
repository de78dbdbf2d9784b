"""Drafts of policy text from a catalog: a first policy that lets nothing be written, and masks to paste (decisions 2, 14). Pure.

The text is put together here and not by a YAML library, because it has comments.
"""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from gatewayd.catalog import Catalog, Relation
from gatewayd.policy.file.model import Limits
from gatewayd.policy.file.name_forms import COLUMN, TABLE
from gatewayd.policy.tools.sensitive import Suspect, mask_json, suspects

READABLE: Final = ("table", "partitioned table", "view", "materialized view", "foreign table")
SYSTEM: Final = ("pg_catalog", "information_schema")
FUNCTIONS: Final = 20

_HEAD: Final = """\
# yaml-language-server: $schema=policy.schema.json
#
# What agents may do in database {database}, drafted from its catalog. Nothing can be written with it.
# The schema of the line above comes from: gatewayd policy schema > policy.schema.json
# Next: gatewayd policy lint --connect {file}, then name the file in GATEWAY_POLICY_FILE.

"""
_DENY: Final = """\
# Levels: read (SELECT only), read_write, deny. What is not listed is closed, so a table that is made later stays
# hidden until somebody lists it here.
table_access:
  default: deny
"""
_READ: Final = """\
# Levels: read (SELECT only), read_write, deny. Everything is readable, also every table that is made later; close what
# agents should not see with deny.
table_access:
  default: read
"""
_REST: Final = """\

# Refusals that hold also where table_access allows.
guardrails:
  block_unqualified_dml: true      # UPDATE and DELETE without WHERE
  block_ddl: true                  # DROP, TRUNCATE, ALTER
  block_dml: true                  # every row write; set it to false with the first read_write above

# What one answer and one statement may take.
limits:
"""


def draft_policy(catalog: Catalog, default: Literal["deny", "read"], *, file: str = "policy.yaml") -> str:
    """The text of a policy file under which every relation of the catalog can be read and none written."""
    parts = [_HEAD.format(database=_one_line(catalog.database), file=file)]
    parts.append(_DENY if default == "deny" else _READ)
    parts += _tables(catalog, default)
    parts.append(_functions(catalog))
    parts.append(_REST)
    parts += [f"  {name}: {getattr(Limits(), name)}\n" for name in Limits.__struct_fields__]
    found = suspects(catalog)
    if found:
        parts.append(
            "\n# Columns that look as if they held personal data or secrets, by their names. To mask them set GATEWAY_MASK_SALT\n"
        )
        parts.append("# and remove the marks; `gatewayd policy suggest-masks` gives the reasons.\n")
        parts += [f"# {line}\n" for line in masks_text(found, reasons=False).splitlines()]
    return "".join(parts)


def masks_text(found: Iterable[Suspect], *, reasons: bool = True) -> str:
    """The section `column_masks` for these columns, each with its reason as a comment; what a policy cannot spell is left out."""
    lines = ["column_masks:"]
    table = None
    for each in found:
        if not (_is_spellable(each.schema, each.table) and _is_column(each.column)):
            continue
        if table != (each.schema, each.table):
            table = each.schema, each.table
            lines.append(f"  {_quoted(f'{each.schema}.{each.table}')}:")
        reason = f"  # {each.reason}" if reasons else ""
        lines.append(f"    {_key(each.column)}: {_flow(mask_json(each.mask))}{reason}")
    return "\n".join(lines) + "\n" if len(lines) > 1 else ""


def _tables(catalog: Catalog, default: str) -> Iterable[str]:
    """With `deny`, every relation as a line that opens it; with `read`, as a comment that would close it."""
    listed: dict[str, list[Relation]] = {}
    followers = 0
    for relation in sorted(catalog.relations.values(), key=lambda each: (each.schema, each.name)):
        if relation.kind not in READABLE or relation.schema in SYSTEM:
            continue
        if relation.parents:
            followers += 1
        else:
            listed.setdefault(relation.schema, []).append(relation)
    if not listed:
        yield "  # This database has no tables that this role can see.\n"
        return
    mark, level = ("", "read") if default == "deny" else ("# ", "deny")
    is_empty = not any(_is_spellable(each.schema, each.name) for relations in listed.values() for each in relations)
    yield f"  {mark if not is_empty else '# '}tables:\n"
    for schema, relations in listed.items():
        yield f"    # schema {_one_line(schema)}\n"
        for relation in relations:
            if not _is_spellable(relation.schema, relation.name):
                whole = _quoted(f"{schema}.*")
                yield f"    # {_one_line(relation.name)}: has a name that no key can spell; {whole} would cover it\n"
                continue
            note = "" if relation.kind == "table" else f"  # {relation.kind}"
            if relation.kind in ("view", "materialized view") and level == "read":
                note += ": its own key opens what it shows, whatever its tables' levels"
            yield f"    {mark}{_quoted(relation.qualified)}: {level}{note}\n"
    if followers:
        yield f"    # Partitions and other children take the level of their parents and are not listed: {followers}\n"


def _functions(catalog: Catalog) -> str:
    own = sorted(
        {
            (function.schema, function.name): function
            for function in catalog.functions.values()
            if function.extension is None and function.kind != "procedure" and function.schema not in SYSTEM
        }.values(),
        key=lambda each: (each.schema, each.name),
    )
    if not own:
        return ""
    lines = ["\n# Functions of your own that agents may call. What one reads is not held against the levels above: allow those\n"]
    lines.append("# whose code you know.\n# functions:\n#   allow:\n")
    for function in own[:FUNCTIONS]:
        definer = ", with its owner's rights" if function.security_definer else ""
        note = f"{function.volatility}, {function.language}{definer}"
        lines.append(f"#     - {_quoted(f'{function.schema}.{function.name}')}  # {_one_line(note)}\n")
    if len(own) > FUNCTIONS:
        lines.append(f"#     ... and {len(own) - FUNCTIONS} more\n")
    return "".join(lines)


def _is_spellable(schema: str, name: str) -> bool:
    try:
        return TABLE.parse(f"{schema}.{name}") == (schema, name)
    except ValueError:
        return False


def _is_column(name: str) -> bool:
    try:
        COLUMN.parse(name)
    except ValueError:
        return False
    return True


def _quoted(text: str) -> str:
    """A double-quoted YAML scalar: JSON's strings are that, with escapes for what YAML does not take as it is."""
    encoded = msgspec.json.encode(text).decode()
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in encoded)


def _key(name: str) -> str:
    plain = (
        name.isascii()
        and name.isidentifier()
        and name.lower() not in ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
    )
    return name if plain else _quoted(name)


def _flow(value: str | dict[str, object]) -> str:
    if isinstance(value, str):
        return value
    return "{" + ", ".join(f"{key}: {inner}" for key, inner in value.items()) + "}"


def _one_line(text: str) -> str:
    """A name inside a comment: nothing in it may end the comment."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
