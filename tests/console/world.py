"""The world of these tests: where its control plane is, what its paths name, and whose sessions there are."""

import os
import signal
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec
import trio

from gatewayd.control.console import Console
from gatewayd.control.settings import ControlSettings
from gatewayd.control.store.store import Store
from tests.conftest import Postgres

T = TypeVar("T")


class World(msgspec.Struct):
    """`pid`: of the control plane. `places`: what paths may name. `cookies`: name and value of a session for each person, freshly
    signed in."""

    settings: ControlSettings
    server: Postgres | None
    dsn: str
    pid: int
    org: str = ""
    places: dict[str, str] = {}
    people: dict[str, str] = {}
    cookies: dict[str, tuple[str, str]] = {}

    @property
    def postgres(self) -> Postgres:
        """The server of the store, for who changes it behind the control plane; a store that was there before has none."""
        assert self.server is not None
        return self.server

    @property
    def url(self) -> str:
        return self.settings.public_url

    def stop_engines(self) -> None:
        """As a machine that is shut down stops them."""
        for thread in Path(f"/proc/{self.pid}/task").iterdir():
            for child in (thread / "children").read_text(encoding="ascii").split():
                os.kill(int(child), signal.SIGTERM)

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
