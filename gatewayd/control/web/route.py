"""A route: what is answered where, who may ask, and what is sent and given. One table of them is the whole surface.

From that table come the router, the gate's checks, OpenAPI, and the matrix test of every route against other organisations,
projects and roles.
"""

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from gatewayd.control.people.rights import Right
from gatewayd.control.web.answer import Answer
from gatewayd.control.web.call import Call

Handler = Callable[[Call], Awaitable[Answer]]
Method = Literal["GET", "POST", "PUT", "DELETE"]
Door = Literal["open", "person", "key"]
"""`open`: anybody. `person`: a signed-in person, by cookie. `key`: an API key, by bearer; a cookie is never looked at."""

JSON_BYTES = 2 * 1024 * 1024
FORM_BYTES = 2 * 1024 * 1024


class Route(msgspec.Struct, frozen=True):
    """`path` may hold `<name>` parts; `<project>` is resolved by the gate, which then asks `right` in that project.

    `right` None: whoever passes the door. `again`: only within ten minutes of a sign-in. `body`: what a POST carries, a struct
    that forbids unknown fields: a form for pages, JSON for the API (bytes: anything, up to JSON_BYTES). `answer`: of the API.
    """

    method: Method
    path: str
    handler: Handler
    door: Door
    right: Right | None = None
    again: bool = False
    body: type | None = None
    answer: type | None = None
    summary: str = ""

    @property
    def is_api(self) -> bool:
        return self.path.startswith("/api/")
