"""JSON Schema (draft 2020-12) of the policy file, for editors and CI, printed from `shape.py`. A test keeps conf/'s file true.

It is a little wider than the loader: length in bytes, ${VAR}, one table under two spellings and one name on two databases are
the loader's alone.
"""

from collections.abc import Mapping
from typing import Final, assert_never

import msgspec

from gatewayd.policy.file.shape import (
    SEVERAL,
    SINGLE,
    Address,
    Choice,
    Each,
    Either,
    Flag,
    Integer,
    KeyedObject,
    MaskRule,
    Object,
    Ratio,
    Shape,
    Text,
)

Schema = dict[str, object]

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def policy_schema() -> Schema:
    """The whole file: the single-database shape, or the one with `databases`."""
    return {
        "$schema": _DIALECT,
        "title": "gatewayd policy",
        "description": "What AI agents may do in the databases behind gatewayd",
        "if": {"type": "object", "required": ["databases"]},
        "then": _schema(SEVERAL),
        # An empty file is the same as none.
        "else": {**_schema(SINGLE), "type": ["object", "null"]},
    }


def policy_schema_text() -> str:
    """The same as the text of conf/policy.schema.json."""
    return msgspec.json.format(msgspec.json.encode(policy_schema()), indent=2).decode() + "\n"


def _schema(shape: Shape) -> Schema:
    described: Schema = {"description": shape.doc} if shape.doc else {}
    return described | _form(shape)


def _form(shape: Shape) -> Schema:
    match shape:
        case Flag():
            return {"type": "boolean"}
        case Integer():
            return {"type": "integer", "minimum": shape.low, "maximum": shape.high}
        case Ratio():
            return {"type": "number", "exclusiveMinimum": 0} | ({} if shape.high is None else {"maximum": shape.high})
        case Choice():
            return {"enum": list(shape.words)}
        case Text():
            return {"type": "string", "pattern": shape.form.pattern}
        case Address():
            return {"type": "string", "pattern": r"^(postgres(ql)?://|\$\{[A-Z_][A-Z0-9_]*\})"}
        case Each():
            return {"type": "array", "items": _schema(shape.item)} | ({"minItems": shape.least} if shape.least else {})
        case KeyedObject():
            names: Schema = {"pattern": shape.key.pattern}
            return {"type": "object", "propertyNames": names, "additionalProperties": _schema(shape.value)}
        case Object():
            return _object(shape.fields, shape.required)
        case MaskRule():
            words = [word for word, rule in shape.rules.items() if not rule.required]
            tagged = [
                {"description": rule.doc} | _object({"t": Choice((word,)), **rule.fields}, rule.required | {"t"})
                for word, rule in shape.rules.items()
            ]
            return {"oneOf": [{"enum": words}, *tagged]}
        case Either():
            return {"oneOf": [_schema(shape.choice), _schema(shape.number)]}
        case _ as unreachable:
            assert_never(unreachable)


def _object(fields: Mapping[str, Shape], required: frozenset[str]) -> Schema:
    form: Schema = {
        "type": "object",
        "properties": {key: _schema(field) for key, field in fields.items()},
        "additionalProperties": False,
    }
    return form | ({"required": [key for key in fields if key in required]} if required else {})
