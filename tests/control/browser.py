"""A browser without pages: keeps cookies, says where its requests come from, follows nothing by itself."""

import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import httpx

# Made once: a client of its own would load the authorities' certificates for each request.
TLS: Final = ssl.create_default_context()


class Browser:
    def __init__(self, url: str) -> None:
        self.url = url
        self.session = f"gatewayd-{urlsplit(url).port}"
        """The name of the session's cookie, of a console over http."""
        self.cookies: dict[str, str] = {}

    def path_of(self, link: str) -> str:
        assert link.startswith(self.url), link
        return link.removeprefix(self.url)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.send("GET", path, headers=headers)

    async def post(self, path: str, form: Mapping[str, Any] | None = None, **headers: str) -> httpx.Response:
        body = urlencode(form or {}, doseq=True).encode()
        sent = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin", "origin": self.url}
        return await self.send("POST", path, body, headers=sent | headers)

    async def send(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> httpx.Response:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = ({"cookie": cookie} if cookie else {}) | dict(headers or {})
        # A connection each: a pool that outlives its test's nursery would leave sockets behind.
        async with httpx.AsyncClient(trust_env=False, timeout=60, verify=TLS) as client:
            answer = await client.request(method, self.url + path, content=body, headers=sent)
        for line in answer.headers.get_list("set-cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            if value:
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        return answer
