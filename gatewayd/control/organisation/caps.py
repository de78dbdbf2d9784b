"""What an organisation may have at most: a file of plans. Self-host has no caps.

    default: {projects: 5, databases: 10, gateways: 10, tokens: 50, people: 20, events_a_day: 1000000}
    team: {projects: 50}

A number that a plan leaves out is unlimited. Each organisation names its plan; one that the file does not have gives `default`.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import yaml


class CapsProblem(Exception):
    """The file is refused; the text says where, what was found and what is expected."""


class Caps(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """None: as many as they like."""

    projects: int | None = None
    databases: int | None = None
    gateways: int | None = None
    tokens: int | None = None
    people: int | None = None
    events_a_day: int | None = None


class Plans(msgspec.Struct, frozen=True):
    named: Mapping[str, Caps]

    def of(self, plan: str) -> Caps:
        return self.named.get(plan) or self.named.get("default") or Caps()


class CapReached(Exception):
    """`str()` is the answer for a person: which cap, how many, and what to do."""

    def __init__(self, what: str, most: int) -> None:
        super().__init__(
            f"this organisation may have at most {most} {what.replace('_', ' ')}; remove one, or ask for a larger plan"
        )
        self.what = what


NO_CAPS: Final = Plans({})


def read_caps(data: bytes) -> Plans:
    """Raises CapsProblem."""
    try:
        found = yaml.safe_load(data)
        plans = msgspec.convert(found, dict[str, Caps])
    except (yaml.YAMLError, UnicodeDecodeError):
        raise CapsProblem("is no YAML; expected a mapping from plan to caps") from None
    except msgspec.ValidationError as error:
        raise CapsProblem(str(error)) from None
    for name, caps in plans.items():
        for field, most in msgspec.structs.asdict(caps).items():
            if most is not None and most < 0:
                raise CapsProblem(f"{name}.{field} is {most}; expected 0 or more")
    return Plans(plans)


def check_cap(what: str, held: int, most: int | None) -> None:
    """Raises CapReached when there is no room for one more."""
    if most is not None and held >= most:
        raise CapReached(what, most)
