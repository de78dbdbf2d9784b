"""No secret in a problem of the configuration, nor in the `repr` of what the core holds."""

import traceback
from pathlib import Path
from typing import Any, cast

import pytest

from gatewayd.cli.policyfile import DatabaseEntry
from gatewayd.config.settings import SettingsErrors, load_settings
from gatewayd.config.variables import NAMES
from gatewayd.corridor.gateway import Masking
from gatewayd.masking.plan import Rewritten
from gatewayd.notify.post import Poster
from gatewayd.policy.file.load import PolicyErrors, load_policies
from gatewayd.policy.file.model import Policy
from tests.daemon.daemon_rig import variables
from tests.faults.canaries import (
    ADDRESS,
    BAD_POLICIES,
    ENCODED_PASSWORD,
    PASSWORD,
    POLICY,
    SECRETS,
    found_in,
    secret_variables,
)  # fmt: skip

HOLD_SECRETS = {
    "DATABASE_URL", "INDEXER_TOKEN", "GATEWAY_MASK_SALT", "GATEWAY_DENY_WEBHOOK", "GATEWAY_TELEMETRY_ENDPOINT",
    "GATEWAY_APPROVAL_URL", "GATEWAY_APPROVAL_TOKEN",
}  # fmt: skip
BROKEN_ADDRESS = (
    f"http://{SECRETS['user part of the webhook']}:{SECRETS['password of the webhook']}@:x/{SECRETS['path of the webhook']}"
)


def test_every_setting_broken() -> None:
    """What may hold a secret set to each, the rest to addresses: the problems name the variable and never the value."""
    addresses = [ADDRESS, BROKEN_ADDRESS, f"x{ADDRESS}", f"{ADDRESS} ", f"'{ADDRESS}", f"{ADDRESS}?x={PASSWORD}"]
    said: dict[str, bytes] = {}
    for name in sorted(NAMES):
        texts = [*addresses, *SECRETS.values()] if name in HOLD_SECRETS else addresses
        for number, text in enumerate([*texts, *(f"{text}\n\x01\udcff" for text in texts)]):
            try:
                loaded: object = load_settings({"DATABASE_URL": "postgresql://u@h/d", name: text})
            except SettingsErrors as errors:
                shown = f"{errors!r} {errors} {''.join(traceback.format_exception(errors))}"
            else:
                shown = repr(loaded) if name in HOLD_SECRETS else ""
            said[f"{name} {number}"] = shown.encode("utf-8", "surrogateescape")
    assert found_in(said) == []


def test_what_the_core_holds_shows_no_secret(tmp_path: Path) -> None:
    """`repr` is what a debugger, a traceback with locals or a careless line of log would print."""
    given = {**variables("", tmp_path, POLICY), **secret_variables()}
    settings = load_settings({**given, "DATABASE_URL": f"postgresql://u:{ENCODED_PASSWORD}@h/d"})
    named = load_policies(f"databases: [{{name: x, url: '{ADDRESS}'}}]", {})
    assert named.databases is not None
    with pytest.raises(PolicyErrors) as refused:
        load_policies(BAD_POLICIES[-1], {})
    things: list[object] = [
        settings,
        settings.variables,
        Masking(settings.mask_salt, True),
        named,
        named.databases[0],
        refused.value,
        refused.value.problems,
        DatabaseEntry("x", Policy(), ADDRESS),
        Poster(secret_variables()["GATEWAY_DENY_WEBHOOK"], "1"),
        Rewritten(cast(Any, None), (SECRETS["GATEWAY_MASK_SALT"].encode(),), ()),
    ]
    assert found_in({type(thing).__name__: repr(thing).encode() for thing in things}) == []
