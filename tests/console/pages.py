"""Every page of the console, a line each: `tests/console/test_every_page.py` holds them all, `make pictures` draws them.

`path` may name places of the world (`{shop}`); `parts` are what must be there by role and accessible name, as `role:name`.
"""

from typing import Final

import msgspec


class PageCase(msgspec.Struct, frozen=True):
    name: str
    path: str
    heading: str
    parts: tuple[str, ...] = ()
    who: str | None = "ada"
    status: int = 200
    picture: bool = True


PAGES: Final = (
    PageCase("sign-in", "/sign-in", "Sign in", ("textbox:Mail address", "button:Sign in"), who=None),
    PageCase("projects", "/", "Projects", ()),
    PageCase("gateways", "/projects/{shop}/gateways", "Gateways", ("button:Make a token",)),
    PageCase("people", "/people", "People", ("table:People",)),
)
