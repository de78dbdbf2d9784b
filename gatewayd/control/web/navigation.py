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
    Section("Gateways", "/gateways", "project.read"),
    Section("Audit", "/audit", "project.audit"),
    Section("Tainted grants", "/taint", "project.read"),
)
OF_ORGANISATION: Final = (
    Section("People", "/people", "org.read"),
    Section("API keys", "/keys", "org.read"),
    Section("What people did", "/trail", "org.audit"),
)
