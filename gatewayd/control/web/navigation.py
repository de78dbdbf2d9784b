"""What the frame of every page leads to. A page's template says `{% set here = 'Gateways' %}`; that link is then the present one.

To add a section: a line here, with the right without which the link is not shown.
"""

from typing import Final

import msgspec

from gatewayd.control.people.rights import Right


class Section(msgspec.Struct, frozen=True):
    """`path`: of a project's section, what follows `/projects/<project>`; else the whole path. `right` None: for everybody."""

    label: str
    path: str
    right: Right | None


OF_PROJECT: Final = (
    Section("Overview", "", "project.read"),
    Section("Connect", "/connect", "project.tokens"),
    Section("Policy", "/policy", "project.read"),
    Section("Approvals", "/approvals", "project.approvals"),
    Section("Audit", "/audit", "project.audit"),
    Section("Gateways", "/gateways", "project.read"),
    Section("Tainted grants", "/taint", "project.read"),
    Section("Project settings", "/settings", "project.policy"),
)
OF_ORGANISATION: Final = (
    Section("Check a proof", "/verify", None),
    Section("People", "/people", "org.read"),
    Section("API keys", "/keys", "org.read"),
    Section("Notifications", "/notifications", "org.settings"),
    Section("Sign-in", "/sign-in-providers", "org.settings"),
    Section("What people did", "/trail", "org.audit"),
    Section("Settings", "/settings", "org.settings"),
)
