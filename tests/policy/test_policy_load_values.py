"""Policy texts and the values they are."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.policy.file import yaml
from gatewayd.policy.file.load import PolicyErrors, load_policies
from gatewayd.policy.file.model import (
    Approvals,
    ConsistentHash,
    FullRedact,
    Functions,
    Generalize,
    Guardrails,
    Limits,
    Named,
    Noise,
    NullOut,
    Partial,
    Policies,
    Policy,
    Pseudonymize,
    TableAccess,
)
from gatewayd.policy.file.yaml import MAX_BYTES

ALL_BUILT = {"column_masks": None, "mask_source_rewrite": None, "approvals": None}


def load(text: str | bytes, **variables: str) -> Policies:
    return load_policies(text, variables, approval_gate=True, mask_salt=True, features=ALL_BUILT)


def single(text: str | bytes) -> Policy:
    policy = load(text).single
    assert policy is not None
    return policy


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "---\n...\n", "\ufeff", b"\xef\xbb\xbf", "{}"])
def test_empty_document_is_no_file(text: str | bytes) -> None:
    assert load(text) == Policies(single=Policy())


def test_no_file_reads_all_and_blocks_what_guardrails_block() -> None:
    assert single("") == Policy(
        table_access=TableAccess("read", {}),
        functions=Functions(frozenset()),
        guardrails=Guardrails(block_unqualified_dml=True, block_ddl=True, block_dml=False),
        limits=Limits(max_rows=1000, max_bytes=1048576, statement_timeout_ms=30000, lock_timeout_ms=3000),
        approvals=Approvals(writes=False),
        column_masks={},
        mask_source_rewrite=None,
    )


def test_every_section() -> None:
    text = """
requires_features: [table_access, column_masks]
public_urls: [https://agents.example.com/mcp]
table_access:
  default: deny
  tables:
    users: read
    "app.*": deny
    billing.invoices: read_write
functions:
  allow: [public.slugify, "postgis.*"]
guardrails: {block_dml: true}
limits: {max_rows: 5}
column_masks:
  public.users:
    ssn: full-redact
    born: null-out
    email: {t: partial, keepStart: 1, keepEnd: 4}
    phone: {t: partial, glyph: "*"}
  staff:
    id: consistent-hash
    joined: {t: generalize, granularity: year}
    salary: {t: generalize, granularity: 0.5}
    height: {t: generalize, granularity: 10}
    name: {t: pseudonymize, kind: name}
    bonus: {t: noise, ratio: 1}
    plain: {t: full-redact}
mask_source_rewrite: true
approvals: {writes: true, row_changes: false}
"""
    policies = load(text)
    assert policies.public_urls == ("https://agents.example.com/mcp",)
    assert policies.databases is None
    assert policies.sections == {
        *("requires_features", "public_urls", "table_access", "functions", "guardrails", "limits"),
        *("column_masks", "mask_source_rewrite", "approvals"),
    }
    assert policies.single == Policy(
        table_access=TableAccess(
            "deny", {("public", "users"): "read", ("app", "*"): "deny", ("billing", "invoices"): "read_write"}
        ),
        functions=Functions(frozenset({("public", "slugify"), ("postgis", "*")})),
        guardrails=Guardrails(block_dml=True),
        limits=Limits(max_rows=5),
        column_masks={
            ("public", "users"): {
                "ssn": FullRedact(),
                "born": NullOut(),
                "email": Partial(keepStart=1, keepEnd=4),
                "phone": Partial(glyph="*"),
            },
            ("public", "staff"): {
                "id": ConsistentHash(),
                "joined": Generalize("year"),
                "salary": Generalize(0.5),
                "height": Generalize(10),
                "name": Pseudonymize("name"),
                "bonus": Noise(1),
                "plain": FullRedact(),
            },
        },
        mask_source_rewrite=True,
        approvals=Approvals(writes=True, row_changes=False),
    )


KEYS = {
    "yes": ("public", "yes"),
    "on": ("public", "on"),
    "true": ("public", "true"),
    "1": ("public", "1"),
    "0x10": ("public", "0x10"),
    "2020-01-01": ("public", "2020-01-01"),
    "Users": ("public", "Users"),
    "app.Users": ("app", "Users"),
    "order items": ("public", "order items"),
    "größe.straße": ("größe", "straße"),
    "a" * 63: ("public", "a" * 63),
    "pg_catalog.pg_stats": ("pg_catalog", "pg_stats"),
    "information_schema.*": ("information_schema", "*"),
}


@pytest.mark.parametrize("key", KEYS)
def test_table_key_is_the_text_as_written(key: str) -> None:
    assert single(f"table_access: {{tables: {{{key}: read}}}}").table_access.tables == {KEYS[key]: "read"}


@pytest.mark.parametrize("word", ["null", "~"])
def test_table_with_the_name_of_a_null_is_quoted(word: str) -> None:
    assert single(f'table_access: {{tables: {{"{word}": deny}}}}').table_access.tables == {("public", word): "deny"}


def test_databases_have_their_own_sections_over_shared_limits() -> None:
    text = """
limits: {max_rows: 7, lock_timeout_ms: 9}
databases:
- name: main
  url: ${URL_MAIN}
  dialect: postgres
  limits: {max_rows: 8}
  table_access: {default: deny}
- name: other-1
  url: postgresql://u:${PW}${PW}@h:${PORT}/db
"""
    policies = load(text, URL_MAIN="postgres://h/db", PW="%40", PORT="5433")
    assert policies.single is None
    assert policies.databases == (
        Named(
            name="main",
            url="postgres://h/db",
            policy=Policy(limits=Limits(max_rows=8, lock_timeout_ms=9), table_access=TableAccess("deny")),
            sections=frozenset({"limits", "table_access"}),
            limits={"max_rows": 8},
        ),
        Named(name="other-1", url="postgresql://u:%40%40@h:5433/db", policy=Policy(limits=Limits(max_rows=7, lock_timeout_ms=9))),
    )


def test_replaced_variable_is_not_replaced_again() -> None:
    (named,) = load("databases: [{name: a, url: '${URL}'}]", URL="postgres://u:${PW}@h/db", PW="x").databases or ()
    assert named.url == "postgres://u:${PW}@h/db"


def test_url_does_not_show_itself() -> None:
    policies = load("databases: [{name: a, url: 'postgres://u:canary@h/db'}]")
    assert "canary" not in repr(policies)
    assert "canary" not in repr(policies.databases)


def test_only_the_variables_of_urls_are_asked_for() -> None:
    names: list[str] = []

    class RequestHead:
        def get(self, name: str, /) -> str:
            names.append(name)
            return "postgres://h/db"

    load_policies("databases: [{name: a, url: '${ONE}'}]", RequestHead())
    assert names == ["ONE"]


@pytest.mark.parametrize("data", [b"\xff\xfe{\x00}\x00", b"limits: \xe9", "limits: {}".encode("utf-16"), "\udc80"])
def test_other_encodings_are_refused(data: bytes | str) -> None:
    with pytest.raises(PolicyErrors, match="not UTF-8; expected UTF-8 text"):
        load(data)


def test_size_is_bounded() -> None:
    assert load("#" * MAX_BYTES) == Policies(single=Policy())
    with pytest.raises(PolicyErrors, match="found more than 8388608 bytes"):
        load("#" * (MAX_BYTES + 1))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 100_000,
        "- " * 100_000,
        "column_masks: " + "{a: " * 15 + "1" + "}" * 15 + "\nlimits: " + "[" * 17 + "]" * 17,
    ],
    ids=["lists", "mappings", "dashes", "closed"],
)
def test_deep_nesting_is_a_problem_not_a_crash(text: str) -> None:
    with pytest.raises(PolicyErrors, match="more than 16 levels of nesting"):
        load(text)


def test_number_of_values_is_bounded() -> None:
    _, problems = yaml.parse("functions: {allow: [%s]}" % ", ".join(["a.b"] * 80), max_events=100)  # noqa: UP031 - braces
    assert problems == []
    _, problems = yaml.parse("functions: {allow:\n [%s]}" % ", ".join(["a.b"] * 100), max_events=100)  # noqa: UP031 - braces
    assert [(problem.line, problem.message) for problem in problems] == [
        (2, "found more than 100 keys and values; expected a policy")
    ]


def test_billion_laughs_never_unfold() -> None:
    text = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    with pytest.raises(PolicyErrors, match="found an alias"):
        load(text)


WORDS = st.sampled_from(
    [
        *("databases", "table_access", "tables", "default", "limits", "max_rows", "guardrails", "column_masks", "functions"),
        *("allow", "approvals", "writes", "requires_features", "name", "url", "t", "partial", "noise", "ratio", "read", "deny"),
        *(
            ": ",
            "- ",
            "\n",
            "\n  ",
            "\n    ",
            "{",
            "}",
            "[",
            "]",
            ", ",
            "'",
            '"',
            "&a ",
            "*a",
            "!!x ",
            "<<",
            "? ",
            "| ",
            "--- ",
            "%YAML",
        ),
        *(
            "true",
            "yes",
            "null",
            "0",
            "1e999",
            "-1",
            "${A}",
            "$",
            "postgres://u:p@h/d",
            "a.b",
            "a.*",
            "\t",
            "#",
            "\x00",
            "\ud800",
        ),
    ]
)


def check(loading: Callable[[], Policies]) -> None:
    """It gives policies of one shape, or problems that are one printable line each."""
    try:
        policies = loading()
    except PolicyErrors as errors:
        assert str(errors).encode().count(b"\n") + 1 == len(errors.problems)  # noqa: PT017 - either outcome is right
    else:
        assert (policies.single is None) != (policies.databases is None)


@given(st.one_of(st.text(), st.lists(WORDS, max_size=25).map("".join), st.binary().map(lambda data: data.decode("latin-1"))))
def test_any_text_is_a_policy_or_refused(text: str) -> None:
    check(lambda: load(text, A="b"))


@given(st.binary())
def test_any_bytes_are_a_policy_or_refused(data: bytes) -> None:
    check(lambda: load(data))


NODES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(["read", "deny", "full-redact", "year", "a.b", "x"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    *("databases", "table_access", "tables", "default", "limits", "max_rows", "guardrails", "block_ddl"),
                    *("column_masks", "users", "t", "ratio", "functions", "allow", "approvals", "writes", "name", "url", "a.*"),
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=20,
)


@given(NODES)
def test_any_tree_is_a_policy_or_refused(tree: object) -> None:
    check(lambda: load(json.dumps(tree)))
