"""A network between gatewayd and PostgreSQL that tests can cut and delay."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio

Relay = Callable[[trio.SocketStream, trio.SocketStream], Any]


@asynccontextmanager
async def between(postgres: Any, relay: Relay, query: str = "?sslmode=disable") -> AsyncIterator[str]:
    """A port that hands each connection, and one of its own to PostgreSQL, to `relay`; gives the connection string."""

    async def serve(client: trio.SocketStream) -> None:
        async with client, await trio.open_tcp_stream(postgres.host, postgres.port) as server:
            await relay(client, server)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        yield postgres.dsn(tcp=True).replace(f":{postgres.port}/", f":{port}/") + query
        nursery.cancel_scope.cancel()


async def pass_on(source: trio.SocketStream, target: trio.SocketStream) -> None:
    try:
        async for data in source:
            await target.send_all(data)
        await target.send_eof()
    except trio.BrokenResourceError:
        await target.aclose()


async def pass_both_ways(client: trio.SocketStream, server: trio.SocketStream) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pass_on, client, server)
        nursery.start_soon(pass_on, server, client)
