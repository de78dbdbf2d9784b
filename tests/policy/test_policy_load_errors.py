"""What is wrong with a policy text, word for word: place, found, expected."""

import pytest

from gatewayd.policy.file.load import PolicyErrors, load_policies
from gatewayd.policy.file.problem import SHOWN

LEVELS = "expected read, read_write or deny"
KEYS = (
    "expected one of requires_features, public_urls, table_access, functions, guardrails, limits, column_masks, "
    "mask_source_rewrite, approvals, taint"
)
ENTRY_KEYS = (
    "expected one of name, url, dialect, table_access, functions, guardrails, limits, column_masks, mask_source_rewrite, "
    "approvals, taint"
)
FEATURE_NAMES = (
    "expected databases, table_access, functions, guardrails, limits, column_masks, mask_source_rewrite, approvals or taint"
)
TABLE = "expected name (of schema public), schema.name or schema.*"
MASKS = "one of full-redact, null-out, consistent-hash, partial, generalize, pseudonymize, noise"
URL = "postgres://u:${PASSWORD}@h/db"
ALL_BUILT = {"column_masks": None, "mask_source_rewrite": None, "approvals": None}

CASES = {
    # form
    "not a mapping": ("- 1", ["line 1: found a list; expected a mapping of"]),
    "a word": ("read", ['line 1: found "read"; expected a mapping of']),
    "syntax": ("limits: {max_rows: 1", ["found a YAML syntax error ("]),
    "tab": ("limits:\n\tmax_rows: 1", ["line 2: found a YAML syntax error ("]),
    "control character": ("limits: \x01", ["found a control character that YAML does not allow"]),
    "second document": ("limits: {}\n---\nlimits: {}", ["line 2: found a second document; expected one"]),
    "directive": ("%YAML 1.1\n---\nlimits: {}", ["found a %YAML directive of another version; expected YAML 1.2"]),
    "tag": (
        "guardrails: {block_ddl: !!bool 'false'}",
        ["line 1, guardrails.block_ddl: found a tag; expected a value without one"],
    ),
    "python tag": ("limits: !!python/object/apply:os.system [id]", ["line 1, limits: found a tag; expected a value without one"]),
    "anchor": ("limits: &a {}", ["line 1, limits: found an anchor; expected the value written out where it is needed"]),
    "alias": (
        "limits: {}\nguardrails: *a",
        ["line 2, guardrails: found an alias; expected the value written out (anchors are not taken)"],
    ),
    "alias as a key": ("{*a : 1}", ["line 1: found an alias; expected"]),
    "merge key": (
        "guardrails: {<<: {block_ddl: false}}",
        ["line 1, guardrails: found a merge key; expected the keys written out"],
    ),
    "list as a key": ("{[a]: 1}", ["line 1: found a list or mapping as a key; expected a name"]),
    "empty key": ("{? : 1}", ["line 1: found a key without a name; expected a name"]),
    "NUL in a key": ('table_access: {tables: {"a\\0": deny}}', ["line 1, table_access.tables: found an escaped character"]),
    "duplicate section": (
        "limits: {}\nlimits: {}",
        ['line 2, limits: found the key "limits" again; expected it once (first on line 1)'],
    ),
    "duplicate table": (
        "table_access:\n  tables:\n    a: deny\n    a: read",
        ['line 4, table_access.tables.a: found the key "a" again; expected it once (first on line 3)'],
    ),
    # keys
    "unknown section": ("guardrail: {}", [f"line 1, guardrail: found an unknown key (did you mean guardrails?); {KEYS}"]),
    "unknown section far from all": ("colour: red", [f"line 1, colour: found an unknown key; {KEYS}"]),
    "other case": ("Limits: {}", ["line 1, Limits: found an unknown key (did you mean limits?)"]),
    "unknown guardrail": (
        "guardrails: {blok_ddl: true}",
        ["line 1, guardrails.blok_ddl: found an unknown key (did you mean block_ddl?); expected one of block_unqualified_dml,"],
    ),
    "dashes": ("guardrails: {block-ddl: true}", ["(did you mean block_ddl?)"]),
    "section without a value": ("limits:", ["line 1, limits: found no value; expected a mapping of max_rows, max_bytes,"]),
    "leaf without a value": (
        "limits:\n  max_rows: ~",
        ["line 2, limits.max_rows: found no value; expected a whole number from 1"],
    ),
    "list without a value": ("functions: {allow: }", ["line 1, functions.allow: found no value; expected a list"]),
    # scalars
    "yes": ("guardrails: {block_ddl: yes}", ['line 1, guardrails.block_ddl: found "yes"; expected true or false']),
    "on": ("guardrails: {block_ddl: on}", ['line 1, guardrails.block_ddl: found "on"; expected true or false']),
    "True": ("guardrails: {block_ddl: True}", ['line 1, guardrails.block_ddl: found "True"; expected true or false']),
    "quoted true": ("guardrails: {block_ddl: 'true'}", ['line 1, guardrails.block_ddl: found "true"; expected true or false']),
    "1 for true": ("guardrails: {block_ddl: 1}", ["line 1, guardrails.block_ddl: found 1; expected true or false"]),
    "true for 1": (
        "limits: {max_rows: true}",
        ["line 1, limits.max_rows: found true; expected a whole number from 1 to 10000000"],
    ),
    "underscore": ("limits: {max_rows: 1_000}", ['line 1, limits.max_rows: found "1_000"; expected a whole number']),
    "sexagesimal": ("limits: {max_rows: 1:30}", ['line 1, limits.max_rows: found "1:30"; expected a whole number']),
    "leading zero": ("limits: {max_rows: 010}", ['line 1, limits.max_rows: found "010"; expected a whole number']),
    "octal": ("limits: {max_rows: 0o10}", ['line 1, limits.max_rows: found "0o10"; expected a whole number']),
    "hex": ("limits: {max_rows: 0x10}", ['line 1, limits.max_rows: found "0x10"; expected a whole number']),
    "sign": ("limits: {max_rows: +5}", ['line 1, limits.max_rows: found "+5"; expected a whole number']),
    "fraction": ("limits: {max_rows: 1.0}", ["line 1, limits.max_rows: found 1.0; expected a whole number"]),
    "exponent": ("limits: {max_rows: 1e3}", ["line 1, limits.max_rows: found 1000.0; expected a whole number"]),
    "date": ("limits: {max_rows: 2020-01-01}", ['line 1, limits.max_rows: found "2020-01-01"; expected a whole number']),
    "infinity": ("limits: {max_rows: .inf}", ['line 1, limits.max_rows: found ".inf"; expected a whole number']),
    "thousands of digits": (f"limits: {{max_rows: {'9' * 5000}}}", ['line 1, limits.max_rows: found "9999']),
    # ranges
    "zero rows": ("limits: {max_rows: 0}", ["line 1, limits.max_rows: found 0; expected a whole number from 1 to 10000000"]),
    "negative timeout": ("limits: {lock_timeout_ms: -1}", ["line 1, limits.lock_timeout_ms: found -1; expected"]),
    "too many bytes": ("limits: {max_bytes: 268435457}", ["found 268435457; expected a whole number from 1 to 268435456"]),
    # table_access
    "level": (
        "table_access: {default: readonly}",
        [f'line 1, table_access.default: found "readonly" (did you mean read?); {LEVELS}'],
    ),
    "level with a dash": ("table_access: {default: read-write}", [f'found "read-write" (did you mean read_write?); {LEVELS}']),
    "level is a list": ("table_access: {tables: {a: [read]}}", [f"line 1, table_access.tables.a: found a list; {LEVELS}"]),
    "table without a level": ("table_access: {tables: {a: }}", [f"line 1, table_access.tables.a: found no value; {LEVELS}"]),
    "two dots": ("table_access: {tables: {db.app.t: deny}}", [f'tables."db.app.t": found "db.app.t" with 2 dots; {TABLE}']),
    "empty schema": ("table_access: {tables: {.t: deny}}", [f'tables.".t": found ".t" with an empty part; {TABLE}']),
    "empty name": ("table_access: {tables: {app.: deny}}", [f'tables."app.": found "app." with an empty part; {TABLE}']),
    "empty table": ('table_access: {tables: {"": deny}}', [f'tables."": found "" with an empty part; {TABLE}']),
    "star alone": ('table_access: {tables: {"*": deny}}', [f'found "*" with * inside a name; {TABLE}']),
    "star inside": ('table_access: {tables: {"app.u*": deny}}', [f'found "app.u*" with * inside a name; {TABLE}']),
    "star schema": ('table_access: {tables: {"*.users": deny}}', [f'found "*.users" with * inside a name; {TABLE}']),
    "SQL quotes": (
        """table_access: {tables: {'"Users"': deny}}""",
        ['found "\\"Users\\"" with double quotes inside; expected the name as stored: Users'],
    ),
    "blank at an end": ('table_access: {tables: {"users ": deny}}', ['found "users " with a space at an end']),
    "long name": (f"table_access: {{tables: {{{'a' * 64}: deny}}}}", ["found a name of 64 bytes; expected at most 63"]),
    "same table twice": (
        "table_access:\n  tables:\n    users: deny\n    public.users: read",
        ['line 4, table_access.tables."public.users": found the same table as "users" on line 3; expected one key for it'],
    ),
    "information_schema denied": (
        "table_access:\n  tables: {information_schema.*: deny}",
        ['tables."information_schema.*": found deny; expected the key left out (information_schema is always readable,'],
    ),
    # functions
    "bare function": (
        "functions: {allow: [slugify]}",
        ['line 1, functions.allow[0]: found "slugify" without a schema; expected schema.name or schema.*'],
    ),
    "function with arguments": ("functions: {allow: ['a.f(int)']}", ['found "a.f(int)" with brackets; expected']),
    "built-in function": (
        "functions: {allow: [pg_catalog.pg_read_file]}",
        ['found "pg_catalog.pg_read_file"; expected a user-defined function (gatewayd decides built-in ones itself)'],
    ),
    "number as a function": (
        "functions: {allow: [1]}",
        ["line 1, functions.allow[0]: found 1; expected schema.name or schema.*"],
    ),
    # features
    "unknown feature": (
        "requires_features: [column_mask]",
        [f'line 1, requires_features[0]: found "column_mask" (did you mean column_masks?); {FEATURE_NAMES}'],
    ),
    # masks
    "mask word": (
        "column_masks: {u: {a: redact}}",
        [f'line 1, column_masks.u.a: found "redact" (did you mean full-redact?); expected {MASKS}'],
    ),
    "mask without fields": ("column_masks: {u: {a: noise}}", ["found noise without its fields; expected {t: noise, ratio: …}"]),
    "mask without t": ("column_masks: {u: {a: {ratio: 1}}}", [f"found a mask without the key t; expected t: {MASKS}"]),
    "mask with another t": ("column_masks: {u: {a: {t: blur}}}", ['column_masks.u.a.t: found "blur"; expected full-redact,']),
    "mask is a list": ("column_masks: {u: {a: []}}", [f"found a list; expected {MASKS}"]),
    "mask needs its field": (
        "column_masks: {u: {a: {t: noise}}}",
        ["found no key ratio; expected ratio: a number above 0, at most 1"],
    ),
    "mask of another's field": (
        "column_masks: {u: {a: {t: noise, ratio: 0.1, keepStart: 1}}}",
        ["column_masks.u.a.keepStart: found an unknown key; expected one of ratio"],
    ),
    "ratio 0": ("column_masks: {u: {a: {t: noise, ratio: 0}}}", ["a.ratio: found 0; expected a number above 0, at most 1"]),
    "ratio above 1": (
        "column_masks: {u: {a: {t: noise, ratio: 1.5}}}",
        ["a.ratio: found 1.5; expected a number above 0, at most 1"],
    ),
    "ratio true": ("column_masks: {u: {a: {t: noise, ratio: true}}}", ["a.ratio: found true; expected a number"]),
    "granularity": (
        "column_masks: {u: {a: {t: generalize, granularity: week}}}",
        ['a.granularity: found "week"; expected year, month, day or a number above 0'],
    ),
    "width 0": ("column_masks: {u: {a: {t: generalize, granularity: 0}}}", ["a.granularity: found 0; expected year, month, day"]),
    "keepStart": (
        "column_masks: {u: {a: {t: partial, keepStart: -1}}}",
        ["a.keepStart: found -1; expected a whole number from 0"],
    ),
    "glyph": ("column_masks: {u: {a: {t: partial, glyph: '##'}}}", ['a.glyph: found "##"; expected one printable character']),
    "kind": ("column_masks: {u: {a: {t: pseudonymize, kind: city}}}", ['a.kind: found "city"; expected email, name or phone']),
    "masks on a schema": ("column_masks: {app.*: {a: null-out}}", ['found "app.*" with * inside a name; expected name']),
    "masks twice": (
        "column_masks: {u: {a: null-out}, public.u: {a: null-out}}",
        ['column_masks."public.u": found the same table as "u" on line 1'],
    ),
    "source rewrite": ("mask_source_rewrite: 1", ["line 1, mask_source_rewrite: found 1; expected true or false"]),
    "approvals": ("approvals: {write: true}", ["approvals.write: found an unknown key (did you mean writes?)"]),
    # databases
    "no database": ("databases: []", ["line 1, databases: found an empty list; expected at least 1"]),
    "databases without a value": ("databases:", ["line 1, databases: found no value; expected a list"]),
    "databases is a mapping": (
        "databases: {a: 1}",
        ["line 1, databases: found a mapping; expected a list, each item a mapping of name"],
    ),
    "entry is a text": (
        "databases: [postgres://u:hush@h/db]",
        ['line 1, databases[0]: found "…"; expected a mapping of name'],
    ),
    "section beside databases": (
        f"guardrails: {{}}\ntable_access: {{}}\ndatabases: [{{name: a, url: '{URL}'}}]",
        [
            "line 1, guardrails: found guardrails beside databases; expected it inside each entry of databases",
            "line 2, table_access: found table_access beside databases; expected it inside each entry of databases",
        ],
    ),
    "entry without name and url": (
        "databases: [{}]",
        [
            "line 1, databases[0]: found no key name; expected name: a lower-case letter, then up to 31 of a-z 0-9 _ -",
            "line 1, databases[0]: found no key url; expected url: an address such as ${DATABASE_URL_MAIN}",
        ],
    ),
    "unknown key of an entry": (
        f"databases:\n- name: a\n  url: {URL}\n  table_acess: {{}}",
        [f"line 4, databases[0].table_acess: found an unknown key (did you mean table_access?); {ENTRY_KEYS}"],
    ),
    "name": (
        f"databases: [{{name: Main, url: '{URL}'}}]",
        ['line 1, databases[0].name: found "Main"; expected a lower-case letter, then up to 31 of a-z 0-9 _ -'],
    ),
    "name with a newline": (
        f'databases: [{{name: "a\\n", url: "{URL}"}}]',
        ['databases[0].name: found "a\\n"; expected a lower-case'],
    ),
    "long database name": (f"databases: [{{name: {'a' * 33}, url: '{URL}'}}]", ["expected a lower-case letter, then up to 31"]),
    "name twice": (
        f"databases:\n- {{name: a, url: '{URL}'}}\n- {{name: a, url: '{URL}'}}",
        ['line 3, databases[1].name: found "a" again; expected a name of its own (first on line 2)'],
    ),
    "dialect": (
        f"databases: [{{name: a, url: '{URL}', dialect: mysql}}]",
        ['line 1, databases[0].dialect: found "mysql"; expected postgres'],
    ),
    "url is a number": (
        "databases: [{name: a, url: 5}]",
        ["databases[0].url: found a number or boolean; expected an address such as"],
    ),
    "variable unset": (
        "databases:\n- name: a\n  url: ${NOWHERE}",
        ["line 3, databases[0].url: found ${NOWHERE} unset or empty; expected a value in the environment"],
    ),
    "variable empty": (
        "databases: [{name: a, url: 'postgres://u:${EMPTY}@h/db'}]",
        ["databases[0].url: found ${EMPTY} unset or empty; expected a value in the environment"],
    ),
    "stray $": ("databases: [{name: a, url: 'postgres://u:p$w@h/db'}]", ["databases[0].url: found a stray $; expected ${NAME}"]),
    "$NAME": ("databases: [{name: a, url: $PASSWORD}]", ["databases[0].url: found a stray $; expected ${NAME}"]),
    "lower-case variable": (
        "databases: [{name: a, url: '${password}'}]",
        ["databases[0].url: found a stray $; expected ${NAME}"],
    ),
    "open brace": ("databases: [{name: a, url: '${PASSWORD'}]", ["databases[0].url: found a stray $; expected ${NAME}"]),
    "url of the policy": ("databases: [{name: a, url: 'mysql://h/db'}]", ["databases[0].url: found another scheme"]),
    "public_urls": (
        "public_urls: ['ftp://h']",
        ["line 1, public_urls[0]: found text of another form; expected an http:// or https://"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_problem_says_where_what_and_what_instead(case: str) -> None:
    text, expected = CASES[case]
    with pytest.raises(PolicyErrors) as caught:
        load_policies(text, {"PASSWORD": "hush", "EMPTY": ""}, approval_gate=True, mask_salt=True, features=ALL_BUILT)
    shown = str(caught.value)
    for line in expected:
        assert line in shown
    assert "hush" not in shown
    assert len(caught.value.problems) <= len(expected)


@pytest.mark.parametrize(
    "text",
    [
        "databases: [{name: a, url:postgres://u:canary@h/db}]",
        "databases: [{name: a, url: [postgres://u:canary@h/db]}]",
        "databases: [{name: postgres://u:canary@h/db, url: 'postgres://h/db'}]",
        "postgres://u:canary@h/db: 1",
        "databases: 'postgres://u:canary@h/db'",
        "databases:\n- name: a\n  url: postgres://u:canary@h/db\n  url: postgres://u:canary@h/db",
        "databases:\n- name: a\n url: postgres://u:canary@h/db",
        "table_access: {tables: {'postgres://u:canary@h.example/db.x': deny}}",
        "limits: {max_rows: 'postgres://u:canary@h/db'}",
        "functions: {allow: ['postgres://u:canary@h/db']}",
    ],
)
def test_misplaced_address_is_not_shown(text: str) -> None:
    with pytest.raises(PolicyErrors) as caught:
        load_policies(text, {})
    assert "canary" not in str(caught.value)


def test_all_problems_come_at_once_in_order_of_lines() -> None:
    text = "limits: {max_rows: 0}\ncolour: 1\nguardrails: {block_ddl: no}\nlimits: {}\ntable_access: {default: all}"
    with pytest.raises(PolicyErrors) as caught:
        load_policies(text, {})
    assert [(problem.line, problem.path) for problem in caught.value.problems] == [
        (1, "limits.max_rows"),
        (2, "colour"),
        (3, "guardrails.block_ddl"),
        (4, "limits"),
        (5, "table_access.default"),
    ]


def test_very_many_problems_are_counted_not_listed() -> None:
    with pytest.raises(PolicyErrors) as caught:
        load_policies("".join(f"k{n}: 1\n" for n in range(SHOWN + 7)), {})
    assert len(caught.value.problems) == SHOWN + 1
    assert str(caught.value.problems[-1]) == "and 7 more problems"


UNBUILT = {
    "masks": ("column_masks: {u: {a: null-out}}", "column_masks", "masking is not built yet"),
    "source rewrite": ("mask_source_rewrite: true", "mask_source_rewrite", "masking is not built yet"),
    "approvals": ("approvals: {writes: true}", "approvals", "write approvals are not built yet"),
    "one class": ("approvals: {schema_changes: true}", "approvals", "write approvals are not built yet"),
    "of one database": (
        "databases: [{name: a, url: '${URL}', approvals: {writes: true}}]",
        "databases[0].approvals",
        "not built yet",
    ),
}
REASONS = {
    "column_masks": "masking is not built yet",
    "mask_source_rewrite": "masking is not built yet",
    "approvals": "write approvals are not built yet",
}


@pytest.mark.parametrize("case", UNBUILT)
def test_section_that_is_not_enforced_is_refused_with_the_reason(case: str) -> None:
    text, path, reason = UNBUILT[case]
    with pytest.raises(PolicyErrors) as caught:
        load_policies(text, {"URL": "postgres://h/db"}, approval_gate=True, mask_salt=True, features=REASONS)
    (problem,) = caught.value.problems
    assert problem.path == path
    assert reason in problem.message
    load_policies(text, {"URL": "postgres://h/db"}, approval_gate=True, mask_salt=True, features=ALL_BUILT)


@pytest.mark.parametrize(
    "text", ["column_masks: {}", "mask_source_rewrite: false", "approvals: {writes: false}", "approvals: {}"]
)
def test_section_that_asks_for_nothing_needs_nothing(text: str) -> None:
    load_policies(text, {}, features=REASONS)


def test_required_feature_that_is_not_built_is_refused() -> None:
    with pytest.raises(PolicyErrors, match=r"requires_features\[1\]: found approvals, which this version does not enforce"):
        load_policies("requires_features: [limits, approvals]", {}, features=REASONS)


def test_approvals_without_a_gate_and_masks_without_a_salt_are_refused() -> None:
    with pytest.raises(PolicyErrors) as caught:
        load_policies("approvals: {writes: true}\ncolumn_masks: {u: {a: null-out}}", {}, features=ALL_BUILT)
    gate, salt = caught.value.problems
    assert str(gate) == (
        "line 1, approvals: found approvals that are on without a gate; "
        "expected GATEWAY_APPROVAL_URL and GATEWAY_APPROVAL_TOKEN to be set"
    )
    assert str(salt) == "line 2, column_masks: found masks without GATEWAY_MASK_SALT; expected the salt to be set"


def test_refusal_tells_the_shape_of_the_file() -> None:
    for text, multiple in (("databases: []", True), ("limits: 1", False)):
        with pytest.raises(PolicyErrors) as caught:
            load_policies(text, {})
        assert caught.value.multiple is multiple
