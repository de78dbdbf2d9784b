"""The service that runs engines: it opens their home, starts them when they are wanted, and ends them when they are to leave."""

import os
from functools import partial
from typing import Final

import trio

from gatewayd import log
from gatewayd.control.console import Console
from gatewayd.control.engines.engine import Wanted
from gatewayd.control.engines.enrol import enrol_token
from gatewayd.control.engines.home import Home, HomeProblem
from gatewayd.control.engines.launch import launch_of
from gatewayd.control.engines.process import STOP_S, EngineProcess, StartFailed, spawn
from gatewayd.control.store.failures import StoreUnavailable

_SECRET_BYTES: Final = 32


async def run_engines(console: Console) -> None:
    """Never returns. Once engines are to leave, or when it is cancelled, it ends them in order: each ends its calls first."""
    engines = console.engines
    try:
        await _run_until_they_leave(console)
    finally:
        engines.ended.set()
    await trio.sleep_forever()


async def _run_until_they_leave(console: Console) -> None:
    settings, engines = console.settings, console.engines
    if not settings.self_host:
        engines.problem = "this control plane runs no engines; connect to a gateway of your own"
        return
    home = Home(settings.state, settings.runtime)
    try:
        home.open(console.new_id)
    except HomeProblem as problem:
        engines.problem = str(problem)
        log.error(log.ENGINE_FAILED, error=engines.problem)
        return
    try:
        async with trio.open_nursery() as nursery:
            engines.opened(home.replica, partial(_start, console, home), nursery, grace_s=settings.shutdown_grace_s + STOP_S)
            await engines.leave.wait()
            engines.closed()
            nursery.cancel_scope.cancel()
    finally:
        engines.closed()
        home.close()


async def _start(console: Console, home: Home, wanted: Wanted) -> EngineProcess:
    """Raises StartFailed, whatever it was."""
    folder = home.folder(wanted.project_id)
    secret = console.entropy(_SECRET_BYTES).hex()
    try:
        token = await enrol_token(console, wanted.org_id, wanted.project_id, folder, home.replica)
        launch = launch_of(
            console.settings,
            wanted.project_id,
            folder.state,
            folder.credentials,
            wanted.addresses,
            proxy_secret=secret,
            enrol_token=token,
            environ=os.environ,
        )
        await trio.to_thread.run_sync(folder.prepare, launch.secrets)
        return await spawn(launch, folder, secret)
    except StoreUnavailable:
        raise StartFailed("the store does not answer now") from None
    except (OSError, HomeProblem) as problem:
        raise StartFailed(f"the engine cannot be run ({problem})") from None
    except Exception as bug:  # of one project: the others go on
        log.error(log.UNEXPECTED_FAILURE, **log.places(bug))
        raise StartFailed("this failed, and it is our fault; the log says where") from None
