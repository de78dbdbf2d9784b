"""What befalls a system: one thing at a time, on any part, drawn at random."""

import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

import trio

from tests.control.system.parts import Part
from tests.control.system.stage import Stage

Fault = Callable[[], Awaitable[None]]
_AWAY_S: Final = 4.0
_HUNG_S: Final = 8.0


class Faults:
    """`counts`: what has happened, by name."""

    def __init__(self, stage: Stage, dice: Random) -> None:
        self.counts: Final[Counter[str]] = Counter()
        self._stage: Final = stage
        self._dice: Final = dice

    async def kill_each(self, part: Part, most_s: float) -> None:
        """Never returns. Kills one part over and over, each time at most `most_s` after it serves, and starts it again.

        One time in five it does not come so far: a start is killed as well.
        """
        while True:
            if self._dice.random() < 0.8:
                await part.until_served()
            await trio.sleep(self._dice.uniform(0, most_s))
            await self._kill(part)

    async def any_part(self, every_s: float) -> None:
        """Never returns. One fault after the other, of any part."""
        stage = self._stage
        while True:
            for part in (*stage.replicas, *stage.gateways):
                if not part.is_running:  # as a service manager does: nobody can start without a store
                    part.start()
            replica, gateway = self._dice.choice(stage.replicas), self._dice.choice(stage.gateways)
            faults: list[Fault] = [
                lambda: self._kill(replica),  # noqa: B023  # drawn and awaited in the same turn
                lambda: self._kill(gateway),  # noqa: B023
                lambda: self._stop(replica),  # noqa: B023
                lambda: self._stop(gateway),  # noqa: B023
                lambda: self._hang(replica),  # noqa: B023
                lambda: self._hang(gateway),  # noqa: B023
                self._kill_engine,
                self._store,
                self._shop,
                self._network,
            ]
            with trio.CancelScope(shield=True):  # what has begun is mended
                await self._dice.choice(faults)()
            await trio.sleep(every_s)

    async def _kill(self, part: Part) -> None:
        if part.is_running:
            self.counts[f"{part.name} killed"] += 1
            await part.kill()
        await self._again(part)

    async def _stop(self, part: Part) -> None:
        self.counts[f"{part.name} stopped"] += 1
        if part.is_running:
            code = await part.stop()
            assert code in (0, -signal.SIGTERM), f"{part.name} stopped with {code}"  # or had not begun to listen for signals
        await self._again(part)

    async def _again(self, part: Part) -> None:
        await trio.sleep(self._dice.uniform(0, _AWAY_S))
        part.start()

    async def _hang(self, part: Part) -> None:
        self.counts[f"{part.name} hung"] += 1
        part.signal(signal.SIGSTOP)
        await trio.sleep(self._dice.uniform(0, _HUNG_S))
        part.signal(signal.SIGCONT)

    async def _kill_engine(self) -> None:
        engines = [pid for replica in self._stage.replicas for pid in replica.children()]
        if engines:
            self.counts["engine killed"] += 1
            Part.kill_pid(self._dice.choice(engines))

    async def _store(self) -> None:
        self.counts["PostgreSQL of the store crashed"] += 1
        await trio.to_thread.run_sync(self._stage.store.restart, "immediate")

    async def _shop(self) -> None:
        self.counts["PostgreSQL of the agents crashed"] += 1
        await trio.to_thread.run_sync(self._stage.shop.restart, "immediate")

    async def _network(self) -> None:
        self.counts["connections cut"] += 1
        self._stage.switch.cut()
