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
    PageCase("audit", "/projects/{shop}/audit", "Audit", ("button:Filter", "link:Statistics", "link:CSV", "heading:Newest")),
    PageCase("audit-found", "/projects/{shop}/audit?agent=cursor&decision=DENY", "Audit", ("heading:Found",), picture=False),
    PageCase("audit-live", "/projects/{shop}/audit?live=1", "Audit", ("link:Stop following",), picture=False),
    PageCase("audit-statistics", "/projects/{shop}/audit/statistics?kind=table&days=7", "Statistics", ("link:Tables",)),
    PageCase("query", "/projects/{shop}/audit/queries/{query}", "Refused statement", ("link:Check its proof", "heading:Proof")),
    PageCase("query-hostile", "/projects/{shop}/audit/queries/{hostile_query}", "Statement", picture=False),
    PageCase("query-long", "/projects/{shop}/audit/queries/{long_query}", "Refused statement", picture=False),
    PageCase("verify", "/projects/{shop}/audit/queries/{query}/verify", "Check a proof"),
    PageCase("verify-anybody", "/verify", "Check a proof", who=None, picture=False),
)
