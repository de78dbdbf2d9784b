"""Removes what has ended: sessions, links, challenges, counts of tries. By one replica at a time."""

from gatewayd.control.console import Console
from gatewayd.control.people import links, passkeys, sessions, throttle
from gatewayd.control.store.lease import run_leased


async def sweep_people(console: Console) -> None:
    """The service."""

    async def sweep(_fence: int) -> None:
        now_ms = console.now_ms()
        await console.store.run(sessions.SWEEP, now_ms, now_ms - sessions.IDLE_MS)
        await console.store.run(links.SWEEP, now_ms)
        await console.store.run(passkeys.SWEEP, now_ms)
        await console.store.run(throttle.SWEEP, now_ms - throttle.FORGOTTEN_MS)

    await run_leased(console.store, "people sweep", console.replica, sweep)
