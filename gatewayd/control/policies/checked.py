"""A policy text before it is published: read as a gateway would read it, with every problem at its line. Pure.

Policies of the control plane have the shape with `databases:` and no `url`: addresses stay with the gateways.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from gatewayd.policy.file.features import FEATURES
from gatewayd.policy.file.load import PolicyErrors, load_policies
from gatewayd.policy.file.model import Policies

POLICY_BYTES: Final = 1024 * 1024
_STANDS_IN: Final = "postgresql://gateway/database"
SALT_MISSING: Final = (
    "the policy has column masks, and GATEWAY_MASK_SALT_MASTER is unset: engines that run here would have no salt for them"
)


class PolicyProblem(msgspec.Struct, frozen=True):
    """`line` counts from 1, 0 where none applies; `path` is dotted, empty for the whole text."""

    line: int
    path: str
    message: str


class CheckedPolicy(msgspec.Struct, frozen=True):
    policies: Policies
    names: tuple[str, ...]
    requires_features: tuple[str, ...]
    has_masks: bool
    has_approvals: bool


def check_policy(text: str) -> CheckedPolicy | tuple[PolicyProblem, ...]:
    """The policy, or everything that is wrong with the text."""
    if len(text.encode("utf-8", "replace")) > POLICY_BYTES:
        return (PolicyProblem(0, "", f"found more than {POLICY_BYTES} bytes; expected a shorter policy"),)
    try:
        policies = load_policies(text, {}, approval_gate=True, mask_salt=True, addresses=lambda name, count: _STANDS_IN)
    except PolicyErrors as errors:
        return tuple(PolicyProblem(each.line, each.path, each.message) for each in errors.problems)
    named = policies.databases or ()
    sections = set(policies.sections).union(*(each.sections for each in named))
    return CheckedPolicy(
        policies,
        tuple(each.name for each in named),
        tuple(sorted(sections & set(FEATURES))),
        any(each.policy.column_masks for each in named),
        any("approvals" in each.sections for each in named),
    )


def first_policy(names: Iterable[str]) -> str:
    """The text that a project begins with: everything can be read, nothing written, as without a policy file."""
    lines = ["databases:"]
    for name in names:
        lines += [f"  - name: {name}", "    table_access:", "      default: read", "      tables: {}"]
    return "\n".join(lines) + "\n"
