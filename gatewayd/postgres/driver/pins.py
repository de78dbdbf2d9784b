"""The settings that every statement runs under, whatever role or database say (decision 11)."""

from collections.abc import Mapping
from typing import Final

from gatewayd.policy.file.model import Limits

IDLE_IN_TRANSACTION_MS: Final = 60_000
"""A last resort: no transaction waits for the gateway between two messages, so this ends only transactions that were left open by
a bug."""

PINNED: Final[Mapping[str, str]] = {
    "application_name": "gatewayd",
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "read committed",  # the guard must see what was committed while the statement ran
    "search_path": "public, pg_temp",  # pg_catalog is then searched first, temporary schemas last
    "TimeZone": "UTC",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "iso_8601",
    "standard_conforming_strings": "on",  # the parser that decided has read the text so
    "backslash_quote": "safe_encoding",
    "transform_null_equals": "off",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "xmlbinary": "base64",
    "xmloption": "content",
    "row_security": "on",
    "client_min_messages": "error",  # notices are not read; a loop of RAISE NOTICE must not fill the connection
    "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_MS),
}
UNDER_A_POOLER: Final = frozenset({"application_name", "TimeZone", "DateStyle", "standard_conforming_strings"})
"""What pgbouncer takes at start-up; the rest is set in each transaction there."""
IN_FORCE: Final = (
    "COPY (SELECT pg_catalog.pg_backend_pid(), s.name, s.setting FROM pg_catalog.pg_show_all_settings() AS s) TO STDOUT"
)
"""Asks which backend answers and what holds there. One message, so that a pooler takes one backend for it; without an operator,
so that no schema of somebody's search_path has a word in it."""


def timeouts(limits: Limits) -> dict[str, str]:
    """The settings for the policy's timeouts, in milliseconds: name and value."""
    return {"statement_timeout": str(limits.statement_timeout_ms), "lock_timeout": str(limits.lock_timeout_ms)}


def at_startup(limits: Limits) -> dict[str, str]:
    """The settings that are sent when a session starts."""
    return {**PINNED, **timeouts(limits)}


def not_in_force(wanted: Mapping[str, str], answer: bytes) -> tuple[int, list[str]]:
    """What IN_FORCE answered -> the backend's process number, and the names of the settings in `wanted` that do not hold."""
    pid = 0
    held: dict[str, str] = {}
    for line in answer.decode(errors="replace").split("\n")[:-1]:
        told, name, setting = line.split("\t")
        pid = int(told)
        held[name] = setting
    return pid, [name for name, value in wanted.items() if held.get(name) != value]


def set_local(limits: Limits) -> str:
    """Statements that pin everything for one transaction. application_name and the like are tracked by the pooler itself."""
    pinned = {name: value for name, value in at_startup(limits).items() if name not in UNDER_A_POOLER}
    return "".join(f"SET LOCAL {name} = {_value(name, value)};" for name, value in pinned.items())


def set_session(limits: Limits) -> str:
    """Statements that re-pin what a change of policy changes."""
    return ";".join(f"SET {name} = {value}" for name, value in timeouts(limits).items())


def _value(name: str, value: str) -> str:
    return value if name == "search_path" else f"'{value}'"
