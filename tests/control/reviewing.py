"""What reviewers do in their browsers."""

from typing import Any

import httpx
import pytest

from tests.control.browser import Browser
from tests.control.conftest import Plane
from tests.control.invited import invited
from tests.control.linked_rig import Project, until


async def the_pending(project: Project) -> dict[str, Any]:
    """The one request that waits, once it does."""
    found: list[dict[str, Any]] = []

    async def look() -> bool:
        found[:] = (await project.ask("GET", "/approvals"))["requests"]
        return bool(found)

    await until(look, "a request")
    (one,) = found
    return one


async def decide(by: Browser, project: Project, approval_id: str, decision: str = "approve", **form: Any) -> httpx.Response:
    return await by.post(f"/projects/{project.id}/approvals/{approval_id}/decide", {"decision": decision, **form})


@pytest.fixture
async def reviewer(plane: Plane, owner: Browser) -> Browser:
    return await invited(owner, plane, "rita@example.com", "reviewer")
