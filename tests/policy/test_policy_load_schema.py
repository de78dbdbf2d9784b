"""The JSON Schema and the loader hold the same things true, on shared samples; conf/ is what both say it is."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatewayd.policy.file.json_schema import policy_schema, policy_schema_text
from gatewayd.policy.file.load import PolicyErrors, load_policies
from gatewayd.policy.file.shape import SECTIONS

CONF = Path(__file__).parents[2] / "conf"
ALL_BUILT = {"column_masks": None, "mask_source_rewrite": None, "approvals": None, "taint": None}
ENTRY = "databases: [{name: a, url: 'postgres://h/db', %s}]"

VALID = [
    "{}",
    "table_access: {}",
    "table_access: {default: deny, tables: {users: read, app.users: read_write, app.*: deny, größe.x y: read}}",
    "functions: {allow: [a.b, a.*]}",
    "functions: {allow: []}",
    "guardrails: {block_unqualified_dml: false, block_ddl: false, block_dml: true}",
    "limits: {max_rows: 1, max_bytes: 268435456, statement_timeout_ms: 86400000, lock_timeout_ms: 1}",
    "column_masks: {users: {a: full-redact, b: null-out, c: consistent-hash}}",
    "column_masks: {app.users: {a: {t: partial}, b: {t: partial, keepStart: 0, keepEnd: 4, glyph: '#'}}}",
    "column_masks: {users: {a: {t: generalize, granularity: day}, b: {t: generalize, granularity: 2.5}}}",
    "column_masks: {users: {a: {t: pseudonymize, kind: phone}, b: {t: noise, ratio: 1}, c: {t: null-out}}}",
    "mask_source_rewrite: false",
    "approvals: {writes: true, row_changes: false, whole_table_writes: true, schema_changes: false}",
    "taint: {}",
    "taint: {sources: [tickets, app.*], contain: {writes: hold, tables: {payroll: deny, app.users: read}}}",
    "requires_features: [column_masks, databases]",
    "public_urls: [https://a.example.com/mcp]",
    "databases: [{name: a, url: 'postgres://h/db'}, {name: b_1-x, url: 'postgresql://u:p@h:1/db?sslmode=require'}]",
    "limits: {max_rows: 3}\nrequires_features: []\npublic_urls: []\ndatabases: [{name: a, url: '${URL}', dialect: postgres}]",
    ENTRY
    % "table_access: {default: deny}, limits: {max_rows: 3}, guardrails: {}, approvals: {}, functions: {}, column_masks: {}",
]

INVALID = [
    "[]",
    "read",
    "colour: red",
    "limits:",
    "table_access: {default: all}",
    "table_access: {default: true}",
    "table_access: {tables: {users: none}}",
    "table_access: {tables: {a.b.c: deny}}",
    "table_access: {tables: {.a: deny}}",
    "table_access: {tables: {'*': deny}}",
    "table_access: {tables: {'a.b*': deny}}",
    "table_access: {tables: {'a ': deny}}",
    "table_access: {tables: {'\"a\"': deny}}",
    "table_access: {tables: {'': deny}}",
    "table_access: {default: read, other: 1}",
    "functions: {allow: [slugify]}",
    "functions: {allow: ['a.f()']}",
    "functions: {allow: [pg_catalog.lower]}",
    "functions: {deny: []}",
    "guardrails: {block_ddl: 1}",
    "guardrails: {block_all: true}",
    "limits: {max_rows: 0}",
    "limits: {max_rows: 10000001}",
    "limits: {max_rows: true}",
    "limits: {max_rows: '5'}",
    "limits: {max_columns: 5}",
    "column_masks: {users: full-redact}",
    "column_masks: {users: {a: redact}}",
    "column_masks: {users: {a: noise}}",
    "column_masks: {users: {a: {t: noise}}}",
    "column_masks: {users: {a: {t: noise, ratio: 0}}}",
    "column_masks: {users: {a: {t: noise, ratio: 1, x: 1}}}",
    "column_masks: {users: {a: {t: partial, keepStart: -1}}}",
    "column_masks: {users: {a: {t: partial, glyph: ''}}}",
    "column_masks: {users: {a: {t: generalize, granularity: hour}}}",
    "column_masks: {users: {a: {t: pseudonymize, kind: x}}}",
    "column_masks: {users: {a: {ratio: 1}}}",
    "column_masks: {app.*: {a: null-out}}",
    "column_masks: {users: {'': null-out}}",
    "mask_source_rewrite: x",
    "approvals: {writes: 'true'}",
    "approvals: {deletes: true}",
    "taint:",
    "taint: {sources: tickets}",
    "taint: {sources: ['a.b.c']}",
    "taint: {contain: {writes: allow}}",
    "taint: {contain: {writes: true}}",
    "taint: {contain: {tables: {payroll: read_write}}}",
    "taint: {contain: {table: {payroll: deny}}}",
    "requires_features: [telepathy]",
    "public_urls: [example.com]",
    "public_urls: ['https://user:pw@example.com']",
    "databases: []",
    "databases: {}",
    "databases: [a]",
    "databases: [{name: a}]",
    "databases: [{url: 'postgres://h/db'}]",
    "databases: [{name: A, url: 'postgres://h/db'}]",
    "databases: [{name: a, url: 'mysql://h/db'}]",
    "guardrails: {}\ndatabases: [{name: a, url: 'postgres://h/db'}]",
    ENTRY % "dialect: mysql",
    ENTRY % "databases: []",
    ENTRY % "requires_features: []",
]


def loads(text: str) -> bool:
    variables = {"URL": "postgres://h/db"}
    try:
        load_policies(text, variables, approval_gate=True, mask_salt=True, features=ALL_BUILT)
    except PolicyErrors:
        return False
    return True


@pytest.fixture(scope="module")
def validator() -> Any:
    # jsonschema comes with the official MCP SDK, a test dependency; it carries no types.
    draft = importlib.import_module("jsonschema").Draft202012Validator
    draft.check_schema(policy_schema())
    return draft(policy_schema())


@pytest.mark.parametrize("text", VALID)
def test_both_take_it(text: str, validator: Any) -> None:
    assert loads(text)
    assert validator.is_valid(yaml.safe_load(text))


@pytest.mark.parametrize("text", INVALID)
def test_both_refuse_it(text: str, validator: Any) -> None:
    assert not loads(text)
    assert not validator.is_valid(yaml.safe_load(text))


@pytest.mark.parametrize("section", SECTIONS)
def test_samples_show_every_section(section: str) -> None:
    assert any(f"{section}: " in text for text in VALID)
    assert any(f"{section}:" in text for text in INVALID)


def test_schema_file_is_what_the_code_says() -> None:
    assert (CONF / "policy.schema.json").read_text() == policy_schema_text()


SAMPLES = {
    "policy.yaml": {},
    "policy-databases.yaml": {"DATABASE_URL_SHOP": "postgres://h/a", "DATABASE_URL_REPORTS": "postgres://h/b"},
}


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_loads_as_delivered_and_names_its_schema(name: str, validator: Any) -> None:
    text = (CONF / name).read_text()
    load_policies(text, SAMPLES[name])
    assert validator.is_valid(yaml.safe_load(text))
    modeline = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
    assert modeline is not None
    assert (CONF / modeline[1]).is_file()


def test_defaults_in_the_sample_are_the_defaults() -> None:
    policy = load_policies((CONF / "policy.yaml").read_text(), {}).single
    nothing = load_policies("", {}).single
    assert policy is not None
    assert nothing is not None
    assert (policy.guardrails, policy.limits) == (nothing.guardrails, nothing.limits)
