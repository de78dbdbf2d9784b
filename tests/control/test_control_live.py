"""Live pages: a stream tells of a change in its project and topic, to who may see it, and of nothing else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
import trio

from gatewayd.control.bounds import ControlBounds
from tests.conftest import Postgres
from tests.control.conftest import Plane
from tests.control.two_organisations import NOBODY, TwoOrganisations, uuid


class Stream:
    """An answer as it comes, on a socket of its own."""

    def __init__(self, socket: trio.SocketStream) -> None:
        self._socket = socket
        self._data = b""

    async def line(self) -> str:
        """The next one; "" also at the end."""
        while b"\n" not in self._data:
            more = await self._socket.receive_some()
            if not more:
                return ""
            self._data += more
        line, _, self._data = self._data.partition(b"\n")
        return line.decode().strip()

    async def until(self, start: str) -> str:
        with trio.fail_after(30):
            while not (line := await self.line()).startswith(start):
                pass
        return line

    async def rest(self) -> bytes:
        with trio.fail_after(30):
            while more := await self._socket.receive_some():
                self._data += more
        return self._data


@asynccontextmanager
async def stream(
    plane: Plane, organisations: TwoOrganisations, who: str | None, path: str, method: str = "GET"
) -> AsyncIterator[Stream]:
    host, port = plane.settings.public_host, urlsplit(plane.url).port
    assert port is not None
    cookie = f"cookie: gatewayd-{port}={organisations.people[who][0]}\r\n" if who else ""
    async with await trio.open_tcp_stream("127.0.0.1", port) as socket:
        await socket.send_all(f"{method} {path} HTTP/1.1\r\nhost: {host}\r\n{cookie}content-length: 0\r\n\r\n".encode())
        yield Stream(socket)


async def test_a_change_is_told_to_the_pages_of_its_project(
    plane: Plane, organisations: TwoOrganisations, postgres: Postgres, store_url: str
) -> None:
    def recorded(project: str) -> None:
        key = f"'{uuid(project)}', '{uuid(NOBODY)}', '{uuid(NOBODY)}'"
        postgres.execute(f"INSERT INTO audit_heads VALUES ({key}, 1, 7, '', '', NULL, 1)", store_url)

    def pends(project: str) -> None:
        postgres.execute(f"INSERT INTO approval_heads VALUES ('{uuid(project)}', 7)", store_url)

    for topic, change in (("audit", recorded), ("approvals", pends)):
        async with stream(plane, organisations, "reviewer", f"/live/{organisations.project}/{topic}") as answer:
            assert await answer.until("HTTP/") == "HTTP/1.1 200"
            assert await answer.until("content-type:") == "content-type: text/event-stream"
            assert await answer.until("data:") == "data: 1"
            change(organisations.other_project)
            change(organisations.project)
            assert await answer.until("data:") == "data: 2"


async def test_whoever_may_not_see_the_page_has_no_stream(plane: Plane, organisations: TwoOrganisations) -> None:
    cases = (
        (None, f"/live/{organisations.project}/audit", 401),
        ("stranger", f"/live/{organisations.project}/audit", 404),
        ("stranger", f"/live/{organisations.project}/approvals", 404),
        ("member", f"/live/{organisations.project}/approvals", 404),
        ("owner", f"/live/{organisations.other_project}/audit", 404),
        ("owner", f"/live/{NOBODY}/audit", 404),
        ("owner", f"/live/{organisations.project}/secrets", 404),
        ("owner", f"/live/{organisations.project}", 404),
        ("owner", "/live/", 404),
    )
    for who, path, status in cases:
        async with stream(plane, organisations, who, path) as answer:
            assert (await answer.until("HTTP/")).split()[1] == str(status), path
    async with stream(plane, organisations, "owner", f"/live/{organisations.project}/audit", "POST") as answer:
        assert (await answer.until("HTTP/")).split()[1] == "405"


@pytest.mark.parametrize("bounds", [ControlBounds(beat_s=0.2)])
async def test_a_session_that_ends_ends_its_stream(
    plane: Plane, organisations: TwoOrganisations, postgres: Postgres, store_url: str
) -> None:
    async with stream(plane, organisations, "reviewer", f"/live/{organisations.project}/audit") as answer:
        await answer.until(":")
        postgres.execute("DELETE FROM sessions", store_url)
        assert (await answer.until("0")) == "0"  # the last chunk
