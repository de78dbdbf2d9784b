"""The link of a linked gateway: state folder, identity, bundle and its age, the control plane and its clock, its state."""

import os
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final

import httpx

from gatewayd.cli.doctor.finding import Check, fail, ok, warn
from gatewayd.cli.link.kept_link import KeptLink, LinkUnreadable, NotLinked, kept_link
from gatewayd.cli.query import own_url
from gatewayd.config.settings import LinkSettings, Settings
from gatewayd.keys.identity import IdentityRefused, load_identity
from gatewayd.link.formats.requests import CLOCK_MS

_WITHIN_S: Final = 10.0
_STATES: Final = {
    "waiting": "publish a policy on the control plane",
    "paused": "a person has paused the project on the control plane",
    "halted": "the log says why: `gateway halted`",
}


async def checks(settings: Settings, link: LinkSettings) -> AsyncIterator[Check]:
    """The checks of the link, in order."""
    try:
        kept = kept_link(settings.state_dir)
    except NotLinked:
        remedy = "gatewayd link --control URL, with the token that the control plane shows"
        yield (warn if link.enrol_token is not None else fail)("link", "this gateway is not linked yet", remedy)
        return
    except LinkUnreadable as wrong:
        yield fail("link", f"the state folder cannot be trusted: {wrong}", "restore it, or `gatewayd link leave` and enrol again")
        return
    for check in _folder(settings, link, kept):
        yield check
    async for check in _control_plane(link):
        yield check
    yield await _state()


def _folder(settings: Settings, link: LinkSettings, kept: KeptLink) -> Iterator[Check]:
    enrolled = kept.enrolled
    yield ok("link", f"gateway {enrolled.gateway} of project {enrolled.project}, trust {kept.trust.version}")
    if enrolled.control_url.rstrip("/") != link.control_url:
        found = "GATEWAY_CONTROL_URL is another control plane than it was enrolled at"
        yield warn("link", found, "correct GATEWAY_CONTROL_URL, or link anew")
    yield _identity(settings, enrolled.identity)
    if kept.bundle is None:
        yield warn("bundle", f"none to start with: {kept.problem}", "publish a policy on the control plane")
        return
    age = f"confirmed {kept.fresh_s} s ago" if kept.fresh_s is not None else "never confirmed since it came"
    said = f"version {kept.bundle.version}, {kept.bundle.state}, {age}"
    if kept.fresh_s is None or kept.fresh_s > kept.bundle.fresh_for_s:
        yield warn("bundle", f"{said}; it asks for {kept.bundle.fresh_for_s} s", "look at the way to the control plane")
    else:
        yield ok("bundle", said)


def _identity(settings: Settings, enrolled: str) -> Check:
    try:
        identity = load_identity(settings.state_dir, settings.credentials_dir)
    except IdentityRefused as refused:
        return fail("identity", str(refused), "restore identity.json")
    found = identity.key_id if identity is not None else None
    if found == enrolled:
        return ok("identity", enrolled)
    what = "there is none" if found is None else "it is another one than was enrolled"
    return fail("identity", what, "`gatewayd link rotate` if that was cut short; else restore identity.json, or enrol again")


async def _control_plane(link: LinkSettings) -> AsyncIterator[Check]:
    verify: ssl.SSLContext | bool = True
    if link.ca_file is not None:
        verify = ssl.create_default_context(cafile=link.ca_file)
    try:
        async with httpx.AsyncClient(timeout=_WITHIN_S, trust_env=False, verify=verify) as client:
            answer = await client.get(f"{link.control_url}/healthz")
    except httpx.HTTPError as failure:
        remedy = "look at the network, GATEWAY_CONTROL_URL and GATEWAY_CONTROL_CA; the cached bundle stays in force meanwhile"
        yield fail("control plane", f"does not answer ({type(failure).__name__})", remedy)
        return
    yield ok("control plane", f"answers with status {answer.status_code}")
    told = _date(answer.headers.get("date", ""))
    if told is None:
        yield Check("clock", "SKIP", "its answer has no date")
        return
    off_s = round(time.time() - told.timestamp())
    if abs(off_s) * 1000 > CLOCK_MS:
        side = "ahead of" if off_s > 0 else "behind"
        remedy = "set this machine's clock; the gateway works with the difference, and other programs do not"
        yield warn("clock", f"{abs(off_s)} s {side} the control plane's", remedy)
    else:
        yield ok("clock", f"within {CLOCK_MS // 60_000} minutes of the control plane's")


async def _state() -> Check:
    base = own_url(os.environ).removesuffix("/mcp")
    try:
        async with httpx.AsyncClient(timeout=_WITHIN_S, trust_env=False) as client:
            told = (await client.get(f"{base}/readyz")).text[:100]
    except httpx.HTTPError:
        return warn("state", f"nothing answers at {base}", "start it with `gatewayd serve`, or `systemctl start gatewayd`")
    if told == "ready":
        return ok("state", told)
    remedy = _STATES.get(told.partition(" ")[0], "look at that database, and at the log")
    return (fail if told == "halted" else warn)("state", told, remedy)


def _date(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except ValueError:
        return None
