"""One JSON POST to an address of the operator, for the deny webhook and telemetry (decisions 8, 9).

httpx is imported when the first poster is made: a gateway without webhook and collector starts without it. The address never
reaches a log, for its path and query may hold a key."""

import logging
from types import TracebackType
from typing import Self

import trio

from gatewayd.config.bounds import SENDER_BOUNDS


class PostFailed(Exception):
    """The address did not answer 2xx in time. `reason` names no address."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Poster:
    """Use as `async with`; any number of posts may run at once, each for at most `post_s` seconds."""

    def __init__(self, url: str, version: str, post_s: float = SENDER_BOUNDS.post_s) -> None:
        self._url = url
        self._post_s = post_s
        self._headers = {"content-type": "application/json", "user-agent": f"gatewayd/{version}"}

    async def __aenter__(self) -> Self:
        import httpx

        for name in ("httpx", "httpcore"):  # both would log the full address
            logging.getLogger(name).setLevel(logging.WARNING)
        self._failures = (httpx.HTTPError, httpx.InvalidURL)
        # no timeout of its own: `post` sets one deadline for the whole
        self._client = httpx.AsyncClient(timeout=None, follow_redirects=False, headers=self._headers)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._client.aclose()

    async def post(self, body: bytes) -> None:
        """Returns on any 2xx. Raises PostFailed otherwise, at the latest after `post_s`; nothing is retried or followed."""
        try:
            with trio.fail_after(self._post_s):
                # Streamed and not read: the answer's body is not needed, and may never end.
                async with self._client.stream("POST", self._url, content=body) as response:
                    if not response.is_success:
                        raise PostFailed(f"answered status {response.status_code}")
        except trio.TooSlowError:
            raise PostFailed(f"no answer within {self._post_s:g} s") from None
        except self._failures as failure:
            raise PostFailed(type(failure).__name__) from None  # its text may hold the address
