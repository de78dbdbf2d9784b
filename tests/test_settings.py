"""Environment and policy file to Settings: each variable's values and problems, secrets that never show, all problems at once."""

import pickle
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.config.credentials import ReadFile, Secret
from gatewayd.config.settings import DENY_RULES, LOOPBACK_HOSTS, Settings, SettingsErrors, load_settings
from gatewayd.config.variables import CONTROL_PLANE, NAMES, VARIABLES, Variable
from gatewayd.policy.file.model import Guardrails, Policies, Policy

DSN = "postgresql://agent:canary@db.example.com/shop"
CONF = Path(__file__).parents[1] / "conf"


def files(contents: Mapping[str, bytes]) -> ReadFile:
    def read_file(path: str) -> bytes:
        if path not in contents:
            raise FileNotFoundError(2, "No such file or directory")
        return contents[path]

    return read_file


def settings(read_file: ReadFile = files({}), /, **environ: str) -> Settings:  # noqa: B008 - an empty folder, never changed
    return load_settings({"DATABASE_URL": DSN, **environ}, read_file)


def problems(read_file: ReadFile = files({}), /, **environ: str) -> tuple[str, ...]:  # noqa: B008 - as above
    with pytest.raises(SettingsErrors) as caught:
        load_settings({"DATABASE_URL": DSN, **environ}, read_file)
    return caught.value.problems


def test_defaults() -> None:
    given = settings()
    assert msgspec.structs.asdict(given) | {"variables": None} == {
        "database_url": Secret(DSN),
        "policy_file": None,
        "policies": Policies(single=Policy()),
        "variables": None,
        "port": 8080,
        "host": "0.0.0.0",
        "db_path": "/data/audit.db",
        "state_dir": "/data",
        "credentials_dir": None,
        "audit_erasable": False,
        "transport": "http",
        "mask_salt": None,
        "mask_source_rewrite": False,
        "indexer_token": None,
        "deny_webhook": None,
        "deny_webhook_rules": DENY_RULES,
        "telemetry": "on",
        "telemetry_endpoint": None,
        "telemetry_heartbeat_ms": 86_400_000,
        "log_level": "info",
        "audit_synchronous": "normal",
        "allowed_hosts": None,
        "allowed_origins": None,
        "shutdown_grace_s": 10.0,
        "approval_url": None,
        "approval_token": None,
        "proxy_secret": None,
        "link": None,
        "warnings": (),
    }


@pytest.mark.parametrize(
    "name",
    sorted(
        NAMES - {"INDEXER_TOKEN", "GATEWAY_MASK_SALT", "GATEWAY_APPROVAL_TOKEN", "GATEWAY_PROXY_SECRET", "DATABASE_URL"},
    ),
)
def test_empty_is_unset(name: str) -> None:
    assert msgspec.structs.replace(settings(**{name: ""}), variables=None) == msgspec.structs.replace(settings(), variables=None)


@pytest.mark.parametrize("name", ["INDEXER_TOKEN", "GATEWAY_MASK_SALT", "GATEWAY_PROXY_SECRET"])
def test_empty_secret_is_a_problem(name: str) -> None:
    assert problems(**{name: ""}) == (f"{name}: is empty; expected a secret, or the variable unset",)


VALUES: list[tuple[str, str, str, object]] = [
    ("PORT", "1", "port", 1),
    ("PORT", "65535", "port", 65535),
    ("GATEWAY_HOST", "::", "host", "::"),
    ("GATEWAY_HOST", "127.0.0.1", "host", "127.0.0.1"),
    ("GATEWAY_HOST", "gateway.internal", "host", "gateway.internal"),
    ("GATEWAY_HOST", "::1", "allowed_hosts", LOOPBACK_HOSTS),
    ("GATEWAY_HOST", "127.8.8.8", "allowed_hosts", (*LOOPBACK_HOSTS, "127.8.8.8")),
    ("GATEWAY_HOST", "localhost", "allowed_hosts", LOOPBACK_HOSTS),
    ("GATEWAY_HOST", "10.0.0.1", "allowed_hosts", None),
    ("DB_PATH", "audit.db", "db_path", "audit.db"),
    ("STATE_DIRECTORY", "/var/lib/gatewayd", "db_path", "/var/lib/gatewayd/audit.db"),
    ("STATE_DIRECTORY", "/var/lib/a:/var/lib/b", "db_path", "/var/lib/a/audit.db"),
    ("GATEWAY_TRANSPORT", "stdio", "transport", "stdio"),
    ("GATEWAY_MASK_SALT", "x y\n", "mask_salt", Secret("x y\n")),
    *(("GATEWAY_MASK_SOURCE_REWRITE", word, "mask_source_rewrite", True) for word in ("1", "true", "yes", "on", "TRUE", "On")),
    *(("GATEWAY_MASK_SOURCE_REWRITE", word, "mask_source_rewrite", False) for word in ("0", "false", "no", "off", "OFF")),
    ("INDEXER_TOKEN", "a+/=~", "indexer_token", Secret("a+/=~")),
    ("GATEWAY_DENY_WEBHOOK", "https://h/p?q", "deny_webhook", Secret("https://h/p?q")),
    ("GATEWAY_DENY_WEBHOOK_RULES", "table_access", "deny_webhook_rules", frozenset({"table_access"})),
    (
        "GATEWAY_DENY_WEBHOOK_RULES",
        " parse_error , multi_statement,",
        "deny_webhook_rules",
        frozenset({"parse_error", "multi_statement"}),
    ),
    *(("GATEWAY_TELEMETRY", word, "telemetry", "off") for word in ("0", "off", "false", "no", "OFF", "yes", "2", "whatever")),
    *(("GATEWAY_TELEMETRY", word, "telemetry", "on") for word in ("1", "true", "on", "ON")),
    ("GATEWAY_TELEMETRY", "debug", "telemetry", "debug"),
    *(("DO_NOT_TRACK", word, "telemetry", "off") for word in ("1", "true", "TRUE")),
    *(("DO_NOT_TRACK", word, "telemetry", "on") for word in ("0", "false", "maybe")),
    ("GATEWAY_TELEMETRY_ENDPOINT", "http://h:1", "telemetry_endpoint", Secret("http://h:1")),
    ("GATEWAY_TELEMETRY_HEARTBEAT_MS", "1", "telemetry_heartbeat_ms", 1),
    ("GATEWAY_TELEMETRY_HEARTBEAT_MS", "604800000", "telemetry_heartbeat_ms", 604_800_000),
    *(
        ("GATEWAY_TELEMETRY_HEARTBEAT_MS", word, "telemetry_heartbeat_ms", 86_400_000)
        for word in ("0", "-1", "604800001", "1.5", "soon", "٣", "9" * 5000)
    ),
    ("GATEWAY_LOG_LEVEL", "debug", "log_level", "debug"),
    ("GATEWAY_AUDIT_SYNCHRONOUS", "full", "audit_synchronous", "full"),
    ("GATEWAY_ALLOWED_HOSTS", "A.example.com, b:8080,[::1]", "allowed_hosts", ("a.example.com", "b:8080", "[::1]")),
    ("GATEWAY_ALLOWED_HOSTS", "a,*", "allowed_hosts", None),
    ("GATEWAY_ALLOWED_ORIGINS", "https://A/, http://b:8080", "allowed_origins", ("https://a", "http://b:8080")),
    ("GATEWAY_ALLOWED_ORIGINS", "https://a,*", "allowed_origins", ("*",)),
    ("GATEWAY_ALLOWED_ORIGINS", "vscode-webview://x", "allowed_origins", ("vscode-webview://x",)),
    ("GATEWAY_SHUTDOWN_GRACE_S", "0", "shutdown_grace_s", 0.0),
    ("GATEWAY_SHUTDOWN_GRACE_S", "2.5", "shutdown_grace_s", 2.5),
]


@pytest.mark.parametrize(
    ("name", "text", "field", "value"), VALUES, ids=lambda part: str(sorted(part) if isinstance(part, frozenset) else part)[:30]
)
def test_value(name: str, text: str, field: str, value: object) -> None:
    assert getattr(settings(**{name: text}), field) == value


def test_do_not_track_wins_over_telemetry() -> None:
    assert settings(DO_NOT_TRACK="1", GATEWAY_TELEMETRY="debug").telemetry == "off"


def test_path_of_the_audit_file_prefers_the_variable() -> None:
    assert settings(STATE_DIRECTORY="/var/lib/gatewayd", DB_PATH="/x/a.db").db_path == "/x/a.db"


PROBLEMS = [
    *(
        ("PORT", word, f'found "{word}"; expected a whole number from 1 to 65535')
        for word in ("0", "65536", "-1", "80a", " 80", "8e1", "٣")
    ),
    ("PORT", "9" * 5000, 'found "999'),
    ("GATEWAY_HOST", "[::]", 'found "[::]"; expected an IP address without brackets, a host name, or unix:/path'),
    ("GATEWAY_HOST", "http://h", 'found "http://h"; expected an IP address'),
    ("DB_PATH", "/data/", 'found "/data/"; expected the path of a file'),
    ("GATEWAY_TRANSPORT", "sse", 'found "sse"; expected http or stdio'),
    ("GATEWAY_TRANSPORT", "HTTP", 'found "HTTP" (did you mean http?); expected http or stdio'),
    ("GATEWAY_MASK_SOURCE_REWRITE", "2", 'found "2"; expected 1, true, yes, on, 0, false, no or off'),
    ("INDEXER_TOKEN", "canary canary", "holds characters that it cannot; expected visible ASCII characters"),
    ("INDEXER_TOKEN", "canary\n", "holds characters that it cannot; expected visible ASCII characters"),
    ("GATEWAY_MASK_SALT", "canary\udcff", "holds characters that it cannot; expected UTF-8 text without NUL"),
    (
        "GATEWAY_DENY_WEBHOOK",
        "ftp://h/canary",
        "found another scheme than http or https; expected an http:// or https:// URL with a host",
    ),
    ("GATEWAY_DENY_WEBHOOK", "https:///canary", "found no host, or port 0; expected an http://"),
    ("GATEWAY_DENY_WEBHOOK", "https://h:x/canary", "found a malformed host or port; expected an http://"),
    ("GATEWAY_DENY_WEBHOOK", "https://h/canary x", "found blanks, control or non-ASCII characters; expected"),
    (
        "GATEWAY_DENY_WEBHOOK_RULES",
        "table_acces",
        'found "table_acces" (did you mean table_access?); expected dangerous_statement, multi_statement, parse_error,',
    ),
    ("GATEWAY_DENY_WEBHOOK_RULES", ",", "holds no rule; expected"),
    ("GATEWAY_TELEMETRY_ENDPOINT", "collector", "found another scheme than http or https; expected"),
    ("GATEWAY_LOG_LEVEL", "warn", 'found "warn" (did you mean warning?); expected debug, info, warning or error'),
    ("GATEWAY_AUDIT_SYNCHRONOUS", "off", 'found "off"; expected normal or full'),
    ("GATEWAY_ALLOWED_HOSTS", "a b", 'found "a b"; expected host names such as gateway.example.com, with commas between, or *'),
    ("GATEWAY_ALLOWED_HOSTS", "a:0", 'found "a:0"; expected host names'),
    ("GATEWAY_ALLOWED_HOSTS", ",", "holds no entry; expected host names"),
    ("GATEWAY_ALLOWED_ORIGINS", "a.example.com", 'found "a.example.com"; expected origins such as https://app.example.com'),
    ("GATEWAY_ALLOWED_ORIGINS", "https://a/path", 'found "https://a/path"; expected origins'),
    *(
        ("GATEWAY_SHUTDOWN_GRACE_S", word, f'found "{word}"; expected seconds from 0 to 3600')
        for word in ("-1", "3601", "inf", "1e3")
    ),
    ("GATEWAY_APPROVAL_URL", "https://h", None),
    ("GATEWAY_APPROVAL_TOKEN", "canary", None),
    ("GATEWAY_POLICY_FILE", "/nowhere", 'cannot read "/nowhere" (No such file or directory); expected a readable YAML file'),
    ("INDEXER_TOKEN_FILE", "/nowhere", None),
]


@pytest.mark.parametrize(("name", "text", "problem"), PROBLEMS, ids=lambda part: str(part)[:30])
def test_problem_names_the_variable_and_what_is_expected(name: str, text: str, problem: str | None) -> None:
    (line,) = problems(**{name: text})
    if problem is not None:
        assert line.startswith(f"{name}: {problem}")
    assert "; expected " in line
    assert "canary" not in line


def test_gate_needs_both_of_its_variables() -> None:
    pair = "is unset while its partner is set; expected GATEWAY_APPROVAL_URL and GATEWAY_APPROVAL_TOKEN, or neither"
    assert problems(GATEWAY_APPROVAL_URL="https://h") == (f"GATEWAY_APPROVAL_TOKEN: {pair}",)
    assert problems(GATEWAY_APPROVAL_TOKEN="t") == (f"GATEWAY_APPROVAL_URL: {pair}",)
    both = settings(GATEWAY_APPROVAL_URL="https://h", GATEWAY_APPROVAL_TOKEN="t")
    assert (both.approval_url, both.approval_token) == (Secret("https://h"), Secret("t"))


def test_approvals_without_a_gate_are_refused() -> None:
    lines = problems(files({"/p": b"approvals: {writes: true}"}), GATEWAY_POLICY_FILE="/p")
    assert any("found approvals that are on without a gate; expected GATEWAY_APPROVAL_URL" in line for line in lines)


def test_masks_without_a_salt_are_refused() -> None:
    masks = files({"/p": b"column_masks: {users: {email: null-out}}"})
    missing = "GATEWAY_POLICY_FILE: line 1, column_masks: found masks without GATEWAY_MASK_SALT; expected the salt to be set"
    assert missing in problems(masks, GATEWAY_POLICY_FILE="/p")


def test_all_problems_come_at_once() -> None:
    policy = files({"/p": b"limits: {max_rows: 0}\nguardrail: {}"})
    lines = problems(policy, DATABASE_URL="", PORT="0", GATEWAY_TRANSPORT="x", INDEXER_TOKEN="", GATEWAY_POLICY_FILE="/p")
    assert [line.split(":")[0] for line in lines] == [
        *("GATEWAY_POLICY_FILE", "GATEWAY_POLICY_FILE", "DATABASE_URL", "PORT", "GATEWAY_TRANSPORT", "INDEXER_TOKEN"),
    ]
    assert lines[0] == "GATEWAY_POLICY_FILE: line 1, limits.max_rows: found 0; expected a whole number from 1 to 10000000"


# databases


def test_no_database_at_all_is_a_problem() -> None:
    wanted = (
        "DATABASE_URL: is unset; expected postgresql://user:password@host:5432/database, or a policy file with `databases:`",
    )
    assert problems(DATABASE_URL="") == wanted
    assert problems(files({"/p": b"table_access: {}"}), DATABASE_URL="", GATEWAY_POLICY_FILE="/p") == wanted


def test_databases_of_the_policy_make_database_url_needless_and_ignored() -> None:
    policy = files({"/p": b"databases: [{name: a, url: '${URL_A}'}]"})
    loaded = settings(policy, DATABASE_URL="nonsense", URL_A=DSN, GATEWAY_POLICY_FILE="/p")
    assert loaded.database_url is None
    assert [named.url for named in loaded.policies.databases or ()] == [DSN]
    assert loaded.warnings == ("DATABASE_URL is ignored: the policy has `databases:`",)


def test_refused_policy_with_databases_does_not_ask_for_database_url() -> None:
    policy = files({"/p": b"databases: [{name: a, url: '${URL_A}'}]"})
    (line,) = problems(policy, DATABASE_URL="", GATEWAY_POLICY_FILE="/p")
    assert line.startswith("GATEWAY_POLICY_FILE: line 1, databases[0].url: found ${URL_A} unset or empty")


def test_policy_file_is_loaded() -> None:
    loaded = settings(files({"/p": b"guardrails: {block_dml: true}"}), GATEWAY_POLICY_FILE="/p")
    assert loaded.policies.single == Policy(guardrails=Guardrails(block_dml=True))
    assert loaded.policy_file == "/p"


def test_bad_connection_string_does_not_show_itself() -> None:
    (line,) = problems(DATABASE_URL="mysql://agent:canary@h/db")
    assert line == "DATABASE_URL: found another scheme; expected postgres:// or postgresql://"


# secrets


CREDENTIALS = {"CREDENTIALS_DIRECTORY": "/cred", "INDEXER_TOKEN_FILE": "/file", "INDEXER_TOKEN": "variable"}


def test_credential_then_file_then_variable() -> None:
    every = {"/cred/indexer-token": b"credential\n", "/file": b"file\r\n"}
    assert settings(files(every), **CREDENTIALS).indexer_token == Secret("credential")
    del every["/cred/indexer-token"]
    assert settings(files(every), **CREDENTIALS).indexer_token == Secret("file")
    assert settings(INDEXER_TOKEN="variable", CREDENTIALS_DIRECTORY="/cred").indexer_token == Secret("variable")


def test_one_newline_is_taken_off_a_file_and_none_off_a_variable() -> None:
    read = files({"/file": b"salt\n\n"})
    assert settings(read, GATEWAY_MASK_SALT_FILE="/file").mask_salt == Secret("salt\n")
    assert settings(GATEWAY_MASK_SALT="salt\n").mask_salt == Secret("salt\n")


@pytest.mark.parametrize("name", ["DATABASE_URL", "INDEXER_TOKEN", "GATEWAY_MASK_SALT"])
def test_every_secret_is_read_from_its_credential(name: str) -> None:
    value = DSN if name == "DATABASE_URL" else "value"
    credential = f"/cred/{name.lower().replace('_', '-')}"
    loaded = load_settings({"DATABASE_URL": DSN, "CREDENTIALS_DIRECTORY": "/cred"}, files({credential: value.encode()}))
    assert Secret(value) in (loaded.database_url, loaded.indexer_token, loaded.mask_salt)


def test_variable_of_a_url_is_read_as_a_secret_and_again_at_a_reload() -> None:
    contents = {"/p": b"databases: [{name: a, url: '${URL_A}'}]", "/cred/url-a": DSN.encode() + b"\n"}
    loaded = settings(files(contents), DATABASE_URL="", CREDENTIALS_DIRECTORY="/cred", GATEWAY_POLICY_FILE="/p")
    assert [named.url for named in loaded.policies.databases or ()] == [DSN]
    contents["/cred/url-a"] = b"postgres://rotated/db"
    assert loaded.variables.get("URL_A") == "postgres://rotated/db"
    assert loaded.variables.get("URL_B") is None


def test_credential_that_cannot_be_read_is_a_problem_not_the_next_source() -> None:
    def read_file(path: str) -> bytes:
        raise PermissionError(13, "Permission denied")

    assert "INDEXER_TOKEN: cannot read the credential indexer-token (Permission denied); expected a readable file" in problems(
        read_file, **CREDENTIALS | {"DATABASE_URL": ""}
    )


def test_file_that_is_named_and_missing_or_binary_is_a_problem() -> None:
    assert problems(INDEXER_TOKEN_FILE="/canary") == (
        "INDEXER_TOKEN: cannot read the file of INDEXER_TOKEN_FILE (No such file or directory); expected a readable file",
    )
    assert problems(files({"/f": b"\xff"}), INDEXER_TOKEN_FILE="/f") == (
        "INDEXER_TOKEN: the file of INDEXER_TOKEN_FILE is not UTF-8; expected text",
    )
    assert problems(files({"/f": b"\n"}), INDEXER_TOKEN_FILE="/f") == (
        "INDEXER_TOKEN: is empty; expected a secret, or the variable unset",
    )


def test_real_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("limits: {max_rows: 5}")
    (tmp_path / "database-url").write_text(DSN + "\n")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path), "GATEWAY_POLICY_FILE": str(tmp_path / "policy.yaml")}
    loaded = load_settings(environ)
    assert loaded.database_url == Secret(DSN)
    assert loaded.policies.single is not None
    assert loaded.policies.single.limits.max_rows == 5


def test_secret_shows_itself_to_nobody() -> None:
    secret = Secret("canary")
    shown = [repr(secret), str(secret), f"{secret}", f"{secret!r:>40}", repr([secret]), "%s" % secret]  # noqa: UP031 - a form people use
    assert not any("canary" in text for text in shown)
    assert secret.reveal() == "canary"
    assert secret == Secret("canary") != Secret("other")
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        msgspec.json.encode(secret)
    assert not hasattr(secret, "__dict__")


def test_settings_show_no_secret() -> None:
    loaded = settings(
        files({"/p": b"databases: [{name: a, url: '${URL_A}'}]"}),
        INDEXER_TOKEN="canary",
        GATEWAY_MASK_SALT="canary",
        GATEWAY_DENY_WEBHOOK="https://h/canary",
        GATEWAY_APPROVAL_URL="https://h",
        GATEWAY_APPROVAL_TOKEN="canary",
        GATEWAY_POLICY_FILE="/p",
        URL_A=DSN,
    )
    assert "canary" not in repr(loaded)


ANY_TEXT = st.one_of(st.text(max_size=40), st.text("0123456789:/@%$?&=[]., \n\udcff", max_size=20))


@given(st.dictionaries(st.sampled_from(sorted(NAMES)), ANY_TEXT), st.binary(max_size=60))
def test_any_environment_is_settings_or_problems(environ: dict[str, str], policy: bytes) -> None:
    try:
        load_settings(environ, lambda _path: policy)
    except SettingsErrors as errors:
        assert all("\n" not in line and ": " in line for line in errors.problems)  # noqa: PT017 - either outcome is right


# names


def test_misspelt_name_is_warned_about() -> None:
    assert settings(GATEWAY_POLICY_FIEL="/p").warnings == (
        "GATEWAY_POLICY_FIEL is not a variable of gatewayd (did you mean GATEWAY_POLICY_FILE?)",
    )
    assert settings(**dict.fromkeys(CONTROL_PLANE, "1")).warnings == ()


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable.name)
def test_readme_says_the_same_of_each_variable(variable: Variable) -> None:
    readme = (CONF.parent / "docs" / "operations.md").read_text()
    rows = [line for line in readme.splitlines() if line.startswith(f"| {variable.name} |")]
    assert rows == [f"| {variable.name} | {variable.default_in_words} | {variable.meaning} |"]


def test_table_of_variables_is_what_is_read() -> None:
    class Recorded(dict[str, str]):
        def get(self, name: str, default: object = None) -> str | None:  # type: ignore[override]  # one signature is enough here
            read.add(name)
            return super().get(name) or (default if isinstance(default, str) else None)

    read: set[str] = set()
    load_settings(Recorded(DATABASE_URL=DSN, CREDENTIALS_DIRECTORY="/cred"), files({}))
    load_settings(Recorded(GATEWAY_CONTROL_URL="https://control.example.com", CREDENTIALS_DIRECTORY="/cred"), files({}))
    secrets = {variable.name for variable in VARIABLES if variable.secret}
    elsewhere = {"CREDENTIALS_DIRECTORY", "STATE_DIRECTORY"} | {f"{name}_FILE" for name in secrets}
    assert read == NAMES | elsewhere


def test_sample_environment_is_complete_in_itself() -> None:
    lines = (CONF / "gatewayd.env").read_text().splitlines()
    environ = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    policy = (CONF / "policy.yaml").read_bytes()
    loaded = load_settings(environ, files({"/etc/gatewayd/policy.yaml": policy}))
    assert loaded.host == "127.0.0.1"
    assert loaded.warnings == ()
    commented = {
        line.lstrip("#").split("=")[0] for line in lines if line.startswith("#") and "=" in line and " " not in line.split("=")[0]
    }
    assert commented <= NAMES
