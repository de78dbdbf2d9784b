"""The world of these tests: where its control plane is, what its paths name, and whose sessions there are."""

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec
import trio

from gatewayd.control.console import Console
from gatewayd.control.settings import ControlSettings
from gatewayd.control.store.store import Store
from tests.conftest import Postgres

T = TypeVar("T")


class World(msgspec.Struct):
    """`places`: what paths may name. `cookies`: name and value of a session for each person, freshly signed in."""

    settings: ControlSettings
    postgres: Postgres
    dsn: str
    org: str = ""
    places: dict[str, str] = {}
    people: dict[str, str] = {}
    cookies: dict[str, tuple[str, str]] = {}

    @property
    def url(self) -> str:
        return self.settings.public_url

    def path(self, template: str) -> str:
        return template.format(**self.places)

    def do(self, work: Callable[[Console], Awaitable[T]]) -> T:
        """Run `work` on Trio with the control plane's store and secrets, in a thread: Playwright's loop is in the main one."""

        async def on_trio() -> T:
            store = Store(self.dsn)
            try:
                return await work(Console(self.settings, store))
            finally:
                store.close()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(trio.run, on_trio).result()
