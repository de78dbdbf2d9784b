"""What a reload makes of the policies, and what its audit rows say."""

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.policy.file.load import PolicyErrors, load_policies
from gatewayd.policy.file.model import Guardrails, Limits, Policies, Policy, TableAccess
from gatewayd.policy.replacement import (
    DatabaseChange,
    diff,
    guardrails_json,
    policy_hash,
    replace,
    sections_changed,
    table_access_json,
)

ALL_BUILT = {"column_masks": None, "mask_source_rewrite": None, "approvals": None}
VARIABLES = {"URL": "postgres://h/db", "OTHER": "postgres://other/db"}
UNCHANGED = dict.fromkeys(
    ("table_access", "functions", "guardrails", "limits", "column_masks", "mask_source_rewrite", "approvals", "taint")
)


def load(text: str) -> Policies:
    return load_policies(text, VARIABLES, approval_gate=True, mask_salt=True, features=ALL_BUILT)


def policy(text: str) -> Policy:
    single = load(text).single
    assert single is not None
    return single


def swapped(before: str, *bodies: str) -> Policies:
    current = load(before)
    for body in bodies:
        current = replace(current, load(body), single_name="__default__").policies
    return current


DIFFS: Mapping[str, tuple[str, str, dict[str, object]]] = {
    "default": (
        "table_access: {default: read}",
        "table_access: {default: deny}",
        {
            "table_access": {
                "default": {"from": "read", "to": "deny"},
                "tables_added": {},
                "tables_removed": {},
                "tables_changed": {},
            }
        },
    ),
    "tables": (
        "table_access: {tables: {a: read, b: deny, app.*: read}}",
        "table_access: {tables: {b: read, app.*: read, c.d: deny}}",
        {
            "table_access": {
                "tables_added": {"c.d": "deny"},
                "tables_removed": {"public.a": "read"},
                "tables_changed": {"public.b": {"from": "deny", "to": "read"}},
            }
        },
    ),
    "guardrails and limits": (
        "{}",
        "{guardrails: {block_dml: true}, limits: {max_rows: 5, lock_timeout_ms: 3000}}",
        {"guardrails": {"block_dml": {"from": False, "to": True}}, "limits": {"max_rows": {"from": 1000, "to": 5}}},
    ),
    "functions": (
        "functions: {allow: [b.c, a.b]}",
        "functions: {allow: [a.*]}",
        {"functions": {"allow": {"from": ["a.b", "b.c"], "to": ["a.*"]}}},
    ),
    "masks": (
        "column_masks: {u: {t: null-out, a: full-redact, b: {t: noise, ratio: 0.5}}}",
        "column_masks: {u: {t: full-redact, a: full-redact, b: {t: noise, ratio: 1}}, v: {c: null-out}}",
        {
            "column_masks": {
                "public.u.b": {"from": {"t": "noise", "ratio": 0.5}, "to": {"t": "noise", "ratio": 1}},
                "public.u.t": {"from": {"t": "null-out"}, "to": {"t": "full-redact"}},
                "public.v.c": {"from": None, "to": {"t": "null-out"}},
            }
        },
    ),
    "one leaf": (
        "{}",
        "mask_source_rewrite: false",
        {"mask_source_rewrite": {"from": None, "to": False}},
    ),
    "approvals": (
        "approvals: {writes: false}",
        "approvals: {writes: true, row_changes: false}",
        {
            "approvals": {
                "writes": {"from": False, "to": True},
                "whole_table_writes": {"from": False, "to": True},
                "schema_changes": {"from": False, "to": True},
            }
        },
    ),
    "nothing": ("limits: {max_rows: 1000}", "table_access: {default: read, tables: {}}", {}),
    "another spelling": ("approvals: {writes: true}", "approvals: {row_changes: true, writes: true}", {}),
}


@pytest.mark.parametrize("case", DIFFS)
def test_diff_shows_the_changed_leaves_only(case: str) -> None:
    before, after, expected = DIFFS[case]
    old, new = policy(before), policy(after)
    assert diff(old, new) == UNCHANGED | expected
    assert sections_changed(old, new) == tuple(section for section in UNCHANGED if section in expected)
    assert (policy_hash(old) == policy_hash(new)) == (not expected)


def test_diff_of_a_new_or_removed_database_is_null_per_section() -> None:
    assert diff(None, policy("guardrails: {block_ddl: false}")) == UNCHANGED
    assert diff(policy("guardrails: {block_ddl: false}"), None) == UNCHANGED


def test_guardrails_and_table_access_are_whole() -> None:
    assert guardrails_json(Guardrails(block_ddl=False)) == {
        "block_unqualified_dml": True,
        "block_ddl": False,
        "block_dml": False,
    }
    assert table_access_json(TableAccess("deny", {("public", "b"): "read", ("a", "*"): "deny"})) == {
        "default": "deny",
        "tables": {"a.*": "deny", "public.b": "read"},
    }


# omission


def test_omitted_section_keeps_its_value() -> None:
    policies = swapped(
        "{table_access: {default: deny}, guardrails: {block_ddl: false}, limits: {max_rows: 5}, functions: {allow: [a.b]}, "
        "column_masks: {u: {a: null-out}}, mask_source_rewrite: true, approvals: {writes: true}, public_urls: ['https://h']}",
        "table_access: {tables: {a: deny}}",
    )
    assert policies.single is not None
    assert policies.single.table_access == TableAccess("read", {("public", "a"): "deny"})
    assert policies.single.guardrails == Guardrails(block_ddl=False)
    assert policies.single.limits == Limits(max_rows=5)
    assert policies.single.functions.allow == {("a", "b")}
    assert policies.single.column_masks
    assert policies.single.mask_source_rewrite is True
    assert policies.single.approvals.writes is True
    assert policies.public_urls == ("https://h",)


def test_named_section_is_replaced_whole() -> None:
    policies = swapped("{table_access: {}, guardrails: {block_ddl: false}}", "{table_access: {}, guardrails: {block_dml: true}}")
    assert policies.single is not None
    assert policies.single.guardrails == Guardrails(block_ddl=True, block_dml=True)


@pytest.mark.parametrize("body", ["", "guardrails: {}", "{}"])
def test_single_body_without_table_access_is_refused(body: str) -> None:
    with pytest.raises(PolicyErrors, match="found no table_access; expected one"):
        swapped("table_access: {default: deny}", body)


def test_body_of_the_other_shape_is_refused() -> None:
    several = "databases: [{name: a, url: '${URL}'}]"
    with pytest.raises(PolicyErrors, match="found a policy of several databases; expected the shape started with, that of one"):
        swapped("", several)
    with pytest.raises(PolicyErrors, match="found a policy of one database; expected the shape started with, that of several"):
        swapped(several, "table_access: {}")


def test_databases_come_and_go_and_keep_what_is_omitted() -> None:
    current = load(
        "limits: {max_rows: 7}\n"
        "databases:\n"
        "- {name: a, url: '${URL}', table_access: {default: deny}, limits: {max_bytes: 9}}\n"
        "- {name: b, url: '${URL}'}\n"
    )
    body = load("databases:\n- {name: a, url: '${OTHER}', guardrails: {block_dml: true}}\n- {name: c, url: '${URL}'}\n")
    replacement = replace(current, body, single_name="__default__")
    a, c = replacement.policies.databases or ()
    assert (a.name, a.url) == ("a", "postgres://other/db")
    assert a.policy == Policy(
        table_access=TableAccess("deny"), guardrails=Guardrails(block_dml=True), limits=Limits(max_rows=7, max_bytes=9)
    )
    assert (c.name, c.policy) == ("c", Policy(limits=Limits(max_rows=7)))
    assert replacement.databases_changed == ("a", "c", "b")
    assert replacement.changes == (
        DatabaseChange(
            "a",
            None,
            ("guardrails",),
            {"block_unqualified_dml": True, "block_ddl": True, "block_dml": True},
            UNCHANGED | {"guardrails": {"block_dml": {"from": False, "to": True}}},
        ),
        DatabaseChange("c", None, ("limits",), guardrails_json(Guardrails()), UNCHANGED),
        DatabaseChange("b", None, (), guardrails_json(Guardrails()), UNCHANGED),
    )


def test_limits_of_the_file_and_of_the_entry_are_kept_apart() -> None:
    first = "limits: {max_rows: 7}\ndatabases: [{name: a, url: '${URL}', limits: {max_bytes: 9}}]"
    entry = "databases: [{name: a, url: '${URL}', limits: {lock_timeout_ms: 4}}]"
    shared = "limits: {max_rows: 8}\ndatabases: [{name: a, url: '${URL}'}]"
    limits = [
        named.policy.limits for bodies in ([], [entry], [entry, shared]) for named in swapped(first, *bodies).databases or ()
    ]
    assert limits == [
        Limits(max_rows=7, max_bytes=9),
        Limits(max_rows=7, lock_timeout_ms=4),
        Limits(max_rows=8, lock_timeout_ms=4),
    ]


def test_repeating_a_body_changes_nothing() -> None:
    text = "{table_access: {tables: {a: deny}}, guardrails: {block_dml: true}}"
    replacement = replace(load(text), load(text), single_name="__default__")
    (change,) = replacement.changes
    assert replacement.databases_changed == ("__default__",)
    assert change == DatabaseChange(
        "__default__",
        {"default": "read", "tables": {"public.a": "deny"}},
        (),
        {"block_unqualified_dml": True, "block_ddl": True, "block_dml": True},
        UNCHANGED,
    )
    assert replacement.policies == load(text)


# hash


def test_hash_is_16_hex_digits_and_stable() -> None:
    # Operators keep it beside their snapshot: a changed value here is a breaking change.
    assert policy_hash(Policy()) == "6d3eb9fb22c195b7"


@given(st.permutations(["a: read", "b: deny", '"app.*": deny', "c.d: read_write"]), st.integers())
def test_hash_is_independent_of_key_order(tables: list[str], seed: int) -> None:
    sections = [
        f"table_access: {{tables: {{{', '.join(tables)}}}}}",
        "guardrails: {block_ddl: true, block_dml: true}",
        "limits: {max_rows: 5}",
    ]
    random.Random(seed).shuffle(sections)
    assert policy_hash(policy("\n".join(sections))) == policy_hash(
        policy(
            "limits: {max_rows: 5, max_bytes: 1048576}\nguardrails: {block_dml: true}\n"
            "table_access: {default: read, tables: {public.a: read, public.b: deny, c.d: read_write, app.*: deny}}"
        )
    )


def test_hash_tells_every_section_apart() -> None:
    texts = [
        "{}",
        "table_access: {default: deny}",
        "table_access: {tables: {a: read}}",
        "functions: {allow: [a.b]}",
        "guardrails: {block_ddl: false}",
        "limits: {lock_timeout_ms: 1}",
        "column_masks: {u: {a: null-out}}",
        "column_masks: {u: {a: full-redact}}",
        "column_masks: {u: {a: {t: partial, keepStart: 1}}}",
        "mask_source_rewrite: true",
        "mask_source_rewrite: false",
        "approvals: {row_changes: true}",
    ]
    assert len({policy_hash(policy(text)) for text in texts}) == len(texts)


def test_width_written_as_whole_or_as_fraction_is_the_same_policy() -> None:
    one, two = (policy(f"column_masks: {{u: {{a: {{t: generalize, granularity: {width}}}}}}}") for width in ("10", "10.0"))
    assert policy_hash(one) == policy_hash(two)
    assert sections_changed(one, two) == ()
