"""What is looked at from time to time for all connections together, so that no request pays for a deadline or a task of its own:
who idles too long, and whose client left during a call that ends with its client."""

from collections.abc import Collection
from typing import Final, final

import trio

from gatewayd.http import connection as connections
from gatewayd.http.connection import Connection
from gatewayd.http.open_exchange import HttpExchange

LOOK_S: Final = 0.1  # a call that is over sooner is not looked at


@final
class ConnectionSweep:
    """`connections` is a live view of those that are open."""

    def __init__(self, connections: Collection[Connection]) -> None:
        self._connections: Final = connections
        self._watched: set[HttpExchange] = set()
        self._wanted = trio.Event()

    def add(self, exchange: HttpExchange) -> None:
        self._watched.add(exchange)
        if not self._wanted.is_set():
            self._wanted.set()

    def discard(self, exchange: HttpExchange) -> None:
        self._watched.discard(exchange)

    async def expire(self) -> None:
        """Ends what idles, at most a tenth of the time late. Runs until cancelled."""
        while True:
            await trio.sleep(connections.KEEP_ALIVE_S / 10)
            since_s = trio.current_time() - connections.KEEP_ALIVE_S
            for connection in tuple(self._connections):
                if connection.idle_since_s < since_s:
                    connection.expire()

    async def look(self) -> None:
        """Looks for clients that left. Runs until cancelled; asleep while no call wants it."""
        seen: set[HttpExchange] = set()
        while True:
            await self._wanted.wait()
            await trio.sleep(LOOK_S)
            for exchange in seen & self._watched:
                exchange.look()
            seen = set(self._watched)
            if not seen:
                self._wanted = trio.Event()
