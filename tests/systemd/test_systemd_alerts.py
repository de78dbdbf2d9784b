"""The alert rules speak gatewayd's own words: every msg is one of log.py, every state has its recovery line (decision 13)."""

import ast
import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatewayd import log

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "systemd" / "alerts"
MESSAGES = {name: value for name, value in vars(log).items() if name.isupper() and isinstance(value, str)}

# What begins, and what ends it: of every such pair both lines are logged.
STATES = {
    log.AUDIT_UNAVAILABLE: log.AUDIT_RECOVERED,
    log.DATABASE_UNREACHABLE: log.DATABASE_REACHABLE,
    log.POLICY_RELOAD_FAILED: log.POLICY_RELOADED,
    log.DENY_WEBHOOK_FAILED: log.DENY_WEBHOOK_DELIVERED,
    log.APPROVAL_GATE_UNREACHABLE: log.APPROVAL_GATE_REACHABLE,
    log.TAINT_CHECK_FAILED: log.TAINT_CHECK_WORKS,
    log.TAINTS_UNREADABLE: log.TAINTS_READABLE,
    log.GATEWAY_HALTED: log.GATEWAY_ENFORCING,
    log.GATEWAY_PAUSED: log.GATEWAY_ENFORCING,
    log.LINK_CUT: log.LINK_RESTORED,
    log.CONTROL_PLANE_UNREACHABLE: log.CONTROL_PLANE_REACHABLE,
    log.STATUS_REFUSED: log.STATUS_TAKEN,
    log.POLICY_STALE: log.POLICY_FRESH,
    log.ENROLMENT_FAILED: log.LINKED,
    log.AUDIT_PUSH_FAILED: log.AUDIT_PUSH_RECOVERED,
    log.AUDIT_PUSH_WAITING: log.AUDIT_PUSH_RECOVERED,
    log.AUDIT_ANSWER_UNVERIFIED: log.AUDIT_PUSH_RECOVERED,
    log.AUDIT_FORK_CONFLICT: log.AUDIT_PUSH_RECOVERED,
    log.AUDIT_REFUSED: log.AUDIT_PUSH_RECOVERED,
    log.AUDIT_NOT_TAKEN: log.AUDIT_PUSH_RECOVERED,
    log.AUDIT_PRUNING_FAILED: log.AUDIT_PRUNING_RECOVERED,
    log.SERVICE_UNAVAILABLE: log.STARTED,
    log.CONFIGURATION_INVALID: log.STARTED,
}
EVENTS = {
    log.AUDIT_WRITE_AFTER_EXECUTION_FAILED, log.UNEXPECTED_FAILURE, log.DECISION_FAILED, log.CONNECTION_FAILED,
    log.DENY_WEBHOOK_DROPPED, log.LOG_LINES_DROPPED,
    log.AUDIT_BROKEN,
    log.ENGINE_ENDED,
    log.ENGINE_FAILED,
    log.GRANT_TAINTED,
    log.TAINT_CLEARED,
    log.BUNDLE_REJECTED,
    log.TRUST_REJECTED,
    log.IDENTITY_ELSEWHERE,
    log.VERSION_ACCEPTED,
    log.PUBLIC_URL_NOT_REGISTERED,
    log.AUDIT_FORKED,
    log.AUDIT_LOST,
    log.AUDIT_DETAILS_LEFT_OUT,
    log.AUDIT_NEVER_SENT,
    log.VIEWS_WITHHELD,
    log.AUDIT_BROKEN,
}  # fmt: skip
HARMLESS = {log.CONFIGURATION_DOUBTFUL}  # a warning at start that `gatewayd check` prints too


@cache
def uses() -> dict[str, set[str]]:
    """Constant of log.py -> the levels it is logged at (its name alone anywhere counts as the level "")."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "gatewayd").rglob("*.py"):
        own = path.name == "log.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                for first in ast.walk(node.args[0]):  # one of two messages, too
                    if isinstance(first, ast.Attribute) and isinstance(first.value, ast.Name) and first.value.id == "log":
                        found.setdefault(first.attr, set()).add(node.func.attr)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "log":
                found.setdefault(node.attr, set()).add("")
            elif own and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, set()).add("")
    return found


def test_every_message_is_logged_somewhere() -> None:
    assert {name for name in MESSAGES if name not in uses()} == set()
    assert len(set(MESSAGES.values())) == len(MESSAGES)


def test_every_message_logged_as_an_error_or_warning_is_a_state_or_an_event() -> None:
    bad = {MESSAGES[name] for name, levels in uses().items() if name in MESSAGES and levels & {"error", "warning", "_tell"}}
    assert bad | {log.LOG_LINES_DROPPED} == STATES.keys() | EVENTS | HARMLESS


def test_messages_that_alert_rules_rely_on_keep_their_spelling() -> None:
    assert {
        "audit write after execution failed",
        "database unreachable",
        "database reachable",
        "mcp client",
    } <= set(MESSAGES.values())


@cache
def loki() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((ALERTS / "loki.yaml").read_text(encoding="utf-8"))["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def test_loki_has_a_rule_for_each_and_every_state_its_recovery() -> None:
    covered: set[str] = set()
    for rule in loki():
        quoted = [msg for text in re.findall(r'msg=~?"([^"]+)"', rule["expr"]) for msg in text.split("|")]
        named = rule["labels"]["msg"].split("|")
        covered.update(named)
        recoveries = {STATES[msg] for msg in named if msg in STATES}
        assert set(quoted) == {*named, *recoveries}, rule["alert"]
        assert rule["annotations"].get("recovery") == (recoveries.pop() if recoveries else None)
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["expr"].count("(") == rule["expr"].count(")")
    assert covered == STATES.keys() | EVENTS


def test_vector_has_all_of_them() -> None:
    config = yaml.safe_load((ALERTS / "vector.yaml").read_text(encoding="utf-8"))

    def listed(transform: str) -> set[str]:
        return set(re.findall(r'^\s+"([^"]+)",$', config["transforms"][transform]["condition"]["source"], flags=re.MULTILINE))

    assert listed("alerts") == STATES.keys() | EVENTS
    assert listed("recoveries") == set(STATES.values())
    parts = config["sources"].keys() | config["transforms"].keys()
    for part in (*config["transforms"].values(), *config["sinks"].values()):
        assert set(part["inputs"]) <= parts


def test_prometheus_asks_for_metrics_that_exist() -> None:
    source = (ROOT / "gatewayd" / "operators" / "metrics.py").read_text(encoding="utf-8")
    (group,) = yaml.safe_load((ALERTS / "prometheus.yaml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]:
        for name in re.findall(r"gatewayd_\w+", rule["expr"]):
            assert f'"{re.sub(r"_(total|bucket)$", "", name)}"' in source, name


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A `journalctl` that prints the file beside it."""
    program = tmp_path / "journalctl"
    program.write_text(f'#!/bin/sh\necho "$*" > {tmp_path}/asked\ncat {tmp_path}/journal\n', encoding="utf-8")
    program.chmod(0o755)
    return tmp_path


def watch(journal: Path, *lines: str | dict[str, str], unit: str = "") -> tuple[int, list[str]]:
    """Exit code, and the messages that the script would wake somebody for."""
    text = "".join((line if isinstance(line, str) else json.dumps(line, separators=(",", ":"))) + "\n" for line in lines)
    (journal / "journal").write_text(text, encoding="utf-8")
    found = subprocess.run(
        [str(ALERTS / "journalctl.sh"), *([unit] if unit else [])],
        env={**os.environ, "PATH": f"{journal}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert found.stderr == ""
    return found.returncode, [json.loads(line)["msg"] for line in found.stdout.splitlines()]


@pytest.mark.parametrize(("begins", "ends"), STATES.items())
def test_the_script_tells_of_a_state_until_it_has_ended(journal: Path, begins: str, ends: str) -> None:
    begun, ended = {"level": "error", "msg": begins}, {"level": "info", "msg": ends}
    assert watch(journal, "Started gatewayd.service.", begun) == (1, [begins])
    assert watch(journal, begun, {"msg": "mcp client"}, ended) == (0, [])
    assert watch(journal, begun, ended, begun) == (1, [begins])


@pytest.mark.parametrize("event", sorted(EVENTS))
def test_the_script_tells_of_events(journal: Path, event: str) -> None:
    assert watch(journal, {"msg": log.STARTED}, {"msg": event}, {"msg": log.STARTED}) == (1, [event])


def test_the_script_keeps_databases_apart(journal: Path) -> None:
    down = [{"msg": log.DATABASE_UNREACHABLE, "database": name} for name in ("a", "b")]
    assert watch(journal, *down, {"msg": log.DATABASE_REACHABLE, "database": "a"}) == (1, [log.DATABASE_UNREACHABLE])


def test_the_script_asks_for_the_unit_it_is_told(journal: Path) -> None:
    assert watch(journal, unit="gatewayd@shop.service") == (0, [])
    assert "--unit=gatewayd@shop.service" in (journal / "asked").read_text(encoding="utf-8")
