"""Pages: Jinja2 with escaping everywhere and no undefined names.

A page is `<folder>/pages/<name>.html` and extends `web/pages/base.html`.
"""

import hashlib
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

import jinja2

from gatewayd.control.web.answer import Answer
from gatewayd.control.web.call import Call

STATIC: Final = {"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8"}
CSP: Final = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
HEADERS: Final = (
    ("Content-Security-Policy", CSP),
    ("Referrer-Policy", "same-origin"),  # no-referrer makes same-origin posts send `Origin: null`
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)


def page(call: Call | None, template: str, status: int = 200, **values: object) -> Answer:
    """`template` is `people/pages/sign_in.html`. Every page sees `call` (None on error pages), `at(ms)` and `asset(name)`."""
    zone = call.person.zone if call is not None and call.is_signed_in else "UTC"
    text = _environment().get_template(template).render(call=call, at=lambda ms: _time(ms, zone), **values)
    return Answer(status, text.encode(), headers=HEADERS)


def is_zone(name: str) -> bool:
    return name in available_timezones()


def asset(name: str) -> str:
    """The address of a file of ours; it changes with the file, so it may be kept for ever."""
    return f"/static/{hashlib.sha256(asset_bytes(name)).hexdigest()[:12]}/{name}"


@cache
def asset_bytes(name: str) -> bytes:
    return (files("gatewayd.control.web") / "static" / name).read_bytes()


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gatewayd.control", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals["asset"] = cache(asset)
    return environment


class Shown:
    """A piece of HTML made here, which escaping leaves as it is."""

    def __init__(self, html: str) -> None:
        self._html = html

    def __html__(self) -> str:
        return self._html


def _time(ms: int | None, zone: str) -> Shown:
    """A time in the reader's zone, with UTC on hover. Digits and punctuation only, so nothing is to be escaped."""
    if ms is None:
        return Shown("never")
    utc = datetime.fromtimestamp(ms / 1000, UTC)
    try:
        own = utc.astimezone(ZoneInfo(zone))
    except (ValueError, OSError, KeyError):
        own = utc
    exact = utc.isoformat(timespec="seconds")
    return Shown(f'<time datetime="{exact}" title="{utc:%Y-%m-%d %H:%M:%S} UTC">{own:%Y-%m-%d %H:%M}</time>')
