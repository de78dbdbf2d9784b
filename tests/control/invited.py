"""People whom an owner invites, each with a browser."""

import re

from tests.control.browser import Browser
from tests.control.conftest import PASSWORD, Plane


async def invited(owner: Browser, plane: Plane, email: str, role: str) -> Browser:
    answer = await owner.post("/people/invite", {"email": email, "role": role})
    assert answer.status_code == 200, answer.text
    browser = plane.browser()
    joined = await browser.post(browser.path_of(link_in(answer.text)), {"name": email[:3], "password": PASSWORD})
    assert joined.status_code == 303, joined.text
    return browser


def link_in(text: str) -> str:
    match = re.search(r"http://localhost:[0-9]+/welcome/[A-Za-z0-9_=-]+", text)
    assert match is not None, text
    return match[0]
