"""A control plane in a process of its own: as it is first found, or with something to show on every page. What is on a page was
made with the code and the protocol that make it in earnest, so nothing is there that could not be."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.people import sessions
from gatewayd.control.people.person import ADD, JOIN_ORGANISATION
from gatewayd.control.people.rights import Role
from gatewayd.control.people.sessions import Visitor
from gatewayd.control.projects.create import before_creation, create_project
from gatewayd.control.settings import load_control_settings, with_secrets
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from tests.conftest import Postgres
from tests.console.agreed import agree
from tests.console.held import hold
from tests.console.recorded import record
from tests.console.shop import fill
from tests.console.world import World
from tests.control.browser import Browser
from tests.control.conftest import found

ZONE: Final = "Europe/Vienna"
OTHERS: Final[dict[str, tuple[str, Role]]] = {
    "grace": ("Grace Hopper", "reviewer"),
    "carl": ("Carl Gauss", "auditor"),
    "mary": ("Mary Somerville", "member"),
    "emmy": ("Emmy Noether", "admin"),
}
WHERE: Final = Statement("SELECT org_id, person_id FROM memberships")


class _Where(msgspec.Struct):
    org_id: str
    person_id: str


@contextmanager
def running(postgres: Postgres, port: int, folder: Path, *, with_hostile: bool = True) -> Iterator[World]:
    """From an empty database to a world; ends the control plane. `with_hostile` as tests want it and pictures do not."""
    with started(postgres, port, folder) as (world, link):
        world.do(partial(_build, world, link, with_hostile))
        yield world


@contextmanager
def started(postgres: Postgres, port: int, folder: Path) -> Iterator[tuple[World, str]]:
    """A world with nobody in it, and the link that makes its first owner; ends the control plane."""
    with served(postgres, postgres.create_database(), port, folder / "state") as (world, lines):
        yield world, until(lines, r"http://\S+/welcome/\S+")


@contextmanager
def copied(world: World, port: int, folder: Path) -> Iterator[World]:
    """A control plane of its own over a copy of all that `world` holds; ends it."""
    shutil.copytree(world.settings.state, folder / "state", ignore=shutil.ignore_patterns("engines"))
    dsn = world.postgres.copy_in_use(world.dsn)
    with served(world.postgres, dsn, port, folder / "state") as (copy, lines):
        until(lines, "serves http")
        copy.org, copy.places, copy.people = world.org, world.places, world.people
        cookie = copy.settings.cookie(sessions.COOKIE)
        copy.cookies = {who: (cookie, value) for who, (_, value) in world.cookies.items()}
        yield copy


@contextmanager
def served(postgres: Postgres | None, dsn: str, port: int, state: Path) -> Iterator[tuple[World, Iterable[str]]]:
    """A control plane over the store `dsn`, and the lines that it prints; ends it. `postgres` is for who changes the store."""
    environ = {
        "GATEWAY_SELF_HOST": "1",
        "CONTROL_DATABASE_URL": dsn,
        "CONTROL_PORT": str(port),
        "CONTROL_STATE_DIR": str(state),
        "CONTROL_LOG_LEVEL": "warning",
        "CONTROL_SHUTDOWN_GRACE_S": "1",
    }
    settings = with_secrets(load_control_settings(environ))
    command = [sys.executable, "-m", "gatewayd", "control", "serve"]
    environment = environ | {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield World(settings, postgres, dsn, process.pid), process.stdout
    finally:
        process.terminate()
        process.communicate(timeout=30)


def until(lines: Iterable[str], pattern: str) -> str:
    for line in lines:
        if match := re.search(pattern, line):
            return match[0]
    raise AssertionError("the control plane ended before it was ready")


async def _build(world: World, link: str, with_hostile: bool, console: Console) -> None:
    await found(Browser(world.url), link)
    where = (await console.store.rows(_Where, WHERE))[0]
    world.org, world.people["ada"] = where.org_id, where.person_id
    world.postgres.execute(f"UPDATE people SET zone = '{ZONE}', name = 'Ada Lovelace'", world.dsn)
    for name, (whole, role) in OTHERS.items():
        world.people[name] = await _join(world, console, name, whole, role)
    for name in world.people:
        await _sign_in(world, console, name)
    world.places["shop"] = await project(world, console, "Shop", ("main", "reporting"))
    world.places["empty"] = await project(world, console, "Warehouse", ("main",))
    world.places |= await record(console, world.postgres, world.url, world.org, world.places["shop"], with_hostile=with_hostile)
    await fill(world, console)
    grace = Browser(world.url)
    grace.cookies = dict([world.cookies["grace"]])
    world.places |= await hold(console, grace, world.org, world.places["shop"], with_hostile=with_hostile)
    world.places |= await agree(world, console, grace)


async def project(world: World, console: Console, name: str, databases: tuple[str, ...]) -> str:
    made = before_creation(console, databases)

    async def work(tx: Transaction) -> str:
        return await create_project(tx, console, world.org, world.people["ada"], name, databases, made)

    return await console.store.transaction(work)


async def _join(world: World, console: Console, name: str, whole: str, role: Role) -> str:
    person, now_ms = console.new_id(), console.now_ms()

    async def work(tx: Transaction) -> None:
        await tx.run(ADD, person, f"{name}@example.com", f"{name}@example.com", whole, None, now_ms)
        await tx.run(JOIN_ORGANISATION, person, world.org, role, now_ms)

    await console.store.transaction(work)
    return person


async def _sign_in(world: World, console: Console, name: str) -> None:
    cookie = sessions.new_cookie(console.entropy(32))
    visitor = Visitor("192.0.2.7", "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0")
    session, now_ms = console.new_id(), console.now_ms()

    async def work(tx: Transaction) -> None:
        await sessions.begin(tx, cookie, session, world.people[name], world.org, now_ms, "password", visitor)

    await console.store.transaction(work)
    world.cookies[name] = (world.settings.cookie(sessions.COOKIE), cookie)
