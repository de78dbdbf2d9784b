"""The states of a linked gateway, as one union, and what each means to those who ask (docs/link-protocol.md, States).

    waiting -> enforcing <-> paused        any -> halted        `cut` stands beside them

Pure. `link/standing.py` is the one place that changes the state; it logs one line and one recovery line a change.
"""

from typing import Literal, assert_never

import msgspec

from gatewayd.link.formats.bundle import Bundle
from gatewayd.link.formats.status import StateName


class Waiting(msgspec.Struct, frozen=True, tag="waiting"):
    """No bundle was ever enforced here: /mcp answers 503."""


class Enforcing(msgspec.Struct, frozen=True, tag="enforcing"):
    """A bundle is in force, and calls are served."""

    version: int


class Paused(msgspec.Struct, frozen=True, tag="paused"):
    """The bundle in force says so: a person stopped the project."""

    version: int


class Halted(msgspec.Struct, frozen=True, tag="halted"):
    """An authentic bundle cannot be enforced, or nothing may be: everything is refused until this changes.

    `cause` is what ends it: `bundle` another bundle or the mended machine, `stale` a fresh word of the control plane, `ratchet`
    a person, `cut` a link that is whole again, `tests` another bundle.
    """

    reason: str
    cause: Literal["bundle", "stale", "ratchet", "cut", "tests"]


LinkState = Waiting | Enforcing | Paused | Halted


def name_of(state: LinkState) -> StateName:
    """The state's name, as in the poll and the metrics."""
    match state:
        case Waiting():
            return "waiting"
        case Enforcing():
            return "enforcing"
        case Paused():
            return "paused"
        case Halted():
            return "halted"
        case _ as unreachable:
            assert_never(unreachable)


def state_under(bundle: Bundle) -> LinkState:
    """What an enforceable bundle asks for."""
    return Paused(bundle.version) if bundle.state == "paused" else Enforcing(bundle.version)


def tool_error(state: LinkState) -> tuple[str, str] | None:
    """The `error` and `reason` that a call is answered with; None where calls are served. Nothing was attempted then."""
    match state:
        case Paused():
            return "gateway_paused", "a person has paused this project on the control plane; nothing ran; try again later"
        case Halted(reason=reason):
            return "gateway_halted", f"the gateway is halted and runs nothing: {reason}"
        case _:
            return None
