"""One finding of `gatewayd doctor`, and how it is shown."""

from typing import Final, Literal

import msgspec

from gatewayd.cli.output import Output, style_of, visible

CheckOutcome = Literal["OK", "WARN", "FAIL", "SKIP"]
_WIDTH: Final = 16


class Check(msgspec.Struct, frozen=True):
    """`found` says what was found, `remedy` what to do about it, empty where nothing needs doing."""

    check: str
    outcome: CheckOutcome
    found: str
    remedy: str = ""
    database: str | None = None


def ok(check: str, found: str) -> Check:
    """A check that passed."""
    return Check(check, "OK", found)


def warn(check: str, found: str, remedy: str) -> Check:
    """A check that found something to improve, and how."""
    return Check(check, "WARN", found, remedy)


def fail(check: str, found: str, remedy: str) -> Check:
    """A check that failed, and the remedy."""
    return Check(check, "FAIL", found, remedy)


def show(output: Output, check: Check) -> None:
    """Prints one check."""
    if not output.is_table:
        output.json(check)
        return
    where = f"{check.database}: " if check.database else ""
    name = f"{check.check:<{_WIDTH}} "
    output.line((f"{check.outcome:<5}", style_of(check.outcome)), (name, "bold"), (visible(where + check.found), ""))
    if check.remedy:
        output.line((" " * (5 + _WIDTH), ""), ("→ ", "dim"), (visible(check.remedy), "italic"))
