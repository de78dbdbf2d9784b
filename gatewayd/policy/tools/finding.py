"""Finding: one piece of advice about a valid policy."""

from typing import Literal

import msgspec

from gatewayd.policy.file.problem import Path

Severity = Literal["high", "medium", "low"]


class Finding(msgspec.Struct, frozen=True):
    """`path` is the place in one database's sections; `found` says what is there and why it matters, `remedy` what to do."""

    severity: Severity
    path: Path
    found: str
    remedy: str
