"""Fixtures: a rig that serves over HTTP, and a client on it."""

from collections.abc import AsyncIterator

import pytest

from tests.mcp.mcp_rig import Client, Rig, client_of, serving


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with serving(Rig()) as served:
        yield served


@pytest.fixture
async def client(rig: Rig) -> AsyncIterator[Client]:
    async with client_of(rig) as connected:
        yield connected
