"""An agent beside the browser: the official SDK, in a thread, because Playwright keeps the main one."""

import gc
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import msgspec
import trio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

PATIENCE_S: Final = 120


class Agent:
    """Asks the gateway at `url`, one call after the other. Tests that use it ignore what the SDK leaves to the collector."""

    def __init__(self, url: str, thread: ThreadPoolExecutor) -> None:
        self._url: Final = url
        self._thread: Final = thread

    def asks(self, sql: str, intent: str) -> Future[Any]:
        """The answer of the tool `query`, as it comes: a held write may make it wait."""
        return self._thread.submit(trio.run, partial(self._query, sql, intent))

    def query(self, sql: str, intent: str) -> Any:
        return self.asks(sql, intent).result(PATIENCE_S)

    async def _query(self, sql: str, intent: str) -> Any:
        with trio.fail_after(PATIENCE_S):
            async with Client(streamable_http_client(self._url)) as client:
                result = await client.call_tool("query", {"sql": sql, "intent": intent})
        gc.collect()  # in the test that ignores it, not in another one
        assert isinstance(result.content[0], TextContent)
        return msgspec.json.decode(result.content[0].text)
