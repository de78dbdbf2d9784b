"""The operators' routes on a real socket, without a gateway behind them."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx
import trio
from quart import Blueprint

from gatewayd.http.server import HttpServer
from gatewayd.operators.app import create_app

TOKEN = "s3cret-token"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def serving(blueprints: Sequence[Blueprint]) -> AsyncGenerator[httpx.AsyncClient, None]:
    stop = trio.Event()
    async with trio.open_nursery() as nursery:

        async def serve(task_status: trio.TaskStatus[int]) -> None:
            app = create_app(cast(Any, None), blueprints)
            await HttpServer(app, grace_s=1).serve("127.0.0.1", 0, stop=stop, task_status=task_status)

        port = await nursery.start(serve)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            yield client
        stop.set()
